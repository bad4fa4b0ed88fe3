import type { Entry, Millis } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Clock, Embedder, Hit, Index, Query, Store } from '../domain/ports.ts'
import type { Lifetime } from '../domain/profile.ts'
import { isExpired } from '../domain/session.ts'
import type { Embedding } from './embedding.ts'

/** A question in words, or as a vector of an embedder: this memory's, unless `model` names another. */
export type SearchQuery = string | { readonly vector: ArrayLike<number>; readonly model?: string }
export type SearchOptions = {
  /** How many at most; 10 when left out. */
  readonly limit?: number
  readonly from?: Millis
  readonly to?: Millis
  readonly kinds?: readonly Entry['kind'][]
  /** One session of the scope alone; an empty text means the scope's own memory. */
  readonly session?: string
}
export type SearchResult = { readonly key: string; readonly entry: Entry; readonly score: number; readonly why: Readonly<Record<string, number>> }

/** What a search needs of a memory. */
type Means = {
  readonly stores: readonly (Store & Index)[]
  readonly embedder: Embedder | undefined
  readonly embedding: Embedding | undefined
  readonly lifetime: Lifetime
  readonly clock: Clock
}

/** What the stores of a memory hold on a question, best first, without what was said in sessions that are over. */
export async function searched(means: Means, where: Key, query: SearchQuery, options: SearchOptions): Promise<readonly SearchResult[]> {
  const { limit = 10, from, to, kinds } = options
  check('limit', limit, Number.isInteger(limit) && limit >= 1, 'a whole number, 1 or more')
  const asked: Query = {
    limit,
    ...(await askedBy(means, query)),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(kinds === undefined ? {} : { kinds }),
  }
  const place = options.session === undefined ? { scope: where.scope } : where
  const hits = await Promise.all(means.stores.map(async (store) => alive(means, store, await store.search(place, asked))))
  return hits
    .flat()
    .filter(({ entry }) => !(entry.kind === 'knowledge' && entry.pending === true))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ key, ...hit }) => ({ key: formatKey(key), ...hit }))
}

async function alive({ lifetime, clock }: Means, store: Store, hits: readonly Hit[]): Promise<readonly Hit[]> {
  if (lifetime.idle === undefined && lifetime.age === undefined) return hits
  const heads = await Promise.all(hits.map(({ key }) => store.head(key, 0)))
  return hits.filter((_, at) => {
    const head = heads[at]
    return head !== undefined && !isExpired(head, clock())
  })
}

async function askedBy({ embedder, embedding }: Means, query: SearchQuery): Promise<Pick<Query, 'text' | 'vector'>> {
  const model = typeof query === 'string' ? embedder?.name : (query.model ?? embedder?.name)
  if (typeof query !== 'string') {
    check('model', model, model !== undefined, 'the name of the embedder that made the vector, as no embedder is configured')
    return { vector: { model: model as string, values: Float32Array.from(query.vector) } }
  }
  const values = await embedding?.vector(query)
  return values === undefined || model === undefined ? { text: query } : { text: query, vector: { model, values } }
}
