import type { Index, Store } from '../domain/ports.ts'
import { type Bounded, type Counted, RamSessionCache, type Room } from './ram/sessionCache.ts'
import { RamShelf } from './ram/sessionTable.ts'
import { ramStoreOn } from './ram/store.ts'
import { RamVectors } from './ram/vectors.ts'

/**
 * Creates the reference store: sessions live in RAM and are lost when the process ends. Without options it has no
 * memory limit and never compresses sessions.
 *
 * @example
 * const memory = await openMemory({ sessions: ramStore({ maxBytes: 1_000_000_000 }) })
 */
export function ramStore(options: Room = {}): Store & Index & Bounded & Counted {
  const cache = new RamSessionCache(options)
  const table = new RamShelf(cache)
  return {
    ...ramStoreOn(table, new RamVectors(table)),
    sessionsIn: (scope) => cache.sessionsIn(scope),
    overflowing: () => cache.overflowing(),
    rest: (now) => cache.rest(now),
    get bytes() {
      return cache.bytes
    },
  }
}

export type { Pack } from './ram/compression.ts'
export type { Bounded, Room } from './ram/sessionCache.ts'
