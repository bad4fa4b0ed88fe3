import { describe, expect, it } from 'vitest'
import type { Fact } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { noExpiry, type SessionChange } from '../../src/domain/session.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { findBundleConflicts, importBundle } from '../../src/portable/import.ts'
import { newMessage } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { openChunks, readAll } from './byteStreams.ts'
import { conversation, createStoreWith } from './histories.ts'

const ann = parseKey('acme:ann')
const fact = (id: string, value = 'x'): Fact => ({
  kind: 'fact',
  id,
  at: 5,
  field: 'key_decisions',
  key: '',
  value,
  importance: 5,
  sources: [],
})
const change = (overrides: Partial<SessionChange>): SessionChange => ({
  key: ann,
  at: 1_000,
  epoch: 0,
  append: [],
  put: [],
  drop: [],
  expiresAt: noExpiry,
  ...overrides,
})
const exportAll = (store: Store) => readAll(exportBundle(store))
const openBundle = async (store: Store) => openChunks(await exportAll(store))
const noResult = { sessions: 0, messages: 0, entries: 0, unchanged: 0, skipped: [], replaced: [] }

/** Records the changes that an import commits. */
function recordChanges(): { readonly store: Store & SearchIndex; readonly changes: SessionChange[] } {
  const store = ramStore()
  const changes: SessionChange[] = []
  return {
    store: {
      ...store,
      commit: (committed) => {
        changes.push(committed)
        return store.commit(committed)
      },
    },
    changes,
  }
}

/** Imports the sessions of one store into another and returns the commits, without their ids. */
async function importChanges(source: Store): Promise<readonly unknown[]> {
  const { store, changes } = recordChanges()
  const bundle = await exportAll(source)
  await importBundle(store, openChunks(bundle))
  expect((await exportAll(store)).equals(bundle)).toBe(true)
  expect(new Set(changes.map(({ id }) => id)).size).toBe(changes.length)
  expect(changes.flatMap(({ drop }) => drop)).toEqual([])
  // The sessions are new, not written over erased ones.
  for (const { key } of changes) expect((await store.readHead(key, 0)).epoch).toBe(0)
  return changes.map(({ at, append, put, base, from }) => [at, append.length, put.length, base, from])
}

