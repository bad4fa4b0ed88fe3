import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, vi } from 'vitest'
import { getEntryText } from '../../src/domain/entry.ts'
import { type Key, parseKey } from '../../src/domain/key.ts'
import type { IndexChanges } from '../../src/domain/ports.ts'
import { openMemory } from '../../src/index.ts'
import { ScopeIndex } from '../../src/search/scopeIndex.ts'
import { type SearchSource, StoreSearch } from '../../src/search/storeSearch.ts'
import { RamSessionTable } from '../../src/stores/ram/sessionTable.ts'
import { RamVectors } from '../../src/stores/ram/store.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createTempPaths } from './tempPaths.ts'

const newPath = createTempPaths()
const user = (content: string) => ({ role: 'user' as const, content })

describe('the search index', () => {
  it('after an erasure is rebuilt once for concurrent searches', async () => {
    const file = newPath()
    const [one, two] = [sqliteStore(file, { minSnapshotMessages: 1 }), sqliteStore(file, { minSnapshotMessages: 1 })]
    await using writer = await openMemory({ store: one })
    await using reader = await openMemory({ store: two })
    await writer.append(
      'acme:a',
      Array.from({ length: 40 }, (_, at) => user(`granite ${at}`)),
    )
    await writer.append(
      'acme:b',
      Array.from({ length: 40 }, (_, at) => user(`violin ${at}`)),
    )
    await reader.search('acme', 'granite')
    await writer.forget({ key: 'acme:a', messageId: 'm1' })
    const searches = await Promise.all(
      Array.from({ length: 8 }, (_, at) => reader.search('acme', at % 2 === 0 ? 'granite' : 'violin', { limit: 100 })),
    )
    for (const [at, hits] of searches.entries()) {
      expect([hits.length, new Set(hits.map(({ key, entry }) => `${key} ${entry.id}`)).size]).toEqual(
        at % 2 === 0 ? [39, 39] : [40, 40],
      )
      expect(hits[0]?.key).toBe(at % 2 === 0 ? 'acme:a' : 'acme:b')
    }
    await using third = await openMemory({ store: sqliteStore(file) })
    expect((await third.search('acme', 'beta', { limit: 100 })).every(({ key }) => key === 'acme:b')).toBe(true)
  })

  it('after an erasure by another process contains none of the erased text', async () => {
    const file = newPath()
    const open = () => openMemory({ store: sqliteStore(file, { minSnapshotMessages: 1 }) })
    await using writer = await open()
    await using reader = await open()
    const best = async (memory: Awaited<ReturnType<typeof open>>, query: string) =>
      (await memory.search('acme', query)).map(({ entry }) => getEntryText(entry))[0]
    await writer.append('acme:ann', [user('a swordfish for dinner'), user('other things')])
    expect(await best(reader, 'swordfish')).toBe('a swordfish for dinner')
    await writer.forget({ key: 'acme:ann' })
    await writer.append('acme:ann', [user('I like apples'), user('and pears too')])
    expect([await best(reader, 'swordfish'), await best(reader, 'apples')]).toEqual([undefined, 'I like apples'])
    await using third = await open()
    expect([await best(third, 'swordfish'), await best(third, 'pears')]).toEqual([undefined, 'and pears too'])
  })

  it('without memory for a snapshot › saves the next one, and the store can be closed', async () => {
    const file = newPath()
    await using memory = await openMemory({ store: sqliteStore(file, { minSnapshotMessages: 1 }) })
    const snapshot = vi.spyOn(ScopeIndex.prototype, 'snapshotInSteps')
    snapshot.mockImplementationOnce(() => {
      throw new RangeError('Array buffer allocation failed')
    })
    for (const text of ['granite', 'violin']) {
      await memory.append('acme:ann', [user(text)])
      await memory.search('acme', text)
    }
    await memory.close()
    using database = new DatabaseSync(file)
    expect(database.prepare('SELECT count(*) AS count FROM snapshot').get()).toEqual({ count: 1 })
    snapshot.mockRestore()
  })

  it('after a failed read starts over', async () => {
    const keys = [parseKey('acme:a'), parseKey('acme:b')]
    let fails = true
    const source: SearchSource = {
      changes: async (_, { stamp }): Promise<IndexChanges> => ({
        stamp: 1,
        lineage: '0',
        sessions: stamp === 0 ? keys : [],
      }),
      readMessages: async (key: Key, after) => {
        if (key.id === 'b' && fails) throw new Error('disk unavailable')
        return after === 0
          ? [
              {
                sequence: 1,
                at: 1,
                role: 'user',
                lineTokens: 1,
                content: key.id === 'a' ? 'alpha' : 'beta',
              },
            ]
          : []
      },
      readDerived: async () => [],
      readVectors: async (_, __, after) => ({ vectors: [], next: after }),
      readVector: async () => undefined,
      createVectorIndex: () => undefined,
      loadSnapshot: async () => undefined,
      saveSnapshot: () => undefined,
      pause: async () => undefined,
      readEntries: async (found) =>
        found.map(({ key, id }) => ({
          kind: 'fact',
          id: `${key.id} ${id}`,
          at: 1,
          field: '',
          key: '',
          value: '',
          importance: 1,
          sources: [],
        })),
    }
    const finder = new StoreSearch(source)
    await expect(finder.search({ scope: 'acme' }, { text: 'beta', limit: 9 })).rejects.toThrow('disk unavailable')
    fails = false
    expect((await finder.search({ scope: 'acme' }, { text: 'beta', limit: 9 })).map(({ entry }) => entry.id)).toEqual([
      'b m1',
    ])
    expect((await finder.search({ scope: 'acme' }, { text: 'alpha', limit: 9 })).map(({ entry }) => entry.id)).toEqual([
      'a m1',
    ])
  })
})

