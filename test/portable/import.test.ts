import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { openChunks, readAll } from './byteStreams.ts'
import { conversation, createStoreWith, fact } from './histories.ts'

const exportAll = (store: Store) => readAll(exportBundle(store))
const readContents = async (store: Store, key: string) =>
  (await store.readMessages(parseKey(key), { limit: 9 })).map(({ content }) => content)

describe('importBundle into a store with other contents', () => {
  const openBundle = async () =>
    openChunks(
      await exportAll(await createStoreWith(conversation('acme:ann', ['new']), conversation('acme:bob', ['new']))),
    )
  const createExisting = () => createStoreWith(conversation('acme:bob', ['old', 'older']))

  it('by default › throws an error that names them and writes nothing', async () => {
    const store = await createExisting()
    const before = await exportAll(store)
    await expect(importBundle(store, await openBundle())).rejects.toMatchObject({
      code: 'conflict',
      message:
        'The store has other contents for acme:bob. Nothing was imported. Skip or replace what the store has, or import into another scope.',
    })
    expect((await exportAll(store)).equals(before)).toBe(true)
  })

  it('with onExisting skip › skips them', async () => {
    const store = await createExisting()
    expect(await importBundle(store, await openBundle(), { onExisting: 'skip' })).toEqual({
      sessions: 1,
      messages: 1,
      entries: 0,
      unchanged: 0,
      skipped: ['acme:bob'],
      replaced: [],
    })
    expect([await readContents(store, 'acme:ann'), await readContents(store, 'acme:bob')]).toEqual([
      ['new'],
      ['old', 'older'],
    ])
  })

  it('with onExisting replace › replaces them', async () => {
    const store = await createExisting()
    expect(await importBundle(store, await openBundle(), { onExisting: 'replace' })).toMatchObject({
      sessions: 2,
      messages: 2,
      skipped: [],
      replaced: ['acme:bob'],
    })
    expect([await readContents(store, 'acme:ann'), await readContents(store, 'acme:bob')]).toEqual([['new'], ['new']])
  })

  it('with an unknown onExisting › throws', async () =>
    expect(importBundle(ramStore(), await openBundle(), { onExisting: 'merge' as 'skip' })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'onExisting',
    }))

  const other = conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5], [fact])
  it.each([
    ['another text', conversation('acme:ann', ['a', 'b', 'C', 'd', 'e'], [2, 5], [fact])],
    ['another gap', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [3, 5], [fact])],
    ['no gap', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [5], [fact])],
    ['more messages', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e', 'f'], [2, 5], [fact])],
    ['more messages that are erased', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e', 'f'], [2, 5, 6], [fact])],
    ['an erased first message', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [1, 2, 5], [fact])],
    ['an erased last message', conversation('acme:ann', ['a', 'b', 'c', 'd'], [2, 4], [fact])],
    ['a last message that is not erased', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2], [fact])],
    ['another entry', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5], [{ ...fact, value: 'y' }])],
    ['one entry more', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5], [fact, { ...fact, id: 'f2' }])],
    [
      'another beginning',
      { ...other, steps: [{ ...other.steps[0], at: 999 }, ...other.steps.slice(1)] } as typeof other,
    ],
  ])('with %s › throws conflict', async (_, history) => {
    const store = await createStoreWith(history)
    const before = await exportAll(store)
    await expect(importBundle(store, openChunks(await exportAll(await createStoreWith(other))))).rejects.toMatchObject({
      code: 'conflict',
    })
    expect((await exportAll(store)).equals(before)).toBe(true)
  })

  it.each([
    ['fewer messages', conversation('acme:ann', ['a', 'b', 'c'], [2])],
    ['fewer messages, the last one erased', conversation('acme:ann', ['a', 'b'], [2])],
    ['fewer entries', conversation('acme:ann', ['a', 'b', 'c', 'd', 'e'], [2, 5])],
    ['another expiry', { ...other, expiresAt: 9_000 }],
  ])('with the same session but %s › continues it', async (_, history) => {
    const store = await createStoreWith(history)
    const expected = await exportAll(await createStoreWith(other))
    expect(await importBundle(store, openChunks(expected))).toMatchObject({ sessions: 1, replaced: [] })
    expect((await exportAll(store)).equals(expected)).toBe(true)
  })

  it('with a different expiry only › sets it', async () => {
    const store = await createStoreWith({ ...conversation('acme:ann', ['a']), expiresAt: 9_000 })
    await importBundle(store, openChunks(await exportAll(await createStoreWith(conversation('acme:ann', ['a'])))))
    expect((await store.readHead(parseKey('acme:ann'), 0)).expiresAt).toBe(noExpiry)
  })

  it('with an existing session without messages › replaces it', async () => {
    const store = ramStore()
    await store.commit({
      id: 'a',
      key: parseKey('acme:ann'),
      at: 5,
      epoch: 0,
      append: [],
      put: [],
      drop: [],
      expiresAt: noExpiry,
    })
    const expected = await exportAll(await createStoreWith(other))
    await importBundle(store, openChunks(expected))
    expect((await exportAll(store)).equals(expected)).toBe(true)
  })
})

describe('importBundle into another scope', () => {
  it('with a bundle of one scope › renames the scope of every session', async () => {
    const store = ramStore()
    await importBundle(
      store,
      openChunks(await exportAll(await createStoreWith(conversation('acme', ['x']), conversation('acme:ann', ['x'])))),
      {
        scope: 'zeta',
      },
    )
    expect((await store.list({ limit: 9 })).map(({ key }) => `${key.scope} ${key.id}`)).toEqual(['zeta ', 'zeta ann'])
  })

  it('with a bundle of several scopes › throws', async () => {
    const store = ramStore()
    const bundle = openChunks(
      await exportAll(await createStoreWith(conversation('acme:ann', ['x']), conversation('beta:ann', ['x']))),
    )
    await expect(importBundle(store, bundle, { scope: 'zeta' })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'scope',
    })
    await expect(importBundle(store, bundle, { scope: 'no spaces' })).rejects.toMatchObject({ code: 'bad-key' })
    expect(await store.list({ limit: 9 })).toEqual([])
  })
})
