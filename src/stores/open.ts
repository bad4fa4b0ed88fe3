import { MemoryError, unknownStore } from '../domain/error.ts'
import type { Index, Store } from '../domain/ports.ts'
import { heard } from './beside.ts'
import { zstd } from './pack.ts'
import { ramStore } from './ram.ts'

/** Where memory is kept if nobody says otherwise: a file in the current folder. */
export const defaultFile = 'threadkeep.db'

/** The file behind a URL, or undefined if it is not one of a file. */
export const fileOf = (url: string): string | undefined =>
  url.startsWith('sqlite:') ? url.slice('sqlite:'.length) || defaultFile : undefined

/**
 * Opens the store behind a URL: `ram:`, or `sqlite:` with the path of a file. With a key from `file:PATH`, `env:NAME` or
 * `command:PROGRAM ARGUMENTS`, everything said in it is encrypted.
 */
export async function openStore(url: string, key?: string): Promise<Store & Index> {
  const file = fileOf(url)
  if (key !== undefined && url === 'ram:')
    throw new MemoryError(
      'bad-option',
      'ram: is not written anywhere and takes no key. Leave the key out, or choose sqlite:PATH.',
      { param: 'storeKey' },
    )
  if (url === 'ram:') return heard(ramStore(zstd === undefined ? {} : { pack: zstd }))
  if (file === undefined) throw unknownStore(url, 'ram: or sqlite:PATH')
  // Loaded only now: a program that keeps nothing on a disk needs no database.
  const { sqliteStore } = await import('./sqlite.ts')
  const store = sqliteStore(file)
  if (key === undefined) return store
  const { openSealed } = await import('./encrypted.ts')
  try {
    return await openSealed(store, key)
  } catch (error) {
    await store.close()
    throw error
  }
}
