import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { storeConformance } from '../../src/stores/conformance.ts'
import { openSealed, sealedStore } from '../../src/stores/encrypted.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { verifies } from '../requirements/verifies.ts'
import { ann, bob, change, contents, distant, dump, fact, hex, ring, said } from './encrypted/stage.ts'

describe('a sealed store over RAM', () => {
  for (const { name, run } of storeConformance(() => sealedStore(ramStore(), ring('old')))) it(name, run)
})

describe('a sealed store over a store elsewhere', () => {
  for (const { name, run } of storeConformance(() => sealedStore(distant(ramStore()), ring('old')))) it(name, run)
})

describe('what is sealed', () => {
  const canary = 'Walrus7f3e91'
  const hidesCanary = (text: string): void => {
    for (const word of text.split(/[^\w+/=]+/)) {
      expect(
        `${word} ${Buffer.from(word, 'base64').toString('latin1')} ${Buffer.from(word, 'hex').toString('latin1')}`,
      ).not.toContain(canary)
    }
  }

  verifies(
    'H-09',
    'what is at rest is encrypted: no text, name, tool call or derived value can be read in the inner store',
    async () => {
      const inner = ramStore()
      const store = await sealedStore(inner, ring('old'))
      const calls = [{ id: `id ${canary}`, name: canary, arguments: `{"find":"${canary}"}` }]
      const append = [
        said(`a ${canary} "swims"`, { name: canary }),
        said('', { role: 'assistant', calls }),
        said('found', { role: 'tool', answers: `id ${canary}` }),
        said(' ', { name: canary }),
      ]
      const put = [fact('f1', canary), { ...fact('f2', 'x'), field: canary, key: canary }]
      await store.commit(change({ append, put }))
      const kept = await dump(inner)
      hidesCanary(kept)
      expect(kept).not.toMatch(/important_facts|"animal"|"span"|"arguments"|"swims|"found"/)
      expect(await inner.search(ann, { text: `${canary} swims found animal`, limit: 9 })).toEqual([])

      const messages = append.map((one, at) => ({
        ...one,
        kind: 'message',
        id: `m${at + 1}`,
        sequence: at + 1,
        offset: at * 5,
      }))
      expect(await store.page(ann, { limit: 9 })).toEqual(messages)
      expect(await store.head(ann, 9)).toMatchObject({
        first: messages[0],
        asked: messages[0],
        recent: messages,
        derived: put,
      })
      expect((await store.search(ann, { text: canary, limit: 9 })).map(({ entry }) => entry.id).sort()).toEqual([
        'f1',
        'f2',
        'm1',
      ])
    },
  )

  it('leaves in the clear what a store needs to keep order, and no more', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('old'))
    await store.commit(change({ append: [said('secret', { name: 'Zoë' }), said('\n')], put: [fact('f1', 'secret')] }))
    const [message, blank] = await inner.page(ann, { limit: 2 })
    expect(message).toEqual({
      ...said(expect.any(String) as string),
      kind: 'message',
      id: 'm1',
      sequence: 1,
      offset: 0,
    })
    expect(blank).toEqual({ ...said('\n'), kind: 'message', id: 'm2', sequence: 2, offset: 5 })
    const { derived } = await inner.head(ann, 0)
    expect(derived).toEqual([
      { kind: 'sealed', id: '#key', at: 1_000, box: expect.stringMatching(/^[0-9a-f]{16}\.[\w+/]+=*$/), sources: [] },
      { kind: 'sealed', id: 'f1', at: 1_000, box: expect.stringMatching(/^[\w+/]+=*$/), sources: [{ message: 'm1' }] },
    ])
  })

  it('has a key for each session, and another after it was forgotten', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('old'))
    const keyOf = async (key: typeof ann) =>
      (await inner.head(key, 0)).derived.map((entry) => (entry.kind === 'sealed' ? entry.box : ''))
    await store.commit(change({ append: [said('one')] }))
    await store.commit(change({ key: bob, append: [said('one')] }))
    const before = await keyOf(ann)
    expect(await store.erase(ann)).toEqual(['m1'])
    expect(await keyOf(ann)).toEqual([])
    await store.commit(change({ epoch: 1, append: [said('anew')] }))
    expect(contents(await store.page(ann, { limit: 9 }))).toEqual(['anew'])
    expect(new Set([...before, ...(await keyOf(ann)), ...(await keyOf(bob))]).size).toBe(3)
  })

  it('never seals the same text the same way twice', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('old'))
    await store.commit(change({ append: [said('yes'), said('yes')] }))
    expect(new Set(contents(await inner.page(ann, { limit: 2 }))).size).toBe(2)
  })
})

