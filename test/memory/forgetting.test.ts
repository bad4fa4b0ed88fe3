import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type Embedder, openMemory, profiles, ramStore } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { says } from '../../src/upkeep/rederive.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'

const fresh = freshFiles()
const hello = { role: 'user' as const, content: 'Hello, my Walrus' }

describe('forgetting by text', () => {
  verifies('X-05', 'takes what somebody said, in whichever case, and not what only looks like it', async () => {
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

  it('looks into what tools were asked and into values of any shape', () => {
    const common = { id: 'x', at: 1, sources: [] }
    const fact = {
      ...common,
      kind: 'fact' as const,
      field: 'f',
      key: 'pets',
      value: { cats: ['Miso', 7] },
      importance: 1,
    }
    expect(['miso', 'cats', 'pets', '7', 'important'].map((text) => says(fact, text))).toEqual([
      true,
      true,
      true,
      true,
      false,
    ])
    const said = {
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
    expect(says({ ...said, calls: [{ id: 'c1', name: 'find', arguments: '{"who":"Miso"}' }] }, 'miso')).toBe(true)
  })

  verifies('X-05', 'takes what is left of damaged entries too', async () => {
    const file = fresh()
    const store = sqliteStore(file, { onWarning: () => undefined })
    const memory = await openMemory({ store })
    await memory.append('acme:ann', [hello, { role: 'user', content: 'second' }])
    const database = new DatabaseSync(file)
    database.exec('UPDATE message SET sum = 1 WHERE sequence = 1')
    const remains = () => Number(database.prepare('SELECT count(*) AS many FROM quarantine').get()?.many)
    expect((await memory.transcript('acme:ann')).map(({ id }) => id)).toEqual(['m2'])
    await memory.append('acme:ann', [{ role: 'user', content: 'third' }])
    expect(remains()).toBe(1)
    await memory.forget({ scope: 'acme', text: 'walrus' })
    expect(remains()).toBe(0)
    database.close()
    await memory.close()
  })
})

describe('forgetting', () => {
  it("reaches the scope's own memory wherever it is kept", async () => {
    await using memory = await openMemory({ profile: 'support', store: `sqlite:${fresh()}` })
    const { id } = await memory.remember('acme', { category: 'domain', key: 'hours', value: 'nine to five' })
    expect((await memory.forget({ key: 'acme' })).sessions).toEqual([{ key: 'acme', entries: [id] }])
    expect(await memory.search('acme', 'hours')).toEqual([])
  })

  it('does not take knowledge away when there are too many sessions', async () => {
    let now = 0
    const profile = {
      ...profiles.ephemeral,
      sees: ['session', 'scope'] as const,
      lifetime: { ...profiles.ephemeral.lifetime, sessions: 2 },
    }
    await using memory = await openMemory({ profile, clock: () => now++ })
    await memory.remember('acme', { category: 'domain', key: 'hours', value: 'nine to five' })
    for (const session of ['a', 'b', 'c']) await memory.append(`acme:${session}`, [hello])
    expect((await memory.sweep()).ended).toEqual(['acme:a'])
    expect((await memory.search('acme', 'hours', { kinds: ['knowledge'] })).length).toBe(1)
  })

  it('keeps what is waiting from an embedder', async () => {
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
    expect((await memory.embedded({ settled: true }))?.total).toBe(0)
    expect(sent).not.toContain(hello.content)
  })
})

describe('a memory', () => {
  verifies('X-07', 'answers an operation as before, also when the session is full by now', async () => {
    const profile = {
      ...profiles.thread,
      lifetime: { ...profiles.thread.lifetime, messages: 2, whenFull: 'refuse' as const },
    }
    await using memory = await openMemory({ profile })
    const first = await memory.append('acme:ann', [hello, hello], { operationId: 'op1' })
    expect(await memory.append('acme:ann', [hello, hello], { operationId: 'op1' })).toEqual(first)
    await expect(memory.append('acme:ann', [hello], { operationId: 'op2' })).rejects.toMatchObject({ code: 'full' })
    await expect(memory.append('acme:ann', [hello])).rejects.toMatchObject({ code: 'full' })
  })

  it('finds nothing in sessions that are over', async () => {
    let now = 0
    await using memory = await openMemory({ profile: 'ephemeral', clock: () => now })
    await memory.append('acme:ann', [hello])
    expect((await memory.search('acme', 'walrus')).length).toBe(1)
    now = 25 * 3_600_000
    expect(await memory.search('acme', 'walrus')).toEqual([])
  })

  it('takes any limit, and a search that failed leaves no trace in the next', async () => {
    await using memory = await openMemory()
    await memory.append('acme:ann', [hello])
    const found = await memory.search('acme', 'walrus', { limit: Number.MAX_SAFE_INTEGER })
    expect(await memory.search('acme', 'walrus', { limit: 1 })).toEqual(found)
  })

  it('keeps the vector of what is put again by the same operation', async () => {
    const store = ramStore()
    const key = parseKey('acme')
    const put = [
      { kind: 'fact' as const, id: 'f1', at: 1, field: 'f', key: '', value: 'x', importance: 1, sources: [] },
    ]
    const change = { id: 'op', key, at: 1, epoch: 0, append: [], put, drop: [], expiresAt: 9 }
    await store.commit(change)
    await store.embed('e', [{ key, id: 'f1', epoch: 0, text: 'x', values: Float32Array.of(1) }])
    await store.commit(change)
    expect((await store.embedded('e')).done).toBe(1)
  })
})
