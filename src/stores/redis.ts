import '../requireNode.ts'
import { checkOptions } from '../domain/checkOptions.ts'
import {
  checkEraseFilter,
  checkListFilter,
  checkPage,
  checkRecordRange,
  checkTarget,
} from '../domain/checkStoreOptions.ts'
import type { Millis } from '../domain/entry.ts'
import { anyFunction, anyObject, integerAtLeast } from '../domain/error.ts'
import { type Key, parseStoredKey } from '../domain/key.ts'
import type { SearchIndex, Store } from '../domain/ports.ts'
import type { Pause } from '../domain/work.ts'
import type { TextAnalysis } from '../search/scopeIndex.ts'
import { withEraseListeners } from './eraseListeners.ts'
import { RedisConnection } from './redis/connection.ts'
import { RedisKeys } from './redis/keys.ts'
import { openTransport } from './redis/openTransport.ts'
import { ScopeRegistry } from './redis/scopeRegistry.ts'
import { RedisSearch } from './redis/search.ts'
import { SessionCache } from './redis/sessionCache.ts'
import { RedisSessions } from './redis/sessions.ts'
import { RedisTable } from './redis/table.ts'
import { RedisTokenBuckets } from './redis/tokenBuckets.ts'
import type { RedisTransport } from './redis/transport.ts'
import { type ConnectionOptions, connectionOptionChecks, parseRedisUrl, type RedisAddress } from './redis/url.ts'
import { RedisVectors } from './redis/vectors.ts'
import { StoreClock } from './storeClock.ts'
import { textAnalysis } from './textAnalysis.ts'
import { yieldToEventLoop } from './yieldToEventLoop.ts'

/** Options of `redisStore`. */
export type RedisStoreOptions = ConnectionOptions & {
  /** Memory for sessions that this process has read; default 32 MB. */
  readonly maxCacheBytes?: number
  /** Word table and languages for search. Default: those of this package. */
  readonly analysis?: TextAnalysis
  /** Lets other work run between two steps of building an index. Default: a turn of the event loop. */
  readonly pause?: Pause
}

const defaultMaxCacheBytes = 32_000_000

/**
 * Opens a store of ephemeral sessions that any number of processes share: `redis://HOST:PORT`, `rediss:` with TLS,
 * `redis+cluster:`, `redis+sentinel:` or the `https:` URL of Upstash. Sessions stay in the memory of Redis, which must
 * neither persist nor evict them.
 *
 * @throws {MemoryError} `busy` if Redis cannot be reached, `bad-store` if its settings or permissions are wrong.
 * @example
 * const memory = await openMemory({ profile: 'ephemeral', sessions: await redisStore('redis://localhost:6379') })
 */
export async function redisStore(url: string, options: RedisStoreOptions = {}): Promise<Store & SearchIndex> {
  checkOptions<RedisStoreOptions>('redisStore', options, {
    ...connectionOptionChecks,
    maxCacheBytes: integerAtLeast(0),
    analysis: anyObject,
    pause: anyFunction,
  })
  const { maxCacheBytes = defaultMaxCacheBytes, analysis = textAnalysis, pause = yieldToEventLoop, ...rest } = options
  const address = parseRedisUrl(url, rest)
  const transport = await openTransport(address)
  try {
    return await openOnTransport(transport, address, { maxCacheBytes, analysis, pause })
  } catch (error) {
    await transport.close()
    throw error
  }
}

/** Parts of a store on one connection. */
type StoreParts = {
  readonly keys: RedisKeys
  readonly connection: RedisConnection
  readonly clock: StoreClock
  readonly cache: SessionCache
  readonly registry: ScopeRegistry
  readonly sessions: RedisSessions
  readonly vectors: RedisVectors
  readonly search: RedisSearch
}
type CacheOptions = Required<Pick<RedisStoreOptions, 'maxCacheBytes' | 'analysis' | 'pause'>>

