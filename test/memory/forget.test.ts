import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { type Embedder, openMemory, profiles } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { containsText } from '../../src/upkeep/rederive.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const hello = { role: 'user' as const, content: 'Hello, my Walrus' }

describe('forget by text', () => {
  verifies('X-05', 'deletes messages that contain the text in any case, and does not match metadata', async () => {
    await using memory = await openMemory()
    await memory.append('acme:ann', [hello, { role: 'assistant', content: 'Hi.', name: 'Bo' }])
    for (const text of ['role', 'user', 'weight', 'content', 'o200k', '0', 'm1'])
      expect((await memory.forget({ scope: 'acme', text })).sessions).toEqual([])
    expect((await memory.forget({ scope: 'acme', text: 'my walrus' })).sessions).toEqual([
      { key: 'acme:ann', entries: ['m1'] },
    ])
    expect((await memory.forget({ scope: 'acme', text: 'BO' })).sessions).toEqual([
      { key: 'acme:ann', entries: ['m2'] },
    ])
  })

  it('of a session of very many messages › lists all of them', async () => {
    await using memory = await openMemory({ upkeep: false })
    await memory.append(
      'acme:ann',
      Array.from({ length: 130_000 }, () => ({ role: 'user', content: 'a' })),
    )
    const { sessions } = await memory.forget({ key: 'acme:ann' })
    expect(sessions.map(({ entries }) => entries.length)).toEqual([130_000])
  })

  it('matches call arguments and nested values', () => {
    const common = { id: 'x', at: 1, sources: [] }
    const fact = {
      ...common,
      kind: 'fact' as const,
      field: 'f',
      key: 'pets',
      value: { cats: ['Miso', 7] },
      importance: 1,
    }
    expect(['miso', 'cats', 'pets', '7', 'important'].map((text) => containsText(fact, text))).toEqual([
      true,
      true,
      true,
      true,
      false,
    ])
    const message = {
      ...common,
      kind: 'message' as const,
      sequence: 1,
      offset: 0,
      role: 'assistant' as const,
      content: '',
      tokens: 1,
      lineTokens: 1,
      tokenizer: 't',
      weight: 1,
    }
    expect(
      containsText({ ...message, toolCalls: [{ id: 'c1', name: 'find', arguments: '{"who":"Miso"}' }] }, 'miso'),
    ).toBe(true)
  })

  verifies('X-05', 'also deletes quarantined entries', async () => {
    const file = fresh()
    const open = () => openMemory({ store: sqliteStore(file, { onWarning: () => undefined }), upkeep: false })
    const writer = await open()
    await writer.append('acme:ann', [hello, { role: 'user', content: 'second' }])
    await writer.close()
    const database = new DatabaseSync(file)
    database.exec('UPDATE message SET sum = 1 WHERE sequence = 1')
    const quarantinedCount = () => Number(database.prepare('SELECT count(*) AS many FROM quarantine').get()?.many)
    const memory = await open()
    expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m2'])
    await memory.append('acme:ann', [{ role: 'user', content: 'third' }])
    expect(quarantinedCount()).toBe(1)
    await memory.forget({ scope: 'acme', text: 'walrus' })
    expect(quarantinedCount()).toBe(0)
    database.close()
    await memory.close()
  })
})

describe('forget', () => {
  it("reaches the scope's own memory in whichever store it is", async () => {
    await using memory = await openMemory({ profile: 'support', store: `sqlite:${fresh()}` })
    const { id } = await memory.remember('acme', { category: 'domain', key: 'hours', value: 'nine to five' })
    expect((await memory.forget({ key: 'acme' })).sessions).toEqual([{ key: 'acme', entries: [id] }])
    expect(await memory.search('acme', 'hours')).toEqual([])
  })

  it("evicting surplus sessions keeps the scope's knowledge", async () => {
    let now = 0
    const profile = {
      ...profiles.ephemeral,
      scopes: ['session', 'scope'] as const,
      lifetime: { ...profiles.ephemeral.lifetime, sessions: 2 },
    }
    await using memory = await openMemory({ profile, clock: () => now++ })
    await memory.remember('acme', { category: 'domain', key: 'hours', value: 'nine to five' })
    for (const session of ['a', 'b', 'c']) await memory.append(`acme:${session}`, [hello])
    expect((await memory.sweep()).ended).toEqual(['acme:a'])
    expect((await memory.search('acme', 'hours', { kinds: ['knowledge'] })).length).toBe(1)
  })

  it('removes queued texts before they reach the embedder', async () => {
    const sent: string[] = []
    let release: () => void = () => undefined
    const gate = new Promise<void>((resolve) => (release = resolve))
    const embedder: Embedder = {
      name: 'slow',
      embed: async (texts) => {
        sent.push(...texts)
        await gate
        return texts.map(() => Float32Array.of(1, 0))
      },
    }
    await using memory = await openMemory({ embedder })
    await memory.append('acme:ann', [{ role: 'user', content: 'first' }])
    await memory.append('acme:ann', [hello])
    await memory.forget({ key: 'acme:ann' })
    release()
    expect((await memory.embeddingProgress({ settled: true }))?.total).toBe(0)
    expect(sent).not.toContain(hello.content)
  })
})

describe('forget a message that an agent learnt from', () => {
  verifies('X-05', 'also forgets what it learnt', async () => {
    await using memory = await openMemory({ profile: 'agent' })
    await memory.append('acme:ann', [
      { role: 'user', content: 'example.com uses #page-title for its title.' },
      { role: 'assistant', content: 'Done.' },
      { role: 'user', content: 'I prefer dark mode.' },
      { role: 'assistant', content: 'Noted.' },
    ])
    await memory.upkeep.whenIdle()
    const values = async () => (await memory.upkeep.knowledge('acme')).map(({ value }) => value)
    expect(await values()).toEqual(['dark', 'example.com uses #page-title for its title.'])
    await memory.forget({ key: 'acme:ann', messageId: 'm1' })
    await memory.upkeep.whenIdle()
    expect(await values()).toEqual(['dark'])
  })
})
