import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { encryptedStore, openEncryptedStore } from '../../src/stores/encrypted.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import {
  annKey,
  bobKey,
  contentsOf,
  dumpStore,
  factWithSpan,
  hex,
  nextChange,
  remoteStore,
  testKeyring,
} from './encrypted/fixtures.ts'

describe('encryptedStore over RAM', () => {
  for (const { name, run } of storeConformance(() => encryptedStore(ramStore(), testKeyring('old')))) it(name, run)
})

describe('encryptedStore over a remote store', () => {
  for (const { name, run } of storeConformance(() => encryptedStore(remoteStore(ramStore()), testKeyring('old'))))
    it(name, run)
})

describe('the content of an encrypted store', () => {
  const canary = 'Walrus7f3e91'
  const expectNoCanary = (text: string): void => {
    for (const word of text.split(/[^\w+/=]+/)) {
      expect(
        `${word} ${Buffer.from(word, 'base64').toString('latin1')} ${Buffer.from(word, 'hex').toString('latin1')}`,
      ).not.toContain(canary)
    }
  }

  verifies('H-09', 'cannot be read in the inner store: text, names, tool calls and derived values', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('old'))
    const calls = [{ id: `id ${canary}`, name: canary, arguments: `{"find":"${canary}"}` }]
    const append = [
      newMessage(`a ${canary} "swims"`, { name: canary }),
      newMessage('', { role: 'assistant', toolCalls: calls }),
      newMessage('found', { role: 'tool', toolCallId: `id ${canary}` }),
      newMessage(' ', { name: canary }),
    ]
    const put = [factWithSpan('f1', canary), { ...factWithSpan('f2', 'x'), field: canary, key: canary }]
    await store.commit(nextChange({ append, put }))
    const dump = await dumpStore(inner)
    expectNoCanary(dump)
    expect(dump).not.toMatch(/important_facts|"animal"|"span"|"arguments"|"swims|"found"/)
    expect(await inner.search(annKey, { text: `${canary} swims found animal`, limit: 9 })).toEqual([])

    const messages = append.map((message, index) => ({
      ...message,
      kind: 'message',
      id: `m${index + 1}`,
      sequence: index + 1,
      offset: index * 5,
    }))
    expect(await store.readMessages(annKey, { limit: 9 })).toEqual(messages)
    expect(await store.readHead(annKey, 9)).toMatchObject({
      firstMessage: messages[0],
      lastUserMessage: messages[0],
      recent: messages,
      derived: put,
    })
    expect((await store.search(annKey, { text: canary, limit: 9 })).map(({ entry }) => entry.id).sort()).toEqual([
      'f1',
      'f2',
      'm1',
    ])
  })

  it('leaves in the clear only what a store needs', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('old'))
    await store.commit(
      nextChange({
        append: [newMessage('secret', { name: 'Zoë' }), newMessage('\n')],
        put: [factWithSpan('f1', 'secret')],
      }),
    )
    const [message, blank] = await inner.readMessages(annKey, { limit: 2 })
    expect(message).toEqual({
      ...newMessage(expect.any(String) as string),
      kind: 'message',
      id: 'm1',
      sequence: 1,
      offset: 0,
    })
    expect(blank).toEqual({ ...newMessage('\n'), kind: 'message', id: 'm2', sequence: 2, offset: 5 })
    const { derived } = await inner.readHead(annKey, 0)
    expect(derived).toEqual([
      {
        kind: 'encrypted',
        id: '#key',
        at: 1_000,
        ciphertext: expect.stringMatching(/^[0-9a-f]{16}\.[\w+/]+=*$/),
        sources: [],
      },
      {
        kind: 'encrypted',
        id: 'f1',
        at: 1_000,
        ciphertext: expect.stringMatching(/^[\w+/]+=*$/),
        sources: [{ message: 'm1' }],
      },
    ])
  })

  it('has a key per session, and a new one after erasure', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('old'))
    const readCiphertexts = async (key: typeof annKey) =>
      (await inner.readHead(key, 0)).derived.map((entry) => (entry.kind === 'encrypted' ? entry.ciphertext : ''))
    await store.commit(nextChange({ append: [newMessage('one')] }))
    await store.commit(nextChange({ key: bobKey, append: [newMessage('one')] }))
    const before = await readCiphertexts(annKey)
    expect(await store.erase(annKey)).toEqual(['m1'])
    expect(await readCiphertexts(annKey)).toEqual([])
    await store.commit(nextChange({ epoch: 1, append: [newMessage('anew')] }))
    expect(contentsOf(await store.readMessages(annKey, { limit: 9 }))).toEqual(['anew'])
    expect(new Set([...before, ...(await readCiphertexts(annKey)), ...(await readCiphertexts(bobKey))]).size).toBe(3)
  })

  it('encrypts the same text differently each time', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('old'))
    await store.commit(nextChange({ append: [newMessage('yes'), newMessage('yes')] }))
    expect(new Set(contentsOf(await inner.readMessages(annKey, { limit: 2 }))).size).toBe(2)
  })
})

