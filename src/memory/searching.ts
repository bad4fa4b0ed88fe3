import type { Entry, Millis } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Clock, Embedder, Hit, Index, Query, Store } from '../domain/ports.ts'
import type { Lifetime } from '../domain/profile.ts'
import { type Head, isExpired } from '../domain/session.ts'
import type { WhenIn } from '../text/when.ts'
import type { Embedding } from './embedding.ts'

/** A question in words, or as a vector of an embedder: this memory's, unless `model` names another. */
export type SearchQuery = string | { readonly vector: ArrayLike<number>; readonly model?: string }
export type SearchOptions = {
  /** How many at most; 10 when left out. */
  readonly limit?: number
  readonly from?: Millis
  readonly to?: Millis
  /** Whether a time that the question names stands for `from` and `to`, where both are left out. */
  readonly dates?: boolean
  readonly kinds?: readonly Entry['kind'][]
  /** One session of the scope alone; an empty text means the scope's own memory. */
  readonly session?: string
}
export type SearchResult = {
  readonly key: string
  readonly entry: Entry
  readonly score: number
  readonly why: Readonly<Record<string, number>>
}

/** What a search needs of a memory. */
type Means = {
  readonly stores: readonly (Store & Index)[]
  readonly embedder: Embedder | undefined
  readonly embedding: Embedding | undefined
  readonly lifetime: Lifetime
  /** Finds the time a question names; without it, a question names none. */
  readonly dates?: WhenIn | undefined
  readonly clock: Clock
}

/**
 * What the stores of a memory hold on a question, best first, without what was said in sessions that are over. All are searched
 * at once; of equals, what was said in a session comes before what the scope knows.
 */
export async function searched(
  means: Means,
  where: Key,
  query: SearchQuery,
  options: SearchOptions,
): Promise<readonly SearchResult[]> {
  const { limit = 10, kinds } = options
  check('limit', limit, Number.isInteger(limit) && limit >= 1, 'a whole number, 1 or more')
  const { words, ...time } = timed(means, query, options)
  const asked: Query = { limit, ...(await askedBy(means, words)), ...time, ...(kinds === undefined ? {} : { kinds }) }
  const place = options.session === undefined ? { scope: where.scope } : where
  const hits = await Promise.all(
    means.stores.map(async (store) => alive(means, store, await store.search(place, asked))),
  )
  return hits
    .flat()
    .filter(({ entry }) => !(entry.kind === 'knowledge' && entry.pending))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ key, ...hit }) => ({ key: formatKey(key), ...hit }))
}

/** What is looked for, and when: a time that the question names is no word to look for, unless there is no other. */
function timed(
  { dates, clock }: Means,
  query: SearchQuery,
  options: SearchOptions,
): Pick<Query, 'from' | 'to'> & { readonly words: SearchQuery } {
  const { from, to } = options
  const named =
    options.dates === true && from === undefined && to === undefined && typeof query === 'string'
      ? dates?.(query, clock())
      : undefined
  if (named === undefined)
    return { words: query, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) }
  const [start, end] = named.said
  const rest = `${(query as string).slice(0, start)} ${(query as string).slice(end)}`
  return { words: /[\p{L}\p{N}]/u.test(rest) ? rest : query, from: named.from, to: named.to - 1 }
}

async function alive({ lifetime, clock }: Means, store: Store, hits: readonly Hit[]): Promise<readonly Hit[]> {
  if (lifetime.idle === undefined && lifetime.age === undefined) return hits
  const heads = await Promise.all(hits.map(({ key }) => store.head(key, 0)))
  return hits.filter((_, at) => !isExpired(heads[at] as Head, clock()))
}

async function askedBy({ embedder, embedding }: Means, query: SearchQuery): Promise<Pick<Query, 'text' | 'vector'>> {
  const own = embedder?.name
  if (typeof query !== 'string') {
    const model = query.model ?? own
    check(
      'model',
      model,
      model !== undefined,
      'the name of the embedder that made the vector, as no embedder is configured',
    )
    return { vector: { model: model as string, values: Float32Array.from(query.vector) } }
  }
  const values = await embedding?.vector(query)
  return values === undefined || own === undefined ? { text: query } : { text: query, vector: { model: own, values } }
}
