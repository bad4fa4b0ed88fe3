import { MemoryError, unknownStore } from './domain/error.ts'
import type { Index, Store } from './domain/ports.ts'
import type { TokenizerName } from './domain/profile.ts'
import type { Memory } from './memory.ts'
import { type MemoryOptions, openOn } from './open.ts'
import { RamShelf } from './stores/ram/shelf.ts'
import { ramStoreOn } from './stores/ram/store.ts'
import { ascii35, chars4 } from './text/estimators.ts'
import { upperBound } from './text/upperBound.ts'

/** In a browser, counts are bounded from above: the tables of an exact tokenizer would weigh more than everything else. */
const tokenizers: Readonly<Record<TokenizerName, typeof upperBound>> = {
  exact: upperBound,
  'upper-bound': upperBound,
  'ascii-3.5': ascii35,
  'chars-4': chars4,
}

/** Sessions in RAM, found by words. The store of `threadkeep/ram` finds by meaning too, and weighs more. */
export const ramStore = (): Store & Index => ramStoreOn(new RamShelf())

const elsewhere = (): never => {
  throw new MemoryError('bad-option', 'Bundles are written and read by Node, not in a browser.')
}

/**
 * Opens a memory in a browser or a service worker.
 *
 * @example
 * const memory = await openMemory({ profile: 'ephemeral' })
 */
export async function openMemory(options: MemoryOptions = {}): Promise<Memory> {
  if (options.embedder !== undefined && (typeof options.store !== 'object' || options.embedding === undefined)) {
    const right = 'pass store: ramStore() from threadkeep/ram and embedding: embeddingWith from threadkeep/embedding.'
    throw new MemoryError(
      'bad-option',
      `An embedder needs a store that keeps vectors, and somebody who makes them: ${right}`,
      { param: 'embedder' },
    )
  }
  const platform = {
    openStore: async (url: string, key?: string) => {
      if (url !== 'ram:' || key !== undefined) throw unknownStore(url, 'ram: in a browser')
      return ramStore()
    },
    portable: { exportBundle: elsewhere, importBundle: elsewhere },
    tokenizer: async (name: TokenizerName) => tokenizers[name],
    // Imports of their own: `upkeep: upkeepWith()` from threadkeep/upkeep, `barrier: secretBarrier` from threadkeep/secrets.
    // `lifecycle: lifecycleWith()` from threadkeep/lifecycle.
    lifecycle: undefined,
    upkeep: undefined,
    barrier: undefined,
    clock: Date.now,
  }
  return openOn(platform, options)
}

export { parseKey } from './domain/key.ts'
export { parseProfile } from './domain/parseProfile.ts'
export { Memory } from './memory.ts'
export { profiles } from './profiles/index.ts'
export type { MemoryOptions }
export { MemoryError }
