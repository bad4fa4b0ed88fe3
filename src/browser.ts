import { checkOptions } from './domain/checkOptions.ts'
import { createUnknownStoreError, MemoryError } from './domain/error.ts'
import type { SearchIndex, Store } from './domain/ports.ts'
import type { TokenizerName } from './domain/profile.ts'
import type { Memory } from './memory.ts'
import { type MemoryOptions, openMemoryOn, type Platform } from './open.ts'
import { messageEdits } from './stores/ram/messageEdits.ts'
import { RamSessionTable } from './stores/ram/sessionTable.ts'
import { createRamStore } from './stores/ram/store.ts'
import { ascii35, chars4 } from './text/estimators.ts'
import { upperBound } from './text/upperBound.ts'

/** Browsers use upper bounds: the tables of an exact tokenizer would be larger than everything else. */
const tokenizers: Readonly<Record<TokenizerName, typeof upperBound>> = {
  exact: upperBound,
  'upper-bound': upperBound,
  'ascii-3.5': ascii35,
  'chars-4': chars4,
}

/** A RAM store with lexical search. The larger store of `threadkeep/ram` also searches by vectors. */
export function ramStore(options: Readonly<Record<string, never>> = {}): Store & SearchIndex {
  // The larger store takes options, which this one must not ignore.
  checkOptions('ramStore', options, {})
  return createRamStore(new RamSessionTable(undefined, messageEdits))
}

const unsupported = (): never => {
  throw new MemoryError('bad-option', 'Export and import need Node; they do not work in a browser.')
}

/**
 * Opens a memory in a browser or a service worker. Upkeep, secret masking, lifecycle and replay are separate entry
 * points.
 *
 * @example
 * const memory = await openMemory({ profile: 'ephemeral' })
 */
export async function openMemory(options: MemoryOptions = {}): Promise<Memory> {
  if (options.embedder !== undefined && (typeof options.store !== 'object' || options.embedding === undefined)) {
    throw new MemoryError(
      'bad-option',
      'An embedder needs a vector store and an embedding queue. Pass store: ramStore() from threadkeep/ram and embedding: createEmbeddingQueue from threadkeep/embedding.',
      { param: 'embedder' },
    )
  }
  const platform: Platform = {
    openStore: async (url: string, key?: string) => {
      if (url !== 'ram:' || key !== undefined) throw createUnknownStoreError(url, 'ram: in a browser')
      return ramStore()
    },
    bundles: { exportBundle: unsupported, importBundle: unsupported },
    tokenizer: async (name: TokenizerName) => tokenizers[name],
    // Optional, to keep the bundle small: pass `upkeep`, `masker` and `lifecycle` from their own entry points.
    lifecycle: undefined,
    upkeep: undefined,
    masker: undefined,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, ms)
        signal.addEventListener('abort', () => {
          clearTimeout(timer)
          reject(signal.reason)
        })
      }),
    clock: Date.now,
  }
  return openMemoryOn(platform, options)
}

export { parseKey } from './domain/key.ts'
export { parseProfile } from './domain/parseProfile.ts'
export { Memory } from './memory.ts'
export { profiles } from './profiles/index.ts'
export type * from './types.ts'
export { MemoryError }
