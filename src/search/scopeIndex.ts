import {
  type DerivedEntry,
  type Entry,
  formatMessageId,
  getEntryText,
  type Millis,
  parseMessageId,
} from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { IndexQuery } from '../domain/ports.ts'
import { isUserSession } from '../domain/session.ts'
import { LexicalIndex, type LexicalIndexSnapshot } from './lexicalIndex.ts'
import { noLimits, Ranker, type RankLimits } from './ranking.ts'
import { searchTerms } from './terms.ts'
import type { IndexedVector, VectorIndex } from './vectorIndex.ts'

/** A message as it is indexed. */
export type IndexedMessage = {
  readonly sequence: number
  readonly at: Millis
  readonly name: string | undefined
  readonly terms: readonly string[]
}
/** A search result before the entry itself is read. `sequence` is 0 for derived entries. */
export type SearchMatch = {
  readonly key: Key
  readonly id: string
  readonly sequence: number
  readonly score: number
  readonly why: Readonly<Record<string, number>>
}

/** Snapshot of an index, without vectors. `lastSequence` is the last indexed one of a session. */
export type ScopeIndexSnapshot = {
  readonly stamp: number
  readonly lineage: string
  readonly sessions: readonly {
    readonly key: Key
    readonly lastSequence: number
    readonly derived: readonly DerivedEntry[]
  }[]
  readonly messageIndex: LexicalIndexSnapshot
}

type KeyedEntry = { readonly key: Key; readonly entry: DerivedEntry }
type DerivedRow = { readonly row: number; readonly entry: DerivedEntry }

/** Candidates taken from each ranking before fusion. */
const fusionPoolSize = 1_000

/** In-memory index of a session or scope: messages, derived entries, and vectors once a query needs them. */
export class ScopeIndex {
  stamp = 0
  lineage = ''
  /** Tail of the queue of operations on this index, which run one after the other. */
  pending: Promise<unknown> = Promise.resolve()
  vectors: VectorIndex | undefined
  /** Number of messages at the last save. */
  savedMessageCount = 0
  private sizeAtLastPause = 0
  private messageRanker = new Ranker()
  private derivedRanker = new Ranker()
  private keys: Key[] = []
  private owners = new Map<string, number>()
  /** Last indexed sequence number and derived entries, by owner. */
  private lastSequences: number[] = []
  private derived: Map<string, DerivedRow>[] = []
  /** Derived entries by row of `derivedRanker`. */
  private derivedEntries: KeyedEntry[] = []
  private changed: KeyedEntry[] = []

  /** Empties the index, except for its queue. */
  clear(): void {
    const { pending } = this
    Object.assign(this, new ScopeIndex(), { pending })
  }

  /** Number of indexed texts and vectors. */
  get size(): number {
    return this.messageRanker.size + this.derivedRanker.size + (this.vectors?.size ?? 0)
  }

  /** Number of indexed messages. */
  get messageCount(): number {
    return this.messageRanker.size
  }

  snapshot(): ScopeIndexSnapshot {
    const sessions = this.keys.map((key, owner) => ({
      key,
      lastSequence: this.lastSequences[owner] ?? 0,
      derived: [...(this.derived[owner]?.values() ?? [])].map(({ entry }) => entry),
    }))
    return { stamp: this.stamp, lineage: this.lineage, sessions, messageIndex: this.messageRanker.snapshot() }
  }

  /** Fills an empty index from a snapshot. */
  restore({ stamp, lineage, sessions, messageIndex }: ScopeIndexSnapshot): void {
    this.stamp = stamp
    this.lineage = lineage
    this.messageRanker = new Ranker(LexicalIndex.fromSnapshot(messageIndex))
    this.savedMessageCount = this.messageRanker.size
    for (const { key, lastSequence, derived } of sessions) {
      this.lastSequences[this.ownerOf(key)] = lastSequence
      this.setDerived(key, derived)
    }
  }

  /** Returns true once per `count` added texts, so that the caller can yield to other work. */
  shouldPause(count: number): boolean {
    if (this.size - this.sizeAtLastPause < count) return false
    this.sizeAtLastPause = this.size
    return true
  }

  /** Last indexed sequence number of a session. */
  lastSequenceOf(key: Key): number {
    return this.lastSequences[this.ownerOf(key)] ?? 0
  }

  addMessages(key: Key, messages: readonly IndexedMessage[]): void {
    const owner = this.ownerOf(key)
    for (const message of messages) {
      this.messageRanker.add({ owner, ...message })
      this.lastSequences[owner] = message.sequence
    }
  }

  /** Replaces the derived entries of a session. Unchanged entries keep their rows. */
  setDerived(key: Key, entries: readonly DerivedEntry[]): void {
    const owner = this.ownerOf(key)
    const before = this.derived[owner] ?? new Map<string, DerivedRow>()
    const after = new Map<string, DerivedRow>()
    for (const entry of entries) {
      const old = before.get(entry.id)
      const isUnchanged =
        old !== undefined &&
        old.entry.at === entry.at &&
        old.entry.kind === entry.kind &&
        getEntryText(old.entry) === getEntryText(entry)
      after.set(entry.id, { row: isUnchanged ? old.row : this.addDerived(key, entry), entry })
      if (isUnchanged) before.delete(entry.id)
      else if (old !== undefined) this.changed.push({ key, entry })
    }
    for (const { row, entry } of before.values()) {
      this.derivedRanker.remove(row)
      this.vectors?.remove(key, entry.id)
    }
    this.derived[owner] = after
  }

  /** Returns and clears the entries whose text changed. Their indexed vectors may belong to the old or the new text. */
  takeChanged(): readonly KeyedEntry[] {
    const { changed } = this
    this.changed = []
    return changed
  }

