import { describe, expect, it } from 'vitest'
import { type Key, parseKey } from '../../../src/domain/key.ts'
import type { EntryVector, SearchIndex, Store } from '../../../src/domain/ports.ts'
import { newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { EncryptedStoreVectors, readEntries } from '../../../src/stores/encrypted/vectors.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { annKey, bobKey, factWithSpan, nextChange } from './fixtures.ts'

const model = 'm'
const vector = (key: Key, id: string, text: string, epoch = 0): EntryVector => ({
  key,
  id,
  epoch,
  text,
  values: Float32Array.of(1, 0),
})

/** Creates the sessions `acme:ann` with three messages, one of them blank, and two facts, and `acme:bob`. */
async function createStore(): Promise<Store & SearchIndex> {
  const store = ramStore()
  await store.commit(
    nextChange({
      append: [newMessage('one'), newMessage(' '), newMessage('three')],
      put: [factWithSpan('f1', 'cat'), { ...factWithSpan('f2', ''), key: '' }, factWithSpan('f3', 'dog')],
    }),
  )
  await store.commit(nextChange({ key: bobKey, append: [newMessage('four')] }))
  return store
}

/** Lists all entries without a vector, page by page. */
async function listAll(vectors: EncryptedStoreVectors, limit: number): Promise<readonly string[]> {
  const found: string[] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const page = await vectors.unembedded(model, after, limit)
    expect(page.entries.length).toBeLessThanOrEqual(limit)
    found.push(...page.entries.map(({ key, id, text, epoch }) => `${key.id} ${id} ${text} ${epoch}`))
    after = page.next
  }
  return found
}

const all = ['ann m1 one 0', 'ann m3 three 0', 'ann f1 animal cat 0', 'ann f3 animal dog 0', 'bob m1 four 0']

describe('EncryptedStoreVectors.unembedded', () => {
  it.each([1, 2, 3, 4, 5, 6])('in pages of %d › lists every entry with text once', async (limit) => {
    expect(await listAll(new EncryptedStoreVectors(await createStore()), limit)).toEqual(all)
  })

  it('with more sessions and messages than a page of the store › lists all', async () => {
    const store = ramStore()
    const append = Array.from({ length: 1_001 }, (_, index) => newMessage(`${index}`))
    await store.commit(nextChange({ append }))
    for (let index = 0; index < 1_001; index++)
      await store.commit(nextChange({ key: parseKey(`beta:${index}`), append: [newMessage('x')] }))
    expect((await listAll(new EncryptedStoreVectors(store), 10_000)).length).toBe(2_002)
  })

  it('after some were embedded › lists the others, and for another model all', async () => {
    const vectors = new EncryptedStoreVectors(await createStore())
    expect(await vectors.embed(model, [vector(annKey, 'm1', 'one'), vector(annKey, 'f3', 'animal dog')])).toBe(2)
    expect(await listAll(vectors, 9)).toEqual([all[1], all[2], all[4]])
    expect((await vectors.unembedded('other', '', 9)).entries.length).toBe(5)
    expect([await vectors.embedded(model), await vectors.embedded('other')]).toEqual([
      { done: 2, total: 5 },
      { done: 0, total: 5 },
    ])
  })

  it('after an entry was replaced or its session erased › lists it again', async () => {
    const store = await createStore()
    const vectors = new EncryptedStoreVectors(store)
    await vectors.embed(model, [vector(annKey, 'f1', 'animal cat'), vector(bobKey, 'm1', 'four')])
    await store.commit(nextChange({ put: [{ ...factWithSpan('f1', 'cat'), at: 2_000 }] }))
    await store.erase(bobKey)
    await store.commit(nextChange({ key: bobKey, epoch: 1, append: [newMessage('four')] }))
    expect((await listAll(vectors, 9)).toSorted()).toEqual([...all.slice(0, 4), 'bob m1 four 1'].toSorted())
  })
})

describe('EncryptedStoreVectors.embed', () => {
  it('for an entry with another text or epoch, or that does not exist › stores nothing', async () => {
    const vectors = new EncryptedStoreVectors(await createStore())
    expect(
      await vectors.embed(model, [
        vector(annKey, 'm1', 'another'),
        vector(annKey, 'm1', 'one', 1),
        vector(annKey, 'm9', 'one'),
        vector(annKey, 'f9', 'animal cat'),
        vector(parseKey('acme:eve'), 'm1', 'one'),
      ]),
    ).toBe(0)
    expect(await listAll(vectors, 9)).toEqual(all)
  })

  it('of values › returns them for their model only, until they are deleted', async () => {
    const vectors = new EncryptedStoreVectors(await createStore())
    await vectors.embed(model, [vector(annKey, 'm1', 'one'), vector(annKey, 'm3', 'three')])
    expect([
      vectors.getVector(annKey, 'm1', model),
      vectors.getVector(annKey, 'm1', 'other'),
      vectors.getVector(bobKey, 'm1', model),
    ]).toEqual([Float32Array.of(1, 0), undefined, undefined])
    vectors.delete(annKey, ['m1', 'm9'])
    expect([vectors.getVector(annKey, 'm1', model), vectors.getVector(annKey, 'm3', model)]).toEqual([
      undefined,
      Float32Array.of(1, 0),
    ])
    vectors.clear()
    expect(vectors.getVector(annKey, 'm3', model)).toBeUndefined()
  })
})

