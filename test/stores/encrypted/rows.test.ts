import { afterEach, describe, expect, vi } from 'vitest'
import type { Scope } from '../../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { encryptedStore } from '../../../src/stores/encrypted.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { verifies } from '../../requirements/verifies.ts'
import { testKeyring } from './fixtures.ts'

const acme = 'acme' as Scope
const first = { namespace: ['notes'], key: 'a' }
const second = { namespace: ['notes'], key: 'b' }
const openOver = (inner: Store & SearchIndex): Promise<Store> => encryptedStore(inner, testKeyring('old'))
const readValue = async (store: Store): Promise<unknown> => (await store.table.readRows(acme, [first]))[0]?.value

afterEach(() => vi.restoreAllMocks())

describe('rows of an encrypted store', () => {
  verifies('X-08', 'modified or copied to another row › are rejected, until they are deleted', async () => {
    const inner = ramStore()
    const { table } = await openOver(inner)
    await table.writeRows(acme, 1, [{ ...first, value: 'walrus' }])
    const [stored] = await inner.table.readRows(acme, [first])
    await inner.table.writeRows(acme, 2, [{ ...second, value: stored?.value ?? '' }])
    const corrupt = {
      code: 'corrupt',
      message: expect.stringMatching(
        /^Row .*b.* of acme was modified, or copied from elsewhere, and cannot be decrypted\. Restore it from a backup or delete it\.$/,
      ),
    }
    await expect(table.readRows(acme, [second])).rejects.toMatchObject(corrupt)
    await expect(table.listRows(acme, { prefix: ['notes'], limit: 9 })).rejects.toMatchObject(corrupt)
    expect((await table.readRows(acme, [first]))[0]?.value).toBe('walrus')
    await table.writeRows(acme, 3, [{ ...second, value: undefined }])
    expect(await table.listRows(acme, { prefix: ['notes'], limit: 9 })).toHaveLength(1)
  })

  verifies('X-08', 'that were written without encryption › are rejected', async () => {
    const inner = ramStore()
    const { table } = await openOver(inner)
    await inner.table.writeRows(acme, 1, [{ ...first, value: 'plain' }])
    await expect(table.readRows(acme, [first])).rejects.toMatchObject({ code: 'corrupt' })
  })

  verifies('X-08', 'erased by another process while they are written › are not stored', async () => {
    const inner = ramStore()
    const [store, other] = [await openOver(inner), await openOver(inner)]
    await store.table.writeRows(acme, 1, [{ ...first, value: 'old' }])
    const write = inner.table.writeRows.bind(inner.table)
    vi.spyOn(inner.table, 'writeRows').mockImplementationOnce(async (...change) => {
      await other.table.eraseRows(acme)
      await write(...change)
    })
    await expect(store.table.writeRows(acme, 2, [{ ...first, value: 'walrus' }])).rejects.toMatchObject({
      code: 'erased',
      message:
        'The rows of acme were erased while this write was in progress; nothing was stored. Retry if it is still needed.',
    })
    expect(await inner.table.listRows(acme, { prefix: ['notes'], limit: 9 })).toEqual([])
    await store.table.writeRows(acme, 3, [{ ...first, value: 'again' }])
    expect([await readValue(store), await readValue(other)]).toEqual(['again', 'again'])
  })

  verifies(
    'X-08',
    'erased and written by another process while they are written › keep those of the other',
    async () => {
      const inner = ramStore()
      const [store, other] = [await openOver(inner), await openOver(inner)]
      await store.table.writeRows(acme, 1, [{ ...first, value: 'old' }])
      const write = inner.table.writeRows.bind(inner.table)
      vi.spyOn(inner.table, 'writeRows').mockImplementationOnce(async (...change) => {
        await other.table.eraseRows(acme)
        await other.table.writeRows(acme, 2, [{ ...second, value: 'other' }])
        await write(...change)
      })
      await expect(store.table.writeRows(acme, 3, [{ ...first, value: 'walrus' }])).rejects.toMatchObject({
        code: 'erased',
      })
      const rows = await store.table.listRows(acme, { prefix: ['notes'], limit: 9 })
      expect(rows.map(({ key, value }) => [key, value])).toEqual([['b', 'other']])
    },
  )

  verifies('X-08', 'erased and written by another process while they are read › are read anew', async () => {
    const inner = ramStore()
    const [store, other] = [await openOver(inner), await openOver(inner)]
    await store.table.writeRows(acme, 1, [{ ...first, value: 'old' }])
    const read = inner.table.readRows.bind(inner.table)
    vi.spyOn(inner.table, 'readRows').mockImplementationOnce(async (...range) => {
      await other.table.eraseRows(acme)
      await other.table.writeRows(acme, 2, [{ ...first, value: 'new' }])
      return read(...range)
    })
    expect(await readValue(store)).toBe('new')
  })

  verifies('X-08', 'first written by two processes at once › are readable by both', async () => {
    const inner = ramStore()
    const [store, other] = [await openOver(inner), await openOver(inner)]
    const commit = inner.commit.bind(inner)
    vi.spyOn(inner, 'commit').mockImplementationOnce(async (change) => {
      await other.table.writeRows(acme, 1, [{ ...second, value: 'other' }])
      return commit(change)
    })
    await store.table.writeRows(acme, 2, [{ ...first, value: 'walrus' }])
    const values = async ({ table }: Store) => (await table.readRows(acme, [first, second])).map((row) => row?.value)
    expect([await values(store), await values(other)]).toEqual([
      ['walrus', 'other'],
      ['walrus', 'other'],
    ])
  })

  verifies('X-08', 'first written while another process writes and erases some › are readable by both', async () => {
    const inner = ramStore()
    const [store, other] = [await openOver(inner), await openOver(inner)]
    const commit = inner.commit.bind(inner)
    vi.spyOn(inner, 'commit').mockImplementationOnce(async (change) => {
      await other.table.writeRows(acme, 1, [{ ...second, value: 'other' }])
      await other.table.eraseRows(acme)
      return commit(change)
    })
    await store.table.writeRows(acme, 2, [{ ...first, value: 'walrus' }])
    expect([await readValue(store), await readValue(other)]).toEqual(['walrus', 'walrus'])
  })

  verifies('X-08', 'whose key cannot be stored › are not written', async () => {
    const inner = ramStore()
    const store = await openOver(inner)
    vi.spyOn(inner, 'commit').mockRejectedValueOnce(new Error('The disk is full.'))
    await expect(store.table.writeRows(acme, 1, [{ ...first, value: 'walrus' }])).rejects.toThrow('The disk is full.')
    expect(await inner.table.listRows(acme, { prefix: ['notes'], limit: 9 })).toEqual([])
  })
})
