import { describe, expect, it } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import type { Store } from '../../src/domain/ports.ts'
import { noExpiry } from '../../src/domain/session.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { newMessage as line } from '../../src/stores/conformance/fixtures.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { openChunks, readAll } from './byteStreams.ts'
import { conversation, createStoreWith, fact } from './histories.ts'

const manyContents = Array.from({ length: 1_201 }, (_, index) => `${index}`)

const exportAll = (store: Store) => readAll(exportBundle(store))
const readContents = async (store: Store, key: string) =>
  (await store.readMessages(parseKey(key), { limit: 9 })).map(({ content }) => content)

describe('importBundle after an interruption', () => {
  const histories = [
    conversation('acme:ann', manyContents, [3, 700, 1_201], [fact]),
    conversation('acme:bob', []),
    conversation('acme:eve', ['x']),
  ]

  it('after any commit › continues with the next import', async () => {
    const expected = await exportAll(await createStoreWith(...histories))
    let failures = 0
    for (let allowed = 0; ; allowed++) {
      const store = ramStore()
      const isComplete = await importBundle(failAfter(store, allowed), openChunks(expected)).then(
        () => true,
        () => false,
      )
      if (!isComplete) await importBundle(store, openChunks(expected))
      expect((await exportAll(store)).equals(expected)).toBe(true)
      if (isComplete) break
      failures++
    }
    expect(failures).toBe(10)
  })

  it('when aborted › throws and can be continued', async () => {
    const expected = await exportAll(await createStoreWith(...histories))
    const store = ramStore()
    const controller = new AbortController()
    const progress: number[] = []
    const stop = ({ messages }: { messages: number }) => {
      progress.push(messages)
      if (messages === 1_000) controller.abort()
    }
    await expect(
      importBundle(store, openChunks(expected), { signal: controller.signal, onProgress: stop }),
    ).rejects.toMatchObject({
      code: 'aborted',
      message:
        'The import was stopped by the caller. What was written stays; import the same bundle again to continue.',
    })
    expect(progress).toEqual([0, 500, 1_000])
    await expect(importBundle(store, openChunks(expected), { signal: controller.signal })).rejects.toMatchObject({
      message: 'The import was stopped by the caller. Nothing was written.',
    })
    await importBundle(store, openChunks(expected))
    expect((await exportAll(store)).equals(expected)).toBe(true)
  })

  it('with a concurrent write › throws conflict and keeps the write', async () => {
    const key = parseKey('acme:ann')
    const baseChange = { id: 'x', key, at: 5, epoch: 0, drop: [], expiresAt: noExpiry }
    const expected = openChunks(await exportAll(await createStoreWith(conversation('acme:ann', manyContents))))
    for (const change of [
      { ...baseChange, append: [line('mine')], put: [] },
      { ...baseChange, append: [], put: [fact] },
    ]) {
      const store = ramStore()
      const writeConcurrently = ({ messages }: { messages: number }) =>
        void (messages === 1_000 && store.commit(change))
      await expect(importBundle(store, expected, { onProgress: writeConcurrently })).rejects.toMatchObject({
        code: 'conflict',
      })
      const { lastUserMessage, derived } = await store.readHead(key, 0)
      expect([lastUserMessage?.content === 'mine', derived]).toEqual([change.append.length === 1, change.put])
    }
  })

  it('with a concurrent write and onExisting replace › throws conflict and keeps the write', async () => {
    const store = await createStoreWith(conversation('acme:ann', ['old']))
    const change = {
      id: 'x',
      key: parseKey('acme:ann'),
      at: 5,
      epoch: 0,
      append: [line('mine')],
      put: [],
      drop: [],
      expiresAt: noExpiry,
    }
    const expected = openChunks(await exportAll(await createStoreWith(conversation('acme:ann', ['new']))))
    const attempt = importBundle(store, expected, {
      onExisting: 'replace',
      onProgress: () => void store.commit(change),
    })
    await expect(attempt).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('acme:ann was written to during the import'),
    })
    expect(await readContents(store, 'acme:ann')).toEqual(['old', 'mine'])
  })

  it('with a bundle that changes between the passes › throws', async () => {
    const [one, two] = await Promise.all(
      ['a', 'b'].map(async (text) => exportAll(await createStoreWith(conversation('acme:ann', [text])))),
    )
    for (const second of [two as Buffer, (one as Buffer).subarray(0, 500)]) {
      const versions = [one as Buffer, second]
      const attempt = importBundle(ramStore(), () => openChunks(versions.shift() as Buffer)())
      await expect(attempt).rejects.toMatchObject({
        code: 'bad-bundle',
        message: expect.stringContaining('changed while it was being imported'),
      })
    }
  })
})

/** Wraps a store that fails after this many commits. */
function failAfter(store: Store, allowed: number): Store {
  let left = allowed
  return {
    ...store,
    commit: async (change) => {
      if (left-- <= 0) throw new Error('no room left on the disk')
      return store.commit(change)
    },
  }
}