describe('EncryptedStoreVectors.listVectors', () => {
  async function createVectors(): Promise<{ readonly store: Store; readonly vectors: EncryptedStoreVectors }> {
    const store = await createStore()
    await store.commit(nextChange({ key: parseKey('zeta:ann'), append: [newMessage('five')] }))
    const vectors = new EncryptedStoreVectors(store)
    await vectors.embed(model, [
      vector(annKey, 'm1', 'one'),
      vector(bobKey, 'm1', 'four'),
      vector(annKey, 'f1', 'animal cat'),
      vector(parseKey('zeta:ann'), 'm1', 'five'),
    ])
    await vectors.embed('other', [vector(annKey, 'm3', 'three')])
    return { store, vectors }
  }
  const list = async (vectors: EncryptedStoreVectors, target: object, after = 0, limit = 9) => {
    const page = await vectors.listVectors(target as never, model, after, limit)
    return [page.vectors.map(({ key, id, kind }) => `${key.id} ${id} ${kind}`), page.next]
  }

  it('of a scope or a session › returns the vectors of the model in order of writing', async () => {
    const { vectors } = await createVectors()
    expect(await list(vectors, { scope: 'acme' })).toEqual([['ann m1 message', 'bob m1 message', 'ann f1 fact'], 3])
    expect(await list(vectors, { scope: 'acme', id: 'ann' })).toEqual([['ann m1 message', 'ann f1 fact'], 3])
    expect(await list(vectors, { scope: 'none' })).toEqual([[], 0])
  })

  it('in pages › continues after a position', async () => {
    const { vectors } = await createVectors()
    expect(await list(vectors, { scope: 'acme' }, 0, 2)).toEqual([['ann m1 message', 'bob m1 message'], 2])
    expect(await list(vectors, { scope: 'acme' }, 2, 2)).toEqual([['ann f1 fact'], 3])
    expect(await list(vectors, { scope: 'acme' }, 3, 2)).toEqual([[], 3])
  })

  it('of a vector written again › returns it at its new position', async () => {
    const { vectors } = await createVectors()
    await vectors.embed(model, [vector(annKey, 'm1', 'one')])
    expect(await list(vectors, { scope: 'acme' })).toEqual([['bob m1 message', 'ann f1 fact', 'ann m1 message'], 6])
  })

  it('of entries that another process dropped, replaced or erased › deletes them', async () => {
    const { store, vectors } = await createVectors()
    await store.commit(nextChange({ drop: ['m1'], put: [{ ...factWithSpan('f1', 'cat'), at: 2_000 }] }))
    await store.erase(bobKey)
    expect(await list(vectors, { scope: 'acme' })).toEqual([[], 0])
    expect([
      vectors.getVector(annKey, 'm1', model),
      vectors.getVector(annKey, 'f1', model),
      vectors.getVector(bobKey, 'm1', model),
    ]).toEqual([undefined, undefined, undefined])
  })
})

describe('EncryptedStoreVectors after an erasure', () => {
  it('of a session that another process created again with the same message › lists no vector', async () => {
    const store = await createStore()
    const vectors = new EncryptedStoreVectors(store)
    await vectors.embed(model, [vector(bobKey, 'm1', 'four')])
    await store.erase(bobKey)
    await store.commit(nextChange({ key: bobKey, epoch: 1, append: [newMessage('four')] }))
    expect(await vectors.listVectors({ scope: bobKey.scope }, model, 0, 9)).toEqual({ vectors: [], next: 0 })
  })
})

describe('readEntries', () => {
  it('of several entries of a session › reads its head once', async () => {
    const store = await createStore()
    let reads = 0
    const readHead: Store['readHead'] = (key, recent) => {
      reads++
      return store.readHead(key, recent)
    }
    await readEntries({ ...store, readHead }, [
      { key: annKey, id: 'f1' },
      { key: annKey, id: 'f3' },
      { key: annKey, id: 'm1' },
    ])
    expect(reads).toBe(1)
  })

  it('of messages and derived entries › returns them in order, undefined for those that do not exist', async () => {
    const store = await createStore()
    const entries = await readEntries(store, [
      { key: annKey, id: 'f3' },
      { key: annKey, id: 'm3' },
      { key: annKey, id: 'm4' },
      { key: bobKey, id: 'm1' },
      { key: bobKey, id: 'f1' },
    ])
    expect(entries.map((entry) => entry && `${entry.kind} ${entry.id}`)).toEqual([
      'fact f3',
      'message m3',
      undefined,
      'message m1',
      undefined,
    ])
  })
})
