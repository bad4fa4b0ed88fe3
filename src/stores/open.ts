import { unknownStore } from '../domain/error.ts'
import type { Index, Store } from '../domain/ports.ts'
import { ramStore } from './ram.ts'

/** Where memory is kept if nobody says otherwise: a file in the current folder. */
export const defaultFile = 'threadkeep.db'

/** Opens the store behind a URL: `ram:`, or `sqlite:` with the path of a file. */
export async function openStore(url: string): Promise<Store & Index> {
  if (url === 'ram:') return ramStore()
  if (url.startsWith('sqlite:')) {
    // Loaded only now: a program that keeps nothing on a disk needs no database.
    const { sqliteStore } = await import('./sqlite.ts')
    return sqliteStore(url.slice('sqlite:'.length) || defaultFile)
  }
  throw unknownStore(url, 'ram: or sqlite:PATH')
}
