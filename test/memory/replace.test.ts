import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type Fact, openMemory, ramStore, type Summary } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const newPath = createTempPaths()
const key = parseKey('acme:ann')
const user = (content: string, id?: string) => ({ role: 'user' as const, content, ...(id !== undefined && { id }) })

/** Opens a memory with three messages, of which the second has an id of its caller. */
async function openConversation(store = ramStore() as ReturnType<typeof sqliteStore> | ReturnType<typeof ramStore>) {
  let now = 1_000
  const memory = await openMemory({ store, clock: () => now++, upkeep: false })
  await memory.append(key, [user('My cat is Miso.'), user('I live in Oslo.', 'msg-2'), user('Thanks.')])
  const revision = async () => (await store.readHead(key, 0)).revision
  return { memory, store, revision }
}

const contentsOf = (messages: readonly { readonly content: string }[]): string[] =>
  messages.map(({ content }) => content)

describe('append', () => {
  verifies('X-07', 'with ids of the caller › stores and returns them; a repeated one is refused', async () => {
    const { memory } = await openConversation()
    expect((await memory.transcript(key)).map(({ id, externalId }) => [id, externalId])).toEqual([
      ['m1', undefined],
      ['m2', 'msg-2'],
      ['m3', undefined],
    ])
    const again = [user('Again.', 'msg-2')]
    for (const options of [{}, { branch: 'new' as const }, { reserve: 1 }])
      await expect(memory.append(key, again, options)).rejects.toMatchObject({ code: 'conflict' })
    expect((await memory.transcript(key)).length).toBe(3)
    await memory.append('acme:bob', again)
    await memory.close()
  })

  it('with empty ids and numbers › ignores them', async () => {
    await using memory = await openMemory({ upkeep: false })
    const inputs = [user('a', ''), user('b', ''), { ...user('c'), id: 7 }, { ...user('d'), id: null }]
    expect((await memory.append(key, inputs)).map(({ externalId }) => externalId)).toEqual(inputs.map(() => undefined))
  })

  it.each(['x'.repeat(257), 'a\u0000', '\ud800'])('with the id %j › refuses the message', async (id) => {
    await using memory = await openMemory({ upkeep: false })
    await expect(memory.append(key, [user('a'), user('b', id)])).rejects.toMatchObject({
      code: 'bad-message',
      param: 'messages[1].id',
    })
  })

  it('with several tool results › gives the id to the first message', async () => {
    await using memory = await openMemory({ upkeep: false })
    const results = ['c1', 'c2'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: id }))
    const stored = await memory.append(key, [{ role: 'user', content: results, id: 'results' }])
    expect(stored.map(({ externalId }) => externalId)).toEqual(['results', undefined])
  })

  verifies('X-08', 'with an id that looks like a secret › refuses the message without repeating it', async () => {
    await using memory = await openMemory({ upkeep: false })
    const secret = 'ghp_x9Kq2Lm7Vb4Nc8Rt1Zw6Yp3Hs5Jd0FgTuXaQ'
    const error = await memory.append(key, [user('a', secret)]).catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ code: 'bad-message', param: 'id' })
    expect((error as Error).message).not.toContain(secret)
  })
})

