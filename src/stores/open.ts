import { createUnknownStoreError, MemoryError } from '../domain/error.ts'
import type { SearchIndex, Store } from '../domain/ports.ts'
import { wipeKeyring } from './encrypted/keyring.ts'
import { withEraseListeners } from './eraseListeners.ts'
import { ramStore } from './ram.ts'
import { textAnalysis } from './textAnalysis.ts'
import { yieldToEventLoop } from './yieldToEventLoop.ts'
import { zstdCompressor } from './zstd.ts'

/** Database file in the current folder that is used when no path is configured. */
export const defaultStoreFile = 'threadkeep.db'

/**
 * Returns the database path of a `sqlite:` URL, or undefined for any other URL. Throws `bad-option` for
 * `sqlite::memory:`, which would create a file of that name: readers and the writer have connections of their own.
 */
export function parseSqliteUrl(url: string): string | undefined {
  if (url === 'sqlite::memory:') throw createUnknownStoreError(url, 'ram: or sqlite:PATH')
  return url.startsWith('sqlite:') ? url.slice('sqlite:'.length) || defaultStoreFile : undefined
}

/**
 * Opens the store behind a URL: `ram:`, or `sqlite:PATH`. With a key source (`file:PATH`, `env:NAME` or
 * `command:PROGRAM ARGUMENTS`) the content of the store is encrypted.
 *
 * Throws `bad-option` for a key on `ram:` and for an unknown URL, `bad-secret` for keys that do not fit the store.
 */
export async function openStore(url: string, key?: string): Promise<Store & SearchIndex> {
  const file = parseSqliteUrl(url)
  if (key !== undefined && url === 'ram:')
    throw new MemoryError(
      'bad-option',
      'A ram: store is never written to disk and takes no key. Remove the key, or use sqlite:PATH.',
      { param: 'storeKey' },
    )
  if (url === 'ram:')
    return withEraseListeners(
      ramStore({
        analysis: textAnalysis,
        pause: yieldToEventLoop,
        compressor: zstdCompressor,
      }),
    )
  if (file === undefined) throw createUnknownStoreError(url, 'ram: or sqlite:PATH')
  // Imported on demand, so that RAM-only programs do not load SQLite.
  const { sqliteStore } = await import('./sqlite.ts')
  if (key === undefined) return sqliteStore(file)
  const { encryptedStore, loadKeyring } = await import('./encrypted.ts')
  const keyring = await loadKeyring(key)
  try {
    const store = sqliteStore(file, { keyring })
    return await encryptedStore(store, keyring).catch(async (error: unknown) => {
      await store.close()
      throw error
    })
  } finally {
    wipeKeyring(keyring)
  }
}