describe('importBundle', () => {
  it('with sessions, entries and progress › counts what it wrote', async () => {
    const source = await createStoreWith(
      conversation('acme:ann', ['a', 'b'], [], [fact('f1'), fact('f2')]),
      conversation('acme:bob', ['c'], [], [fact('f1')]),
      conversation('beta', []),
    )
    const store = ramStore()
    const progress: unknown[] = []
    const result = await importBundle(store, await openBundle(source), { onProgress: (step) => progress.push(step) })
    expect(result).toEqual({ ...noResult, sessions: 3, messages: 3, entries: 3 })
    expect(progress).toEqual([
      { sessions: 0, messages: 0 },
      { sessions: 1, messages: 2 },
      { sessions: 2, messages: 3 },
      { sessions: 3, messages: 3 },
    ])
    expect(await importBundle(store, await openBundle(source))).toEqual({ ...noResult, unchanged: 3 })
    expect(await importBundle(ramStore(), await openBundle(ramStore()))).toEqual(noResult)
  })

  it('onSession › is called for complete and unchanged sessions, and stops the import between two', async () => {
    const source = await createStoreWith(
      conversation('acme:ann', ['a', 'b']),
      conversation('acme:bob', ['c']),
      conversation('acme:eve', ['d']),
    )
    const store = ramStore()
    const stopAfterFirst = (key: string): void => {
      throw new Error(`stopped after ${key}`)
    }
    await expect(importBundle(store, await openBundle(source), { onSession: stopAfterFirst })).rejects.toThrow(
      'stopped after acme:ann',
    )
    expect((await store.list({ limit: 9 })).map(({ key, messages }) => [key.id, messages])).toEqual([['ann', 2]])
    const calls: string[] = []
    await importBundle(store, await openBundle(source), {
      onSession: (key, outcome) => calls.push(`${key} ${outcome}`),
    })
    expect(calls).toEqual(['acme:ann unchanged', 'acme:bob written', 'acme:eve written'])
  })

  it('findBundleConflicts › lists sessions with other contents and writes nothing', async () => {
    const source = await createStoreWith(conversation('acme:ann', ['a']), conversation('acme:bob', ['c']))
    const store = await createStoreWith(conversation('acme:ann', ['other']))
    expect(await findBundleConflicts(store, await openBundle(source))).toEqual(['acme:ann'])
    expect(await store.list({ limit: 9 })).toHaveLength(1)
  })

  it('with a long session › reports progress after every 500 messages', async () => {
    const source = await createStoreWith(
      conversation(
        'acme:ann',
        Array.from({ length: 1_001 }, (_, index) => `${index}`),
      ),
    )
    const progress: number[] = []
    await importBundle(ramStore(), await openBundle(source), { onProgress: ({ messages }) => progress.push(messages) })
    expect(progress).toEqual([0, 500, 1_000, 1_001])
  })

  it('that is aborted › says what was written', async () => {
    const source = await createStoreWith(conversation('acme:ann', ['a']), conversation('acme:bob', ['b']))
    const [store, controller] = [ramStore(), new AbortController()]
    const attempt = async (onProgress?: () => void) =>
      importBundle(store, await openBundle(source), { signal: controller.signal, ...(onProgress && { onProgress }) })
    await expect(attempt(() => controller.abort())).rejects.toMatchObject({
      code: 'aborted',
      message:
        'The import was stopped by the caller. What was written stays; import the same bundle again to continue.',
    })
    await expect(attempt()).rejects.toMatchObject({
      code: 'aborted',
      message: 'The import was stopped by the caller. Nothing was written.',
    })
    expect(await store.list({ limit: 9 })).toEqual([])
  })

  it('with an existing session without messages but with the same times › leaves it', async () => {
    const [source, store] = [ramStore(), ramStore()]
    for (const each of [source, store]) await each.commit(change({}))
    expect(await importBundle(store, await openBundle(source))).toEqual({ ...noResult, unchanged: 1 })
    expect((await store.readHead(ann, 0)).revision).toBe(1)
  })

  it('with conflicts › names at most five of them', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((id) => `acme:${id}`)
    for (const [count, expected] of [
      [1, 'acme:a'],
      [5, 'acme:a, acme:b, acme:c, acme:d, acme:e'],
      [6, 'acme:a, acme:b, acme:c, acme:d, acme:e and 1 more'],
      [7, 'acme:a, acme:b, acme:c, acme:d, acme:e and 2 more'],
    ] as const) {
      const [store, source] = await Promise.all(
        ['old', 'new'].map((text) =>
          createStoreWith(...names.slice(0, count).map((name) => conversation(name, [text]))),
        ),
      )
      await expect(importBundle(store as Store, await openBundle(source as Store))).rejects.toMatchObject({
        code: 'conflict',
        param: 'onExisting',
        message: `The store has other contents for ${expected}. Nothing was imported. Skip or replace what the store has, or import into another scope.`,
      })
    }
  })

  it('with an unknown policy › lists the policies', async () => {
    await expect(
      importBundle(ramStore(), await openBundle(ramStore()), { onExisting: 'merge' as 'skip' }),
    ).rejects.toMatchObject({ message: 'onExisting is "merge"; it must be one of refuse, skip, replace.' })
  })

  it('with several scopes to rename › throws with both names', async () => {
    const source = await createStoreWith(conversation('acme', ['x']), conversation('acme:ann', ['x']))
    await importBundle(ramStore(), await openBundle(source), { scope: 'zeta' })
    const two = await createStoreWith(conversation('acme', ['x']), conversation('beta', ['x']))
    await importBundle(ramStore(), await openBundle(two))
    await expect(importBundle(ramStore(), await openBundle(two), { scope: 'zeta' })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'scope',
      message:
        'The bundle holds the scopes acme and beta; only a bundle of one scope can be imported into another. Export each scope by itself, or leave scope out.',
    })
  })

  it('into a session of another scope that exists › compares with it', async () => {
    const source = await createStoreWith(conversation('acme:ann', ['x']))
    const store = await createStoreWith(conversation('zeta:ann', ['y']), conversation('acme:ann', ['y']))
    const result = await importBundle(store, await openBundle(source), { scope: 'zeta', onExisting: 'skip' })
    expect(result).toEqual({ ...noResult, skipped: ['zeta:ann'] })
  })

  it('with a bundle that cannot be read the second time › passes the error on', async () => {
    const bundle = await exportAll(await createStoreWith(conversation('acme:ann', ['x'])))
    let opened = 0
    const open = async function* () {
      if (++opened === 2) throw new Error('The disk failed.')
      yield bundle
    }
    await expect(importBundle(ramStore(), open)).rejects.toThrow('The disk failed.')
  })

  it('with a bundle that another one replaces › reports the change with its cause', async () => {
    const versions = await Promise.all(
      [['a'], ['a', 'b']].map(async (contents) => exportAll(await createStoreWith(conversation('acme:ann', contents)))),
    )
    const message =
      'The bundle changed while it was being imported. Import it again when nothing writes to it; sessions written so far are continued.'
    const [one, two] = versions as [Buffer, Buffer]
    const attempt = (second: Buffer) => {
      const pending = [one, second]
      return importBundle(ramStore(), () => openChunks(pending.shift() as Buffer)())
    }
    await expect(attempt(two)).rejects.toMatchObject({ code: 'bad-bundle', message })
    await expect(attempt(one.subarray(0, -1))).rejects.toMatchObject({
      code: 'bad-bundle',
      message,
      cause: expect.objectContaining({ code: 'bad-bundle' }),
    })
  })

  it('with masks of another process › takes equal texts for the same', async () => {
    const [stored, imported] = [7, 8].map((number) =>
      createStoreWith(conversation('acme:ann', [`a ⟨secret:${number}⟩`], [], [fact('f1', `⟨secret:${number}⟩`)])),
    )
    const store = await (stored as Promise<Store>)
    expect(await importBundle(store, await openBundle(await (imported as Promise<Store>)))).toEqual({
      ...noResult,
      unchanged: 1,
    })
  })

  it('with a session that was erased and written again meanwhile › keeps it', async () => {
    const store = await createStoreWith(conversation('acme:ann', ['old']))
    const source = await createStoreWith(conversation('acme:ann', ['new']))
    const { revision } = await store.readHead(ann, 0)
    let isFirst = true
    const list: SessionChange[] = Array.from({ length: revision }, () =>
      change({ epoch: 1, append: [newMessage('mine')] }),
    )
    const readHead: Store['readHead'] = async (key, recent) => {
      const head = await store.readHead(key, recent)
      if (!isFirst) return head
      isFirst = false
      await store.erase(ann)
      for (const each of list) await store.commit(each)
      return head
    }
    await expect(
      importBundle({ ...store, readHead }, await openBundle(source), { onExisting: 'replace' }),
    ).rejects.toMatchObject({ code: 'conflict' })
    expect((await store.readMessages(ann, { limit: 9 })).map(({ content }) => content)).toEqual(list.map(() => 'mine'))
  })

  it('with a session that has entries only › compares them', async () => {
    const [source, store] = [ramStore(), ramStore()]
    await source.commit(change({ put: [fact('f1', 'new')] }))
    await store.commit(change({ put: [fact('f1', 'old')] }))
    await expect(importBundle(store, await openBundle(source))).rejects.toMatchObject({ code: 'conflict' })
  })

  it('with a session that is replaced and one that was written to meanwhile › names the session', async () => {
    const store = await createStoreWith(conversation('acme:ann', ['old']))
    const source = await createStoreWith(conversation('acme:ann', ['new']))
    let isErased = false
    const onProgress = () => {
      if (!isErased) void store.erase(ann)
      isErased = true
    }
    await expect(
      importBundle(store, await openBundle(source), { onExisting: 'replace', onProgress }),
    ).rejects.toMatchObject({
      code: 'conflict',
      message:
        'Session acme:ann was written to during the import. What was written stays; import the same bundle again.',
    })
  })
})

