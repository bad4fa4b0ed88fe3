import { MemoryError, unknownStore } from './domain/error.ts'
import type { TokenizerName } from './domain/profile.ts'
import type { Memory } from './memory.ts'
import { type MemoryOptions, openOn } from './open.ts'
import { ramStore } from './stores/ram.ts'
import { ascii35, chars4 } from './text/estimators.ts'
import { upperBound } from './text/upperBound.ts'

/** In a browser, counts are bounded from above: the tables of an exact tokenizer would weigh more than everything else. */
const tokenizers: Readonly<Record<TokenizerName, typeof upperBound>> = { exact: upperBound, 'upper-bound': upperBound, 'ascii-3.5': ascii35, 'chars-4': chars4 }

const elsewhere = (): never => {
  throw new MemoryError('bad-option', 'Bundles are written and read by Node, not in a browser.')
}

/**
 * Opens a memory in a browser or a service worker.
 *
 * @example
 * const memory = await openMemory({ profile: 'ephemeral' })
 */
export function openMemory(options: MemoryOptions = {}): Promise<Memory> {
  const platform = {
    openStore: async (url: string, key?: string) => {
      if (url !== 'ram:' || key !== undefined) throw unknownStore(url, 'ram: in a browser')
      return ramStore()
    },
    portable: { exportBundle: elsewhere, importBundle: elsewhere },
    tokenizer: async (name: TokenizerName) => tokenizers[name],
    clock: Date.now,
    newId: () => crypto.randomUUID(),
  }
  return openOn(platform, options)
}

export { parseKey } from './domain/key.ts'
export { parseProfile } from './domain/parseProfile.ts'
export { Memory } from './memory.ts'
export { profiles } from './profiles/index.ts'
export { ramStore } from './stores/ram.ts'
export type { MemoryOptions }
export { MemoryError }
