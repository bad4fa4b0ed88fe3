import type { Index, Store } from '../domain/ports.ts'
import { type Bounded, type Counted, RamAttic, type Room } from './ram/attic.ts'
import { RamShelf } from './ram/shelf.ts'
import { ramStoreOn } from './ram/store.ts'
import { RamVectors } from './ram/vectors.ts'

/**
 * The reference store: sessions in RAM, gone with the process.
 *
 * @example
 * const memory = await openMemory({ sessions: ramStore({ bytes: 1_000_000_000 }) })
 */
export function ramStore(room: Room = {}): Store & Index & Bounded & Counted {
  const attic = new RamAttic(room)
  const shelf = new RamShelf(attic)
  return {
    ...ramStoreOn(shelf, new RamVectors(shelf)),
    sessionsIn: (scope) => attic.sessionsIn(scope),
    overflowing: () => attic.overflowing(),
    rest: (now) => attic.rest(now),
    get bytes() {
      return attic.bytes
    },
  }
}

export type { Bounded, Room } from './ram/attic.ts'
export type { Pack } from './ram/fold.ts'
