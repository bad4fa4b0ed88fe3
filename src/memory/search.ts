import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import type { Entry, Millis } from '../domain/entry.ts'
import { anyText, anyValue, checkOption, finiteNumber, isObject, listOf, trueOrFalse } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { isActive } from '../domain/knowledge.ts'
import type { Clock, Embedder, IndexHit, IndexQuery, SearchIndex, Store } from '../domain/ports.ts'
import type { Lifetime } from '../domain/profile.ts'
import { isExpired, type SessionHead } from '../domain/session.ts'
import type { FindPeriod } from '../text/dates.ts'
import type { EmbeddingQueue } from './embedding.ts'
import { refineResults, type SearchResult } from './searchResults.ts'

/** A question in words, or a vector. `model` names the embedder of the vector; default: this memory's. */
export type SearchQuery = string | { readonly vector: ArrayLike<number>; readonly model?: string }
/** Options of `search`. */
export type SearchOptions = {
  /** Maximum number of results; default 10. */
  readonly limit?: number
  /** Earliest time, in ms. */
  readonly from?: Millis
  /** Latest time, in ms. */
  readonly to?: Millis
  /**
   * Uses a date phrase in the question, such as "last week", as `from` and `to`, when both are omitted and something is
   * found then; default true.
   */
  readonly dates?: boolean
  /** Kinds of entries to return; default all. */
  readonly kinds?: readonly Entry['kind'][]
  /** Restricts the search to one session; an empty string means the scope's own memory. */
  readonly session?: string
}
const searchOptionChecks: OptionChecks<SearchOptions> = {
  limit: anyValue,
  from: finiteNumber,
  to: finiteNumber,
  dates: trueOrFalse,
  kinds: listOf(anyText),
  session: anyText,
}

/** Throws `bad-option` for a query or options that are invalid or unknown. */
export function checkSearch(query: unknown, options: unknown): void {
  checkOptions<SearchOptions>('search', options, searchOptionChecks)
  if (isObject(query)) checkOptions<Extract<SearchQuery, object>>('search', query, { vector: anyValue, model: anyText })
  else checkOption('query', query, typeof query === 'string', 'text, or an object with a vector')
}

export type { SearchResult }

type SearchDeps = {
  readonly stores: readonly (Store & SearchIndex)[]
  readonly embedder: Embedder | undefined
  readonly embedding: EmbeddingQueue | undefined
  readonly lifetime: Lifetime
  /** Parses date phrases of a question. */
  readonly parseDates?: FindPeriod | undefined
  readonly clock: Clock
}

/**
 * Searches the stores of a memory in parallel and returns the best results, without expired sessions and
 * knowledge that is pending or archived. With equal scores, sessions come before the scope's own memory.
 */
export async function searchStores(
  deps: SearchDeps,
  where: Key,
  query: SearchQuery,
  options: SearchOptions,
): Promise<readonly SearchResult[]> {
  const { limit = 10, kinds, dates = true } = options
  checkOption('limit', limit, Number.isInteger(limit) && limit >= 1, 'a whole number, 1 or more')
  const { text, isPhrase, ...period } = splitPeriod(deps, query, { ...options, dates })
  const request: IndexQuery = {
    limit: limit + spareResults,
    ...(await toTextAndVector(deps, text)),
    ...period,
    ...(kinds && { kinds }),
  }
  const target = options.session === undefined ? { scope: where.scope } : where
  const hits = await Promise.all(
    deps.stores.map(async (store) => withoutExpired(deps, store, await store.search(target, request))),
  )
  // The phrase may be misread, or mean something else.
  if (isPhrase && hits.every((found) => found.length === 0))
    return searchStores(deps, where, query, { ...options, dates: false })
  const results = hits
    .flat()
    .filter(({ entry }) => isActive(entry))
    .map(({ key, ...hit }) => ({ key: formatKey(key), ...hit }))
  return refineResults(results, typeof text === 'string' ? text : undefined, limit)
}

/** Results read beyond the limit, to replace those that repeat others. */
const spareResults = 30

/** Splits a date phrase off the question, unless the question consists of nothing else. */
function splitPeriod(
  { parseDates, clock }: SearchDeps,
  query: SearchQuery,
  options: SearchOptions,
): Pick<IndexQuery, 'from' | 'to'> & { readonly text: SearchQuery; readonly isPhrase: boolean } {
  const { from, to } = options
  const hasPeriod = from !== undefined || to !== undefined
  const period =
    options.dates === true && !hasPeriod && typeof query === 'string' ? parseDates?.(query, clock()) : undefined
  if (period === undefined)
    return { text: query, isPhrase: false, ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  const [start, end] = period.span
  const rest = `${(query as string).slice(0, start)} ${(query as string).slice(end)}`
  const text = /[\p{L}\p{N}]/u.test(rest) ? rest : (query as string)
  return { text, isPhrase: true, from: period.from, to: period.to - 1 }
}

async function withoutExpired(
  { lifetime, clock }: SearchDeps,
  store: Store,
  hits: readonly IndexHit[],
): Promise<readonly IndexHit[]> {
  if (lifetime.idle === undefined && lifetime.age === undefined) return hits
  const heads = await Promise.all(hits.map(({ key }) => store.readHead(key, 0)))
  return hits.filter((_, index) => !isExpired(heads[index] as SessionHead, clock()))
}

async function toTextAndVector(
  { embedder, embedding }: SearchDeps,
  query: SearchQuery,
): Promise<Pick<IndexQuery, 'text' | 'vector'>> {
  const ownModel = embedder?.name
  if (typeof query !== 'string') {
    const model = query.model ?? ownModel
    checkOption(
      'model',
      model,
      model !== undefined,
      'the name of the embedder that made the vector, because no embedder is configured',
    )
    return { vector: { model: model as string, values: Float32Array.from(query.vector) } }
  }
  const { vector } = (await embedding?.embedQuery(query)) ?? {}
  return { text: query, ...(vector && { vector }) }
}
