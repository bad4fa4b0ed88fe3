import type { SearchIndex, Store } from '../domain/ports.ts'
import { type BoundedStore, RamSessionCache, type RamStoreOptions, type SessionCounter } from './ram/sessionCache.ts'
import { RamSessionTable } from './ram/sessionTable.ts'
import { createRamStore } from './ram/store.ts'
import { RamVectors } from './ram/vectors.ts'

/**
 * Creates the reference store: sessions live in RAM and are lost when the process ends. Without options it has no
 * memory limit and never compresses sessions.
 *
 * @example
 * const memory = await openMemory({ sessions: ramStore({ maxBytes: 1_000_000_000 }) })
 */
export function ramStore(options: RamStoreOptions = {}): Store & SearchIndex & BoundedStore & SessionCounter {
  const cache = new RamSessionCache(options)
  const table = new RamSessionTable(cache)
  return {
    ...createRamStore(table, new RamVectors(table)),
    countSessions: (scope) => cache.countSessions(scope),
    evictionCandidate: () => cache.evictionCandidate(),
    compressIdle: (now) => cache.compressIdle(now),
    get memoryUsage() {
      return cache.memoryUsage
    },
  }
}

export type { Compressor } from './ram/compression.ts'
export type { BoundedStore, RamStoreOptions } from './ram/sessionCache.ts'
