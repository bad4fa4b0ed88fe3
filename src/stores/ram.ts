import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import { anyFunction, anyObject, integerAtLeast, positiveNumber } from '../domain/error.ts'
import type { MemoryLimit, SearchIndex, SessionCounter, Store, StoreCapabilities } from '../domain/ports.ts'
import { messageEdits } from './ram/messageEdits.ts'
import { RamSessionCache, type RamStoreOptions } from './ram/sessionCache.ts'
import { RamSessionTable } from './ram/sessionTable.ts'
import { createRamStore, RamVectors } from './ram/store.ts'

/** A store in RAM, which has a memory limit and counts its sessions. */
export type RamStore = Store &
  SearchIndex & {
    readonly capabilities: StoreCapabilities & {
      readonly memoryLimit: MemoryLimit
      readonly sessionCounter: SessionCounter
    }
  }

const ramOptionChecks: OptionChecks<RamStoreOptions> = {
  analysis: anyObject,
  maxBytes: positiveNumber,
  compressor: anyObject,
  compressAfterMs: integerAtLeast(0),
  maxUncompressedBytes: integerAtLeast(0),
  pause: anyFunction,
}

/**
 * Creates the reference store: sessions live in RAM and are lost when the process ends. Without options it
 * holds up to 512 MB and never compresses sessions.
 *
 * @example
 * const memory = await openMemory({ sessions: ramStore({ maxBytes: 1_000_000_000 }) })
 */
export function ramStore(options: RamStoreOptions = {}): RamStore {
  checkOptions<RamStoreOptions>('ramStore', options, ramOptionChecks)
  const cache = new RamSessionCache(options)
  const table = new RamSessionTable(cache, messageEdits)
  const store = createRamStore(table, new RamVectors(table), options.analysis, options.pause)
  return {
    ...store,
    capabilities: {
      memoryLimit: cache,
      sessionCounter: cache,
      ...options.analysis,
    },
  }
}

export type { Compressor } from './ram/compression.ts'
export type { RamStoreOptions } from './ram/sessionCache.ts'
