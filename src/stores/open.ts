import { unknownStore } from '../domain/error.ts'
import type { Index, Store } from '../domain/ports.ts'
import { ramStore } from './ram.ts'

/** Opens the store behind a URL. */
export async function openStore(url: string): Promise<Store & Index> {
  if (url === 'ram:') return ramStore()
  throw unknownStore(url, 'ram:')
}