describe('replace', () => {
  it('by either id › changes the text and keeps place, time and id', async () => {
    for (const id of ['m2', 'msg-2']) {
      const { memory, revision } = await openConversation()
      const [, before] = await memory.transcript(key)
      const replaced = await memory.replace(key, id, user('I live in Bergen.'), { revision: await revision() })
      expect(replaced).toEqual({ ...before, content: 'I live in Bergen.', ...countsOf(replaced) })
      expect(contentsOf(await memory.transcript(key))).toEqual(['My cat is Miso.', 'I live in Bergen.', 'Thanks.'])
      expect(
        (await memory.search('acme', 'Oslo')).filter(({ entry }) => JSON.stringify(entry).includes('Oslo')),
      ).toEqual([])
      await memory.close()
    }
  })

  it('with a new id and time › stores both', async () => {
    const { memory } = await openConversation()
    const replaced = await memory.replace(key, 'msg-2', { ...user('Bergen.', 'msg-9'), at: 77 })
    expect([replaced.at, replaced.externalId]).toEqual([77, 'msg-9'])
    await expect(memory.replace(key, 'msg-2', user('x'))).rejects.toMatchObject({ code: 'bad-option', param: 'id' })
    await memory.close()
  })

  it('in a conversation of its own › stays in it', async () => {
    const { memory } = await openConversation()
    const [edited] = await memory.append(key, [user('Other.')], { branch: 'new' })
    const replaced = await memory.replace(key, 'm4', user('Another.'))
    expect([edited?.branch, replaced.branch]).toEqual([4, 4])
    const [after] = await memory.replaceFrom(key, 'm4', [user('A third.')])
    expect(after?.branch).toBe(4)
    await memory.close()
  })

  verifies('X-07', 'on an outdated revision, a missing message or two messages › changes nothing', async () => {
    const { memory, revision } = await openConversation()
    const before = await memory.transcript(key)
    const outdated = await revision()
    await memory.append(key, [user('More.')])
    await expect(memory.replace(key, 'm2', user('x'), { revision: outdated })).rejects.toMatchObject({
      code: 'conflict',
    })
    await expect(memory.replaceFrom(key, 'm2', [], { revision: outdated })).rejects.toMatchObject({ code: 'conflict' })
    for (const id of ['m9', 'm0', 'msg-9', ''])
      await expect(memory.replace(key, id, user('x'))).rejects.toMatchObject({ code: 'bad-option', param: 'id' })
    const results = ['c1', 'c2'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: id }))
    await expect(memory.replace(key, 'm2', { role: 'user', content: results })).rejects.toMatchObject({
      code: 'bad-message',
    })
    await expect(memory.replace(key, 'm1', user('x', 'msg-2'))).rejects.toMatchObject({ code: 'conflict' })
    expect((await memory.transcript(key)).slice(0, 3)).toEqual(before)
    await memory.close()
  })

  verifies('X-05', 'of the source of a fact and a summary › derives both again from the new text', async () => {
    const store = sqliteStore(newPath())
    const { memory } = await openConversation(store)
    const sources = [{ message: 'm2' }]
    const fact: Fact = {
      ...{ kind: 'fact', id: 'f1', at: 1, field: 'location', key: 'home', value: 'Oslo', importance: 5 },
      sources,
    }
    const summary: Summary = {
      ...{ kind: 'summary', id: 's1', at: 1, tier: 'progressive', text: 'Ann lives in Oslo.', covers: [1, 3] },
      ...{ endOffset: 20, version: 1, by: 'builtin', sources, lossyRanges: [] },
    }
    const other: Fact = { ...fact, id: 'f2', value: 'Miso', sources: [{ message: 'm1' }] }
    const head = await store.readHead(key, 0)
    const change = { key, at: 1, epoch: head.epoch, append: [], drop: [], expiresAt: head.expiresAt }
    await store.commit({ ...change, put: [fact, summary, other] })
    const scope = parseKey('acme')
    const learned: Fact = { ...fact, id: 'f3', sources: [{ message: 'm2', session: 'ann' }] }
    await store.commit({ ...change, key: scope, epoch: 0, put: [learned] })
    await memory.close()
    await using renewed = await openMemory({ store: sqliteStore(store.path) })
    await renewed.replace(key, 'm2', user('I live in Bergen.'))
    const derived = await renewed.upkeep.summaries(key)
    expect(derived.map(({ text }) => text).join()).toContain('Bergen')
    const reader = sqliteStore(store.path)
    const { derived: entries } = await reader.readHead(key, 0)
    expect(JSON.stringify(entries)).not.toContain('Oslo')
    expect(entries.some(({ id }) => id === 'f2')).toBe(true)
    expect((await reader.readHead(scope, 0)).derived).toEqual([])
    await reader.close()
  })
})

describe('replaceFrom', () => {
  verifies('X-07', 'with other messages › drops the message and all after it', async () => {
    const { memory, revision } = await openConversation()
    const added = await memory.replaceFrom(key, 'msg-2', [user('I live in Bergen.', 'msg-2'), user('Bye.')], {
      revision: await revision(),
    })
    expect(added.map(({ id, externalId }) => [id, externalId])).toEqual([
      ['m4', 'msg-2'],
      ['m5', undefined],
    ])
    expect(contentsOf(await memory.transcript(key))).toEqual(['My cat is Miso.', 'I live in Bergen.', 'Bye.'])
    expect(contentsOf(await memory.replaceFrom(key, 'm5', []))).toEqual([])
    expect(contentsOf(await memory.transcript(key))).toEqual(['My cat is Miso.', 'I live in Bergen.'])
    await memory.close()
  })

  it('in a full session › makes room for as many messages', async () => {
    await using memory = await openMemory({
      upkeep: false,
      profile: { ...(await openMemory()).profile, lifetime: { messages: 3, whenFull: 'refuse' } },
    })
    await memory.append(key, [user('1'), user('2'), user('3')])
    await memory.replaceFrom(key, 'm2', [user('two'), user('three')])
    expect(contentsOf(await memory.transcript(key))).toEqual(['1', 'two', 'three'])
    await expect(memory.replaceFrom(key, 'm5', [user('a'), user('b')])).rejects.toMatchObject({ code: 'full' })
  })
})

/** Token counts of a message, which follow from its text. */
const countsOf = ({ tokens, lineTokens, weight }: { tokens: number; lineTokens: number; weight: number }) => ({
  tokens,
  lineTokens,
  weight,
})