describe('importBundle with auxiliary records', () => {
  async function createSource(ids: readonly string[]): Promise<Store> {
    const source = await createStoreWith(conversation('acme:ann', ['a']), conversation('acme:bob', ['b']))
    for (const id of ids) await source.appendRecord(ann, { id, at: 5, body: '{}' }, 100)
    await source.appendRecord(parseKey('acme:bob'), { id: 'rb', at: 5, body: '{}' }, 100)
    return source
  }
  const idsOf = async (store: Store, key: string) =>
    (await store.records(parseKey(key), { limit: 99 })).map(({ id }) => id)

  it('into an empty store, and again with one more › adds those it lacks to their session', async () => {
    const store = ramStore()
    await importBundle(store, await openBundle(await createSource(['r1', 'r2'])))
    await importBundle(store, await openBundle(await createSource(['r1', 'r2', 'r3'])))
    expect([await idsOf(store, 'acme:ann'), await idsOf(store, 'acme:bob')]).toEqual([['r3', 'r2', 'r1'], ['rb']])
  })

  it('of many sessions › reads the records of those that have some', async () => {
    const store = ramStore()
    const read: string[] = []
    const records: Store['records'] = (key, range) => {
      read.push(`${key.id} ${range.limit === Number.MAX_SAFE_INTEGER}`)
      return store.records(key, range)
    }
    const source = await createStoreWith(conversation('acme:ann', ['a']), conversation('acme:eve', ['e']))
    await source.appendRecord(ann, { id: 'r1', at: 5, body: '{}' }, 100)
    await importBundle({ ...store, records }, await openBundle(source))
    expect(read).toEqual(['ann true'])
  })

  it('of a session that is skipped › leaves them out', async () => {
    const store = await createStoreWith(conversation('acme:ann', ['other']))
    await importBundle(store, await openBundle(await createSource(['r1'])), { onExisting: 'skip' })
    expect([await idsOf(store, 'acme:ann'), await idsOf(store, 'acme:bob')]).toEqual([[], ['rb']])
  })
})