async function openOnTransport(
  transport: RedisTransport,
  { settings, prefix }: RedisAddress,
  options: CacheOptions,
): Promise<Store & SearchIndex> {
  const keys = new RedisKeys(prefix)
  const connection = new RedisConnection(transport, settings)
  const clock = new StoreClock(() => readTime(connection, keys))
  const cache = new SessionCache(options.maxCacheBytes)
  const registry = new ScopeRegistry(connection, keys)
  const sessions = new RedisSessions({ connection, keys, cache, registry })
  const vectors = new RedisVectors(connection, keys, {
    listKeys: (from) => registry.listKeys(from),
    listScopes: () => registry.listScopes(),
    readEntries: (key) => sessions.readEntries(key),
  })
  const search = new RedisSearch({ ...options, sessions, registry, cache, vectors })
  const parts = { keys, connection, clock, cache, registry, sessions, vectors, search }
  await clock.sync()
  const onErased = (name: string): void => dropCaches(parts, parseStoredKey(name))
  await connection.subscribe(keys.erasures, onErased, () => clearCaches(parts))
  return withEraseListeners(createStore(parts, options.analysis))
}

async function readTime(connection: RedisConnection, keys: RedisKeys): Promise<Millis> {
  const [seconds, micros] = (await connection.run(keys.scopes, ['TIME'], true)) as readonly [string, string]
  return Number(seconds) * 1_000 + Number(micros) / 1_000
}

/** Drops what this process knows of a session, and the indexes of its scope. */
function dropCaches({ cache, search }: StoreParts, key: Key): void {
  cache.drop(key)
  search.drop(key.scope)
}

function clearCaches({ cache, search }: StoreParts): void {
  cache.clear()
  search.clear()
}

function createStore(parts: StoreParts, analysis: TextAnalysis): Store & SearchIndex {
  const { keys, connection, clock, registry, sessions, vectors, search } = parts
  return {
    durability: 'ram',
    capabilities: {
      ...analysis,
      sessionCounter: registry,
      tokenBuckets: new RedisTokenBuckets(connection, keys),
      shared: { correctClock: (local) => clock.correct(local) },
      indexedMessages: () => search.indexedMessages,
    },
    readHead: (key, recent, revision) => {
      clock.syncIfDue()
      return sessions.readHead(key, recent, revision)
    },
    readMessages: async (key, range) => {
      checkPage(range)
      return sessions.readMessages(key, range, range.revision)
    },
    findMessages: (key, externalIds) => sessions.findMessages(key, externalIds),
    commit: (change) => sessions.commit(change),
    list: async (filter) => {
      checkListFilter(filter)
      return registry.list(filter)
    },
    erase: async (key, only) => {
      checkEraseFilter(only)
      dropCaches(parts, key)
      return only !== undefined && 'remains' in only ? announceErasure(parts, key) : sessions.erase(key, only)
    },
    appendRecord: (key, record, keep) => sessions.appendRecord(key, record, keep),
    records: async (key, range) => {
      checkRecordRange(range)
      return sessions.records(key, range)
    },
    table: new RedisTable(connection, keys, registry),
    search: (where, query) => search.search(where, query),
    changesSince: async (where, since) => {
      checkTarget(where)
      return where.id === undefined ? registry.changes(where.scope, since) : search.sessionChanges(where as Key, since)
    },
    listUnembedded: (model, after, limit) => vectors.listUnembedded(model, after, limit),
    storeVectors: (model, embedded) => vectors.store(model, embedded),
    readVectors: (key, ids) => Promise.all(ids.map((id) => vectors.read(key, id))),
    countVectors: (model) => vectors.count(model),
    close: async () => {
      clearCaches(parts)
      await connection.close()
    },
  }
}

/** Makes all processes drop their indexes of a scope. */
async function announceErasure({ connection, keys }: StoreParts, { scope }: Key): Promise<readonly string[]> {
  await connection.run(keys.erasures, ['PUBLISH', keys.erasures, scope])
  return []
}
