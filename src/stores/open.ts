import { createUnknownStoreError, MemoryError } from '../domain/error.ts'
import type { Keyring, SearchIndex, Store } from '../domain/ports.ts'
import { wipeKeyring } from './encrypted/keyring.ts'
import { withEraseListeners } from './eraseListeners.ts'
import { isDatabaseUrl } from './postgres/url.ts'
import { ramStore } from './ram.ts'
import { isRedisUrl } from './redis/url.ts'
import { textAnalysis } from './textAnalysis.ts'
import { yieldWhenLong } from './yieldToEventLoop.ts'
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

const supportedUrls = 'ram:, sqlite:PATH, postgres://…, pglite:PATH or redis://…'

/**
 * Opens the store behind a URL: `ram:`, `sqlite:PATH`, `postgres://USER:PASSWORD@HOST/DATABASE`, `pglite:PATH` or
 * `redis://HOST:PORT`. With a key source (`file:PATH`, `env:NAME` or `command:PROGRAM ARGUMENTS`) the content of the
 * store is encrypted.
 *
 * Throws `bad-option` for a key on `ram:` or `redis:` and for an unknown URL, `bad-secret` for keys that do not fit the
 * store.
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
        pause: yieldWhenLong,
        compressor: zstdCompressor,
      }),
    )
  if (isRedisUrl(url)) return openRedis(url, key)
  if (file === undefined && !isDatabaseUrl(url)) throw createUnknownStoreError(url, supportedUrls)
  if (key === undefined) return openDurableStore(url, file)
  const { encryptedStore, loadKeyring } = await import('./encrypted.ts')
  const keyring = await loadKeyring(key)
  try {
    const store = await openDurableStore(url, file, keyring)
    return await encryptedStore(store, keyring).catch(async (error: unknown) => {
      await store.close()
      throw error
    })
  } finally {
    wipeKeyring(keyring)
  }
}

/** Imported on demand, so that other programs do not load the client of Redis. */
async function openRedis(url: string, key: string | undefined): Promise<Store & SearchIndex> {
  if (key !== undefined)
    throw new MemoryError(
      'bad-option',
      'A Redis store keeps sessions in memory only and takes no key. Remove the key, or use sqlite:PATH.',
      { param: 'storeKey' },
    )
  const { redisStore } = await import('./redis.ts')
  return redisStore(url)
}

/** Modules are imported on demand, so that RAM-only programs load neither SQLite nor the client of PostgreSQL. */
async function openDurableStore(
  url: string,
  file: string | undefined,
  keyring?: Keyring,
): Promise<Store & SearchIndex> {
  if (file === undefined)
    return (await import('./postgres.ts')).postgresStore(url, { encrypted: keyring !== undefined })
  return (await import('./sqlite.ts')).sqliteStore(file, keyring === undefined ? {} : { keyring })
}