  addVectors(vectors: readonly IndexedVector[]): void {
    for (const vector of vectors) this.vectors?.add(vector)
  }

  /** Returns the matches, best first. The order of ties depends on the entries alone. */
  search(query: IndexQuery): readonly SearchMatch[] {
    const { text = '', vector, limit } = query
    if (vector === undefined) return selectBest(this.rankByWords(text, query, limit), limit)
    if (text === '') return selectBest(this.rankByVector(query, limit), limit)
    const pool = new Map<string, SearchMatch & ScorePair>()
    for (const match of selectBest(this.rankByWords(text, query, fusionPoolSize), fusionPoolSize))
      pool.set(idOf(match), { ...match, lexical: match.score, semantic: 0 })
    for (const match of selectBest(this.rankByVector(query, fusionPoolSize), fusionPoolSize)) {
      const other = pool.get(idOf(match))
      const why = { ...other?.why, ...match.why }
      pool.set(idOf(match), { ...match, why, lexical: other?.lexical ?? 0, semantic: match.score })
    }
    const candidates = [...pool.values()]
    const scores = fuseScores(candidates)
    return selectBest(
      candidates.map(({ key, id, sequence, why }, at) => ({ key, id, sequence, why, score: scores[at] as number })),
      limit,
    )
  }

  private rankByWords(text: string, query: IndexQuery, maxResults: number): SearchMatch[] {
    const limits = limitsOf(query, maxResults)
    const isWanted = (kind: Entry['kind']): boolean => query.kinds === undefined || query.kinds.includes(kind)
    const ranked = isWanted('message') ? this.messageRanker.rank(text, limits) : []
    const matches = ranked.map(({ row, score, why }): SearchMatch => {
      const sequence = this.messageRanker.sequenceAt(row)
      return {
        key: this.keys[this.messageRanker.ownerAt(row)] as Key,
        id: formatMessageId(sequence),
        sequence,
        score,
        why,
      }
    })
    if (query.kinds?.every((kind) => kind === 'message')) return matches
    // Rank all derived entries: with a limit, one kind could crowd out another before the filter below.
    const derivedLimits = { ...limits, before: noLimits.before, maxResults: this.derivedRanker.size }
    for (const { row, score, why } of this.derivedRanker.rank(text, derivedLimits)) {
      const { key, entry } = this.derivedEntries[row] as KeyedEntry
      if (isWanted(entry.kind)) matches.push({ key, id: entry.id, sequence: 0, score, why })
    }
    return matches
  }

  private rankByVector(query: IndexQuery, maxResults: number): SearchMatch[] {
    const nearest =
      this.vectors?.rank(query.vector?.values ?? new Float32Array(0), query.kinds, limitsOf(query, maxResults)) ?? []
    return nearest.map(({ key, id, score }) => ({
      key,
      id,
      sequence: parseMessageId(id) ?? 0,
      score,
      why: { meaning: score },
    }))
  }

  /** Adds each derived entry under an owner of its own, so that entries do not raise each other as neighbours. */
  private addDerived(key: Key, entry: DerivedEntry): number {
    this.derivedEntries.push({ key, entry })
    return this.derivedRanker.add({
      owner: this.derivedRanker.size,
      sequence: 0,
      at: entry.at,
      name: undefined,
      terms: searchTerms(getEntryText(entry)),
    })
  }

  private ownerOf(key: Key): number {
    return getOrCompute(this.owners, formatKey(key), () => this.keys.push(key) - 1)
  }
}

const idOf = ({ key, id }: SearchMatch): string => `${formatKey(key)} ${id}`

function limitsOf(
  { before = noLimits.before, from = noLimits.from, to = noLimits.to }: IndexQuery,
  maxResults: number,
): RankLimits {
  return { before, from, to, maxResults }
}

function selectBest(matches: readonly SearchMatch[], limit: number): readonly SearchMatch[] {
  return matches.toSorted((a, b) => b.score - a.score || compareTies(a, b)).slice(0, limit)
}

/**
 * Orders messages of sessions before entries of the scope and later messages before earlier ones; otherwise by key and
 * id.
 */
function compareTies(a: SearchMatch, b: SearchMatch): number {
  if (a.key !== b.key) {
    const sessionsFirst = Number(isUserSession(b)) - Number(isUserSession(a))
    if (sessionsFirst !== 0) return sessionsFirst
    const [first, second] = [formatKey(a.key), formatKey(b.key)]
    if (first !== second) return first < second ? -1 : 1
  }
  return a.sequence !== b.sequence ? b.sequence - a.sequence : a.id < b.id ? -1 : 1
}

/** Weight of the lexical score, measured on dialogues with a sentence encoder. */
const lexicalWeight = 0.6

/** Scores of one candidate from both rankings; 0 where a ranking did not return it. */
type ScorePair = { readonly lexical: number; readonly semantic: number }

/**
 * Fuses two rankings by min-max normalisation and a convex combination. Reciprocal rank fusion is not used: it gives a
 * weak ranking the same influence as a strong one.
 *
 * @example
 * fuseScores([{ lexical: 8, semantic: 0.1 }, { lexical: 0, semantic: 0.9 }]) // [0.6, 0.4]
 */
function fuseScores(candidates: readonly ScorePair[]): number[] {
  const lexical = normalize(candidates.map((candidate) => candidate.lexical))
  const semantic = normalize(candidates.map((candidate) => candidate.semantic))
  return candidates.map(
    (_, at) => lexicalWeight * (lexical[at] as number) + (1 - lexicalWeight) * (semantic[at] as number),
  )
}

function normalize(values: readonly number[]): number[] {
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    min = Math.min(min, value)
    max = Math.max(max, value)
  }
  return values.map((value) => (max > min ? (value - min) / (max - min) : max > 0 ? 1 : 0))
}