describe('a vector search', () => {
  it('with a vector replaced during the search finds the new one', async () => {
    const table = new RamSessionTable()
    const vectors = new RamVectors(table)
    const key = parseKey('acme')
    const put = (value: string): void => {
      table.commit({
        key,
        at: 1,
        epoch: 0,
        append: [],
        put: [{ kind: 'fact', id: 'f1', at: 1, field: 'f', key: '', value, importance: 1, sources: [] }],
        drop: [],
        expiresAt: 9,
      })
      vectors.delete(key, ['f1'])
      vectors.embed('e', [{ key, id: 'f1', epoch: 0, text: value, values: Float32Array.of(1, value.length) }])
    }
    let changeDuringSearch = (): void => put('another text')
    const finder = new StoreSearch({
      changes: async (where, { stamp }) => table.changes(where, stamp),
      readMessages: async () => [],
      readDerived: async (sessionKey) => table.head(sessionKey, 0).derived,
      readVectors: async (where, model, after, limit) => {
        changeDuringSearch()
        changeDuringSearch = () => undefined
        return vectors.listVectors(where, model, after, limit)
      },
      readVector: async (sessionKey, id, model) => vectors.getVector(sessionKey, id, model),
      createVectorIndex: (model) => vectors.createVectorIndex(model),
      loadSnapshot: async () => undefined,
      saveSnapshot: () => undefined,
      pause: async () => undefined,
      readEntries: async (found) => table.findEntries(found),
    })
    put('a text')
    const countHits = async (): Promise<number> =>
      (await finder.search(key, { vector: { model: 'e', values: Float32Array.of(1, 12) }, limit: 9 })).length
    expect([await countHits(), await countHits()]).toEqual([1, 1])
  })
})

describe('the write queue', () => {
  it('with an unserializable change rejects only that change and still closes', async () => {
    const store = sqliteStore(newPath())
    const key = parseKey('acme:ann')
    const change = { key, at: 1, epoch: 0, append: [], drop: [], expiresAt: 9 }
    const unserializable = {
      kind: 'fact' as const,
      id: 'f1',
      at: 1,
      field: 'f',
      key: '',
      value: 1n as unknown as number,
      importance: 1,
      sources: [],
    }
    const [rejected, stored] = await Promise.allSettled([
      store.commit({ ...change, put: [unserializable] }),
      store.commit({ ...change, put: [{ ...unserializable, value: 1 }] }),
    ])
    expect([rejected?.status, stored?.status]).toEqual(['rejected', 'fulfilled'])
    await store.close()
    await expect(store.readHead(key, 0)).rejects.toMatchObject({ code: 'closed' })
    await expect(store.commit({ ...change, put: [] })).rejects.toMatchObject({ code: 'closed' })
  })
})