describe('a sealed store', () => {
  it('takes the newest message of the user that can be shown as the question, whatever a blank one is called', async () => {
    const store = await sealedStore(ramStore(), ring('old'))
    await store.commit(change({ append: [said('asked'), said('  ', { name: 'Zoë' })] }))
    const { asked, recent } = await store.head(ann, 1)
    expect([asked?.content, recent[0]?.content, recent[0]?.name]).toEqual(['asked', '  ', 'Zoë'])
  })

  it('lets two processes begin the same session at once', async () => {
    const inner = distant(ramStore())
    const [one, two] = await Promise.all([sealedStore(inner, ring('old')), sealedStore(inner, ring('old'))])
    await Promise.all([
      one.commit(change({ append: [said('one')] })),
      two.commit(change({ append: [said('two')], put: [fact('f1', 'x')] })),
    ])
    for (const store of [one, two, await sealedStore(inner, ring('old'))]) {
      expect([...contents(await store.page(ann, { limit: 9 }))].sort()).toEqual(['one', 'two'])
      expect((await store.head(ann, 0)).derived).toEqual([fact('f1', 'x')])
    }
  })

  it('tells the loser of a race who had decided on what was read', async () => {
    const inner = distant(ramStore())
    const [one, two] = await Promise.all([sealedStore(inner, ring('old')), sealedStore(inner, ring('old'))])
    const outcomes = await Promise.allSettled(
      [one, two].map((store) => store.commit(change({ base: 0, append: [said('first')] }))),
    )
    expect(outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'stored')).sort()).toEqual([
      'conflict',
      'stored',
    ])
  })

  it('follows a session that another process forgot and began anew', async () => {
    const inner = ramStore()
    const [one, two] = [await sealedStore(inner, ring('old')), await sealedStore(inner, ring('old'))]
    await one.commit(change({ append: [said('before the walrus')] }))
    expect(contents(await two.page(ann, { limit: 9 }))).toEqual(['before the walrus'])
    await two.embed('m', [{ key: ann, id: 'm1', epoch: 0, text: 'before the walrus', values: Float32Array.of(1, 0) }])
    await one.erase(ann)
    await one.commit(change({ epoch: 1, append: [said('after')] }))
    expect(contents(await two.page(ann, { limit: 9 }))).toEqual(['after'])
    expect(
      await two.search(ann, { text: 'walrus', vector: { model: 'm', values: Float32Array.of(1, 0) }, limit: 9 }),
    ).toEqual([])
    expect(contents(await two.commit(change({ epoch: 1, append: [said('more')] })))).toEqual(['more'])
    await expect(two.commit(change({ append: [said('late')] }))).rejects.toMatchObject({ code: 'erased' })
  })

  it('keeps vectors to itself and finds by them', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('old'))
    await store.commit(change({ append: [said('cat'), said(' '), said('train')], put: [fact('f1', 'boat')] }))
    await store.commit(change({ key: parseKey('acme'), put: [fact('f2', 'plane')] }))
    const offered = await store.unembedded('m', '', 3)
    expect(offered.entries.map(({ key, id, text }) => `${key.id} ${id} ${text}`)).toEqual([
      ' f2 animal plane',
      'ann m1 cat',
      'ann m3 train',
    ])
    const rest = await store.unembedded('m', offered.next ?? '', 3)
    expect([rest.entries.map(({ id }) => id), rest.next]).toEqual([['f1'], undefined])
    const all = [...offered.entries, ...rest.entries].map((one, at) => ({
      ...one,
      values: Float32Array.of(Math.cos(at), Math.sin(at)),
    }))
    expect(
      await store.embed('m', [...all, { key: ann, id: 'm9', epoch: 0, text: 'x', values: Float32Array.of(1, 0) }]),
    ).toBe(4)
    expect([await store.embedded('m'), (await inner.embedded('m')).done]).toEqual([{ done: 4, total: 4 }, 0])
    expect((await store.unembedded('m', '', 9)).entries).toEqual([])
    const near = (at: number) => ({
      vector: { model: 'm', values: Float32Array.of(Math.cos(at), Math.sin(at)) },
      limit: 1,
    })
    expect((await store.search(ann, near(2)))[0]?.entry).toMatchObject({ id: 'm3', content: 'train' })
    expect((await store.search({ scope: 'acme' }, near(0)))[0]?.entry).toEqual(fact('f2', 'plane'))
    await store.commit(change({ put: [fact('f1', 'ship')], drop: ['m3'] }))
    expect([await store.embedded('m'), (await store.search(ann, near(2)))[0]?.entry.id]).toEqual([
      { done: 2, total: 3 },
      'm1',
    ])
  })

  it('lets go of vectors of what another process forgot', async () => {
    const inner = ramStore()
    const [one, two] = [await sealedStore(inner, ring('old')), await sealedStore(inner, ring('old'))]
    await one.commit(change({ append: [said('cat'), said('dog')] }))
    const vectors = ['cat', 'dog'].map((text, at) => ({
      key: ann,
      id: `m${at + 1}`,
      epoch: 0,
      text,
      values: Float32Array.of(1, at),
    }))
    expect(await two.embed('m', vectors)).toBe(2)
    await one.erase(ann, { entries: ['m1'] })
    const hits = await two.search(ann, { vector: { model: 'm', values: Float32Array.of(1, 0) }, limit: 1 })
    expect(hits.map(({ entry }) => entry.id)).toEqual(['m2'])
    await one.erase(ann)
    await one.commit(change({ epoch: 1, append: [said('bird')] }))
    expect(await two.embed('m', vectors)).toBe(0)
  })

  it('keeps the entry with its key to itself', async () => {
    const inner = ramStore()
    const store = await sealedStore(inner, ring('old'))
    await store.commit(change({ append: [said('one')], put: [fact('f1', 'x')] }))
    await store.commit(change({ drop: ['#key'] }))
    expect(await store.erase(ann, { entries: ['#key', 'm9'] })).toEqual([])
    expect((await (await sealedStore(inner, ring('old'))).head(ann, 9)).derived).toEqual([fact('f1', 'x')])
    await expect(store.commit(change({ put: [fact('#key', 'x')] }))).rejects.toMatchObject({
      code: 'bad-option',
      message: 'The entry id #key is kept for the key of a sealed session; choose another.',
    })
    expect(await store.erase(ann)).toEqual(['m1', 'f1'])
  })

  it('has no keys left once it is closed, and leaves those it was given alone', async () => {
    const keys = ring('old')
    const store = await sealedStore(ramStore(), keys)
    await store.commit(change({ append: [said('one')] }))
    await store.close()
    for (const late of [
      () => store.head(ann, 0),
      () => store.page(ann, { limit: 1 }),
      () => store.commit(change({ append: [said('two')] })),
    ]) {
      await expect(late()).rejects.toMatchObject({
        code: 'closed',
        message: 'This sealed store is closed and its keys are gone; open it again.',
      })
    }
    expect(Buffer.from(keys.current.bytes).toString('hex')).toBe(hex.old)
  })

  it('is opened with the name of where its key comes from', async () => {
    const inner = ramStore()
    await (await openSealed(inner, `command:${JSON.stringify([process.execPath, '-p', `'${hex.old}'`])}`)).commit(
      change({ append: [said('one')] }),
    )
    expect(contents(await (await sealedStore(inner, ring('old'))).page(ann, { limit: 1 }))).toEqual(['one'])
    expect(inner.durability).toBe('ram')
  })
})