describe('encryptedStore', () => {
  it('head ignores a blank user message with a name', async () => {
    const store = await encryptedStore(ramStore(), testKeyring('old'))
    await store.commit(nextChange({ append: [newMessage('asked'), newMessage('  ', { name: 'Zoë' })] }))
    const { lastUserMessage, recent } = await store.readHead(annKey, 1)
    expect([lastUserMessage?.content, recent[0]?.content, recent[0]?.name]).toEqual(['asked', '  ', 'Zoë'])
  })

  it('a second message with an id › is refused, and the error names the id, not its digest', async () => {
    const store = await encryptedStore(ramStore(), testKeyring('old'))
    const append = [newMessage('one', { externalId: 'id "1"' })]
    await store.commit(nextChange({ append }))
    const refused = store.commit(nextChange({ id: 'another', append }))
    await expect(refused).rejects.toThrow(
      'Session acme:ann was not changed: a message has the id "id \\"1\\"" already.',
    )
  })

  it('with two processes creating the same session stores both changes', async () => {
    const inner = remoteStore(ramStore())
    const [one, two] = await Promise.all([
      encryptedStore(inner, testKeyring('old')),
      encryptedStore(inner, testKeyring('old')),
    ])
    await Promise.all([
      one.commit(nextChange({ append: [newMessage('one')] })),
      two.commit(nextChange({ append: [newMessage('two')], put: [factWithSpan('f1', 'x')] })),
    ])
    for (const store of [one, two, await encryptedStore(inner, testKeyring('old'))]) {
      expect([...contentsOf(await store.readMessages(annKey, { limit: 9 }))].sort()).toEqual(['one', 'two'])
      expect((await store.readHead(annKey, 0)).derived).toEqual([factWithSpan('f1', 'x')])
    }
  })

  it('with two concurrent first changes with a base rejects one', async () => {
    const inner = remoteStore(ramStore())
    const [one, two] = await Promise.all([
      encryptedStore(inner, testKeyring('old')),
      encryptedStore(inner, testKeyring('old')),
    ])
    const outcomes = await Promise.allSettled(
      [one, two].map((store) => store.commit(nextChange({ base: 0, append: [newMessage('first')] }))),
    )
    expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'stored')).sort()).toEqual([
      'conflict',
      'stored',
    ])
  })

  it('reads a session that another process erased and created again', async () => {
    const inner = ramStore()
    const [one, two] = [
      await encryptedStore(inner, testKeyring('old')),
      await encryptedStore(inner, testKeyring('old')),
    ]
    await one.commit(nextChange({ append: [newMessage('before the walrus')] }))
    expect(contentsOf(await two.readMessages(annKey, { limit: 9 }))).toEqual(['before the walrus'])
    await two.storeVectors('m', [
      { key: annKey, id: 'm1', epoch: 0, text: 'before the walrus', values: Float32Array.of(1, 0) },
    ])
    await one.erase(annKey)
    await one.commit(nextChange({ epoch: 1, append: [newMessage('after')] }))
    expect(contentsOf(await two.readMessages(annKey, { limit: 9 }))).toEqual(['after'])
    expect(
      await two.search(annKey, { text: 'walrus', vector: { model: 'm', values: Float32Array.of(1, 0) }, limit: 9 }),
    ).toEqual([])
    expect(contentsOf(await two.commit(nextChange({ epoch: 1, append: [newMessage('more')] })))).toEqual(['more'])
    await expect(two.commit(nextChange({ append: [newMessage('late')] }))).rejects.toMatchObject({ code: 'erased' })
  })

  it('searches by vectors without giving them to the inner store', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('old'))
    await store.commit(
      nextChange({
        append: [newMessage('cat'), newMessage(' '), newMessage('train')],
        put: [factWithSpan('f1', 'boat')],
      }),
    )
    await store.commit(nextChange({ key: parseKey('acme'), put: [factWithSpan('f2', 'plane')] }))
    const firstPage = await store.listUnembedded('m', '', 3)
    expect(firstPage.entries.map(({ key, id, text }) => `${key.id} ${id} ${text}`)).toEqual([
      ' f2 animal plane',
      'ann m1 cat',
      'ann m3 train',
    ])
    const secondPage = await store.listUnembedded('m', firstPage.next ?? '', 3)
    expect([secondPage.entries.map(({ id }) => id), secondPage.next]).toEqual([['f1'], undefined])
    const all = [...firstPage.entries, ...secondPage.entries].map((entry, index) => ({
      ...entry,
      values: Float32Array.of(Math.cos(index), Math.sin(index)),
    }))
    expect(
      await store.storeVectors('m', [
        ...all,
        { key: annKey, id: 'm9', epoch: 0, text: 'x', values: Float32Array.of(1, 0) },
      ]),
    ).toBe(4)
    expect([await store.countVectors('m'), (await inner.countVectors('m')).done]).toEqual([{ done: 4, total: 4 }, 0])
    expect((await store.listUnembedded('m', '', 9)).entries).toEqual([])
    const near = (at: number) => ({
      vector: { model: 'm', values: Float32Array.of(Math.cos(at), Math.sin(at)) },
      limit: 1,
    })
    expect((await store.search(annKey, near(2)))[0]?.entry).toMatchObject({ id: 'm3', content: 'train' })
    expect((await store.search({ scope: 'acme' }, near(0)))[0]?.entry).toEqual(factWithSpan('f2', 'plane'))
    await store.commit(nextChange({ put: [factWithSpan('f1', 'ship')], drop: ['m3'] }))
    expect([await store.countVectors('m'), (await store.search(annKey, near(2)))[0]?.entry.id]).toEqual([
      { done: 2, total: 3 },
      'm1',
    ])
  })

  it('drops vectors of entries that another process erased', async () => {
    const inner = ramStore()
    const [one, two] = [
      await encryptedStore(inner, testKeyring('old')),
      await encryptedStore(inner, testKeyring('old')),
    ]
    await one.commit(nextChange({ append: [newMessage('cat'), newMessage('dog')] }))
    const vectors = ['cat', 'dog'].map((text, at) => ({
      key: annKey,
      id: `m${at + 1}`,
      epoch: 0,
      text,
      values: Float32Array.of(1, at),
    }))
    expect(await two.storeVectors('m', vectors)).toBe(2)
    await one.erase(annKey, { entries: ['m1'] })
    const hits = await two.search(annKey, { vector: { model: 'm', values: Float32Array.of(1, 0) }, limit: 1 })
    expect(hits.map(({ entry }) => entry.id)).toEqual(['m2'])
    await one.erase(annKey)
    await one.commit(nextChange({ epoch: 1, append: [newMessage('bird')] }))
    expect(await two.storeVectors('m', vectors)).toBe(0)
  })

  it('hides and protects its key entry', async () => {
    const inner = ramStore()
    const store = await encryptedStore(inner, testKeyring('old'))
    await store.commit(nextChange({ append: [newMessage('one')], put: [factWithSpan('f1', 'x')] }))
    await store.commit(nextChange({ drop: ['#key'] }))
    expect(await store.erase(annKey, { entries: ['#key', 'm9'] })).toEqual([])
    expect((await (await encryptedStore(inner, testKeyring('old'))).readHead(annKey, 9)).derived).toEqual([
      factWithSpan('f1', 'x'),
    ])
    await expect(store.commit(nextChange({ put: [factWithSpan('#key', 'x')] }))).rejects.toMatchObject({
      code: 'bad-option',
      message: 'The entry id #key is reserved for the key of an encrypted session. Choose another id.',
    })
    expect(await store.erase(annKey)).toEqual(['m1', 'f1'])
  })

  it('after close has no keys, and leaves the given keyring intact', async () => {
    const keys = testKeyring('old')
    const store = await encryptedStore(ramStore(), keys)
    await store.commit(nextChange({ append: [newMessage('one')] }))
    await store.close()
    for (const call of [
      () => store.readHead(annKey, 0),
      () => store.readMessages(annKey, { limit: 1 }),
      () => store.commit(nextChange({ append: [newMessage('two')] })),
    ]) {
      await expect(call()).rejects.toMatchObject({
        code: 'closed',
        message: 'This encrypted store is closed and its keys are wiped. Open it again.',
      })
    }
    expect(Buffer.from(keys.current.bytes).toString('hex')).toBe(hex.old)
  })

  it('opens with a key source', async () => {
    const inner = ramStore()
    await (
      await openEncryptedStore(inner, `command:${JSON.stringify([process.execPath, '-p', `'${hex.old}'`])}`)
    ).commit(nextChange({ append: [newMessage('one')] }))
    expect(
      contentsOf(await (await encryptedStore(inner, testKeyring('old'))).readMessages(annKey, { limit: 1 })),
    ).toEqual(['one'])
    expect(inner.durability).toBe('ram')
  })
})