describe('SessionWriter', () => {
  const messages = (count: number) => Array.from({ length: count }, (_, index) => newMessage(`${index}`))
  const facts = (count: number) => Array.from({ length: count }, (_, index) => fact(`f${10_000 + index}`))

  it.each([
    [1, 0, [[1_000, 1, 0, 0, { sequence: 1, offset: 0 }]]],
    [500, 0, [[1_000, 500, 0, 0, { sequence: 1, offset: 0 }]]],
    [
      501,
      0,
      [
        [1_000, 500, 0, 0, { sequence: 1, offset: 0 }],
        [1_000, 1, 0, 1, { sequence: 501, offset: 2_500 }],
      ],
    ],
    [
      499,
      2,
      [
        [1_000, 499, 1, 0, { sequence: 1, offset: 0 }],
        [1_000, 0, 1, 1, undefined],
      ],
    ],
    [
      0,
      501,
      [
        [1_000, 0, 500, 0, undefined],
        [1_000, 0, 1, 1, undefined],
      ],
    ],
  ])('with %d messages and %d entries › commits at most 500 at a time', async (messageCount, entryCount, expected) => {
    const source = ramStore()
    await source.commit(change({ append: messages(messageCount), put: facts(entryCount) }))
    expect(await importChanges(source)).toEqual(expected)
  })

  it('with a gap › starts a commit after it', async () => {
    const source = ramStore()
    await source.commit(change({ append: messages(5), drop: [] }))
    await source.erase(ann, { entries: ['m3'] })
    expect(await importChanges(source)).toEqual([
      [1_000, 2, 0, 0, { sequence: 1, offset: 0 }],
      [1_000, 2, 0, 1, { sequence: 4, offset: 15 }],
    ])
  })

  it('with numbers that were reserved › keeps the positions of all messages', async () => {
    const source = ramStore()
    await source.commit(change({ append: messages(2), from: { sequence: 3 } }))
    await source.commit(change({ append: messages(1), from: { sequence: 2 } }))
    await source.commit(change({ append: messages(1) }))
    expect(await importChanges(source)).toEqual([
      [1_000, 1, 0, 0, { sequence: 2, offset: 0 }],
      [1_000, 2, 0, 1, { sequence: 3, offset: 0 }],
      [1_000, 1, 0, 2, { sequence: 5, offset: 15 }],
    ])
    const reserved = ramStore()
    await reserved.commit(change({ append: messages(1) }))
    await reserved.commit(change({ append: messages(1), from: { sequence: 3 } }))
    expect(await importChanges(reserved)).toEqual([
      [1_000, 1, 0, 0, { sequence: 1, offset: 0 }],
      [1_000, 1, 0, 1, { sequence: 3, offset: 5 }],
    ])
  })

  it('with a stored copy of which only the expiry differs › reads it page by page and commits once', async () => {
    const { store, changes } = recordChanges()
    await store.commit(change({ append: messages(501) }))
    const source = ramStore()
    await source.commit(change({ append: messages(501), expiresAt: 9_000 }))
    let reads = 0
    const readMessages: Store['readMessages'] = (key, range) => {
      reads++
      return store.readMessages(key, range)
    }
    await importBundle({ ...store, readMessages }, await openBundle(source))
    expect([reads, changes.length]).toEqual([2, 2])
    expect((await store.readHead(ann, 0)).expiresAt).toBe(9_000)
  })

  it('with the last message erased › restores the next sequence number', async () => {
    const source = ramStore()
    await source.commit(change({ append: messages(2) }))
    await source.erase(ann, { entries: ['m2'] })
    expect(await importChanges(source)).toEqual([
      [1_000, 1, 0, 0, { sequence: 1, offset: 0 }],
      [1_000, 0, 0, 1, { sequence: 3, offset: 5 }],
    ])
  })

  it('with a session that was used later › sets the time of the last use', async () => {
    const source = ramStore()
    await source.commit(change({ append: messages(1) }))
    await source.commit(change({ at: 3_000 }))
    expect(await importChanges(source)).toEqual([
      [1_000, 1, 0, 0, { sequence: 1, offset: 0 }],
      [3_000, 0, 0, 1, undefined],
    ])
  })

  it('with an empty session › commits its start and its last use', async () => {
    const [once, twice] = [ramStore(), ramStore()]
    await once.commit(change({}))
    await twice.commit(change({}))
    await twice.commit(change({ at: 3_000 }))
    expect(await importChanges(once)).toEqual([[1_000, 0, 0, 0, undefined]])
    expect(await importChanges(twice)).toEqual([
      [1_000, 0, 0, 0, undefined],
      [3_000, 0, 0, 1, undefined],
    ])
  })

  it('with a stored beginning › appends only the rest', async () => {
    const { store, changes } = recordChanges()
    await store.commit(change({ append: messages(2) }))
    const source = ramStore()
    await source.commit(change({ append: messages(4), put: [fact('f1')] }))
    await importBundle(store, await openBundle(source))
    expect(changes.slice(1).map(({ append, put, from, base }) => [append.length, put.length, from, base])).toEqual([
      [2, 1, { sequence: 3, offset: 10 }, 1],
    ])
    expect((await exportAll(store)).equals(await exportAll(source))).toBe(true)
  })
})
