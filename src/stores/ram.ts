import type { Index, Store } from '../domain/ports.ts'
import { RamShelf } from './ram/shelf.ts'
import { ramStoreOn } from './ram/store.ts'
import { RamVectors } from './ram/vectors.ts'

/**
 * The reference store: sessions in RAM, gone with the process.
 *
 * @example
 * const memory = await openMemory({ store: ramStore() })
 */
export function ramStore(): Store & Index {
  const shelf = new RamShelf()
  return ramStoreOn(shelf, new RamVectors(shelf))
}
