import type { Entry } from '../../domain/entry.ts'
import { formatKey, type Key, type Scope } from '../../domain/key.ts'
import type { IndexChanges, IndexHit, IndexQuery, SearchTarget } from '../../domain/ports.ts'
import type { Pause } from '../../domain/work.ts'
import type { SearchMatch, TextAnalysis } from '../../search/scopeIndex.ts'
import { type SearchSource, StoreSearch } from '../../search/storeSearch.ts'
import { VectorIndex } from '../../search/vectorIndex.ts'
import type { ScopeRegistry } from './scopeRegistry.ts'
import { type SessionCache, sliceCached } from './sessionCache.ts'
import type { RedisSessions } from './sessions.ts'
import type { RedisVectors } from './vectors.ts'

const isMessage = ({ sequence }: SearchMatch): boolean => sequence > 0

type SearchDeps = {
  readonly sessions: RedisSessions
  readonly registry: ScopeRegistry
  readonly cache: SessionCache
  readonly vectors: RedisVectors
  readonly analysis: TextAnalysis | undefined
  readonly pause: Pause
}

/** Memory of the indexes of sessions, and of scopes. */
const maxIndexBytes = 32_000_000

/**
 * Searches sessions and scopes. A search within a session reads the cached session, which is compared with Redis once
 * before the search, or not at all if the caller has just read it. A search in a scope always reads from Redis.
 */
export class RedisSearch {
  readonly #deps: SearchDeps
  readonly #sessionSearch: StoreSearch
  readonly #scopeSearch: StoreSearch

  constructor(deps: SearchDeps) {
    this.#deps = deps
    const { sessions, registry, cache } = deps
    this.#scopeSearch = new StoreSearch(
      this.#createSource({
        changes: ({ scope }, { stamp }) => registry.changes(scope, stamp),
        readMessages: (key, after, limit) => sessions.readPage(key, { after, limit }),
        readDerived: async (key) => (await sessions.readHead(key, 0)).derived,
        readEntries: (found) => this.#readEntries(found),
      }),
      maxIndexBytes,
    )
    this.#sessionSearch = new StoreSearch(
      this.#createSource({
        changes: (where, { stamp }) => this.sessionChanges(where as Key, stamp, 0),
        readMessages: async (key, after, limit) => {
          const cached = cache.get(key)
          return (cached && sliceCached(cached, { after, limit })) ?? sessions.readPage(key, { after, limit })
        },
        readDerived: async (key) => cache.get(key)?.derived ?? (await sessions.readHead(key, 0)).derived,
        readEntries: async (found) => {
          const cached = found.map((match) => this.#findCached(match))
          const read = await this.#readEntries(found.filter((_, at) => cached[at] === undefined))
          let next = 0
          return cached.map((entry) => entry ?? read[next++])
        },
      }),
      maxIndexBytes,
    )
  }

  get indexedMessages(): number {
    return this.#sessionSearch.indexedMessages + this.#scopeSearch.indexedMessages
  }

  async search(where: SearchTarget, query: IndexQuery): Promise<readonly IndexHit[]> {
    if (where.id === undefined) return this.#scopeSearch.search(where, query)
    const key = where as Key
    const wanted = this.#deps.cache.get(key) === undefined ? 1 : 0
    await this.#deps.sessions.read(key, wanted, query.revision)
    return this.#sessionSearch.search(where, query)
  }

  /** Returns the changes of a session since a stamp; from the cache, if it has seen `revision`. */
  async sessionChanges(key: Key, since: number, revision?: number): Promise<IndexChanges> {
    const session = await this.#deps.sessions.read(key, 0, revision)
    if (!('row' in session)) return { stamp: 0, lineage: `${session.epoch}.0`, sessions: [] }
    const { epoch, removals, stamp } = session.row
    return { stamp, lineage: `${epoch}.${removals}`, sessions: stamp > since ? [key] : [] }
  }

  /** Drops all indexes of a scope: they may contain erased text. */
  drop(scope: Scope): void {
    this.#sessionSearch.drop(scope)
    this.#scopeSearch.drop(scope)
  }

  clear(): void {
    this.#sessionSearch.clear()
    this.#scopeSearch.clear()
  }

  #createSource(reads: Pick<SearchSource, 'changes' | 'readMessages' | 'readDerived' | 'readEntries'>): SearchSource {
    const { vectors, analysis, pause } = this.#deps
    return {
      ...reads,
      readVectors: (where, model, after, limit) => vectors.list(where, model, after, limit),
      readVector: async (key, id, model) => {
        const vector = await vectors.read(key, id)
        return vector?.model === model ? vector.values : undefined
      },
      createVectorIndex: (model) => new VectorIndex(model),
      // Indexes of ephemeral sessions are small, and a snapshot would have to be kept as private as they are.
      loadSnapshot: async () => undefined,
      saveSnapshot: () => undefined,
      pause,
      analysis,
    }
  }

  #findCached({ key, id, sequence }: SearchMatch): Entry | undefined {
    const cached = this.#deps.cache.get(key)
    if (cached === undefined) return undefined
    return sequence === 0
      ? cached.derived.find((entry) => entry.id === id)
      : sliceCached(cached, { after: sequence - 1, before: sequence + 1, limit: 1 })?.[0]
  }

  /** Reads entries from Redis: the messages of a session with one command, and its derived entries with another. */
  async #readEntries(found: readonly SearchMatch[]): Promise<readonly (Entry | undefined)[]> {
    const { sessions } = this.#deps
    const entries = new Map<SearchMatch, Entry | undefined>()
    const bySession = Map.groupBy(found, ({ key }) => formatKey(key))
    const readSession = async (matches: readonly SearchMatch[]): Promise<void> => {
      const { key } = matches[0] as SearchMatch
      const [messages, derived] = [matches.filter(isMessage), matches.filter((match) => !isMessage(match))]
      const read = await sessions.readMessagesAt(
        key,
        messages.map(({ sequence }) => sequence),
      )
      for (const [at, match] of messages.entries()) entries.set(match, read[at])
      if (derived.length === 0) return
      const head = await sessions.readHead(key, 0)
      for (const match of derived)
        entries.set(
          match,
          head.derived.find(({ id }) => id === match.id),
        )
    }
    await Promise.all([...bySession.values()].map(readSession))
    return found.map((match) => entries.get(match))
  }
}
