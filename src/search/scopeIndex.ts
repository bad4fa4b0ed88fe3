import {
  type DerivedEntry,
  type Entry,
  formatMessageId,
  getEntryText,
  type Message,
  parseMessageId,
} from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { isActive } from '../domain/knowledge.ts'
import type { IndexQuery, StoreCapabilities, TermExtractor } from '../domain/ports.ts'
import { isUserSession } from '../domain/session.ts'
import { runSync, toSlices, type Work } from '../domain/work.ts'
import { englishExtractor } from '../text/languages.ts'
import type { IndexedText, LexicalIndexSnapshot } from './lexicalIndex.ts'
import { indexPassagesInSteps, markers } from './passageTerms.ts'
import { noLimits, type RankedPassage, Ranker, type RankLimits } from './ranking.ts'
import { SessionLanguages } from './sessionLanguages.ts'
import type { IndexedVector, VectorIndex } from './vectorIndex.ts'

/** The parts of a message that are indexed. */
export type SearchableMessage = Pick<Message, 'sequence' | 'at' | 'name' | 'role' | 'content' | 'lineTokens'>

/** Analyses a message for the index. */
export const toIndexedText = (message: SearchableMessage, owner = 0, extractor = englishExtractor): IndexedText =>
  runSync(toIndexedTextInSteps(message, owner, extractor))

function* toIndexedTextInSteps(message: SearchableMessage, owner: number, extractor: TermExtractor): Work<IndexedText> {
  const { sequence, at, name, role, content, lineTokens } = message
  const isUser = role === 'user' && name === undefined
  const passages = yield* indexPassagesInSteps(content, extractor)
  return {
    owner,
    sequence,
    at,
    name,
    tokens: lineTokens,
    passages: isUser ? passages.map((passage) => ({ ...passage, markers: passage.markers | markers.user })) : passages,
  }
}

/** Analysis of text that a store provides; without it, search is by the words of English. */
export type TextAnalysis = Pick<StoreCapabilities, 'wordTable' | 'languages'>

/** A search result before the entry itself is read. `sequence` is 0 for derived entries. */
export type SearchMatch = {
  readonly key: Key
  readonly id: string
  readonly sequence: number
  /** Number of the passage that matches best; see `splitPassages`. */
  readonly passage: number
  readonly score: number
  readonly why: Readonly<Record<string, number>>
}

/** Entry near the vector of a query, with its cosine. */
export type NearestEntry = Pick<SearchMatch, 'key' | 'id' | 'score'>

/** A session in the snapshot of an index. `lastSequence` is the last indexed one. */
type SessionSnapshot = {
  readonly key: Key
  readonly lastSequence: number
  /** ISO 639-1 code. */
  readonly language: string | undefined
  readonly derived: readonly DerivedEntry[]
}

/** Snapshot of an index, without vectors. */
export type ScopeIndexSnapshot = {
  readonly stamp: number
  readonly lineage: string
  readonly sessions: readonly SessionSnapshot[]
  readonly messageIndex: LexicalIndexSnapshot
}

type KeyedEntry = { readonly key: Key; readonly entry: DerivedEntry }
type DerivedRow = { readonly row: number; readonly entry: DerivedEntry }

/** Entries that the vector of a query can raise. */
const maxSimilarEntries = 1_000

/** Number of nearest entries that a query needs. */
export const vectorLimitOf = ({ text = '', limit }: IndexQuery): number => (text === '' ? limit : maxSimilarEntries)
/** Strength of an index in which only the vector of the query matches. */
const minStrength = 0.5
/** Weight of an embedder's similarity in the score, unless it names another one. */
const defaultVectorWeight = 0.2

/** Estimated memory of a session in an index, and of a derived entry besides its text. */
const sessionBytes = 300
const derivedEntryBytes = 500

/** In-memory index of a session or scope: messages, derived entries, and vectors once a query needs them. */
export class ScopeIndex {
  stamp = 0
  lineage = ''
  /** State that the source of the index has attached to its last answer. */
  sourceState: unknown
  /** Tail of the queue of operations on this index, which run one after the other. */
  pending: Promise<unknown> = Promise.resolve()
  vectors: VectorIndex | undefined
  /** Number of messages at the last save. */
  savedMessageCount = 0
  private messageRanker: Ranker
  private derivedRanker: Ranker
  private keys: Key[] = []
  private owners = new Map<string, number>()
  /** Last indexed sequence number and derived entries, by owner. */
  private lastSequences: number[] = []
  private derived: Map<string, DerivedRow>[] = []
  /** Derived entries by row of `derivedRanker`. */
  private derivedEntries: KeyedEntry[] = []
  private removedDerived = 0
  private derivedCharacters = 0
  private changed: KeyedEntry[] = []
  private readonly analysis: TextAnalysis
  private readonly languages: SessionLanguages

  constructor(analysis: TextAnalysis = {}, languages = new SessionLanguages(analysis.languages)) {
    this.analysis = analysis
    this.languages = languages
    const table = analysis.wordTable?.()
    this.messageRanker = new Ranker(table)
    this.derivedRanker = new Ranker(table)
  }

  /** Empties the index, except for its queue and the known languages. */
  clear(): void {
    const { pending } = this
    Object.assign(this, new ScopeIndex(this.analysis, this.languages), { pending })
  }

  /** True if a session turned out to be in another language than it was indexed in; the index must be built again. */
  takeLanguageChange(): boolean {
    return this.languages.takeChange()
  }

  /** Estimated memory. */
  get bytes(): number {
    const derived = this.derivedEntries.length * derivedEntryBytes + this.derivedCharacters
    const rankers = this.messageRanker.bytes + this.derivedRanker.bytes
    return rankers + derived + this.keys.length * sessionBytes + (this.vectors?.bytes ?? 0)
  }

  /** Number of indexed messages. */
  get messageCount(): number {
    return this.messageRanker.size
  }

  /** Copies the index without its vectors, as interruptible work. It must not change meanwhile. */
  *snapshotInSteps(): Work<ScopeIndexSnapshot> {
    const messageIndex = yield* this.messageRanker.snapshotInSteps()
    const sessions: SessionSnapshot[] = []
    for (const [owner, key] of this.keys.entries()) {
      const derived = [...(this.derived[owner]?.values() ?? [])].map(({ entry }) => entry)
      sessions.push({ key, lastSequence: this.lastSequences[owner] ?? 0, language: this.languages.of(key), derived })
      yield sessionWork + derived.length
    }
    return { stamp: this.stamp, lineage: this.lineage, sessions, messageIndex }
  }

  /** Fills an empty index from a snapshot, in steps after which other work may run. */
  *restore({ stamp, lineage, sessions, messageIndex }: ScopeIndexSnapshot): Generator<void> {
    yield* this.messageRanker.restore(messageIndex)
    this.stamp = stamp
    this.lineage = lineage
    this.savedMessageCount = this.messageRanker.size
    yield* toSlices(this.restoreSessionsInSteps(sessions))
  }

  private *restoreSessionsInSteps(sessions: readonly SessionSnapshot[]): Work<void> {
    for (const { key, lastSequence, language, derived } of sessions) {
      this.lastSequences[this.ownerOf(key)] = lastSequence
      this.languages.set(key, language)
      yield* this.setDerivedInSteps(key, derived)
      yield sessionWork
    }
  }

  /** Last indexed sequence number of a session. */
  lastSequenceOf(key: Key): number {
    return this.lastSequences[this.ownerOf(key)] ?? 0
  }

  addMessages(key: Key, messages: readonly SearchableMessage[]): void {
    runSync(this.addMessagesInSteps(key, messages))
  }

  /** `addMessages` as interruptible work. */
  *addMessagesInSteps(key: Key, messages: readonly SearchableMessage[]): Work<void> {
    const owner = this.ownerOf(key)
    const extractor = this.languages.extractorFor(key, messages, this.lastSequences[owner] !== undefined)
    for (const message of messages) {
      const indexed = yield* toIndexedTextInSteps(message, owner, extractor)
      yield* this.messageRanker.addInSteps(indexed)
      this.lastSequences[owner] = message.sequence
    }
  }

  /** Replaces the derived entries of a session, without inactive knowledge. Unchanged entries keep their rows. */
  setDerived(key: Key, entries: readonly DerivedEntry[]): void {
    runSync(this.setDerivedInSteps(key, entries))
  }

  /** `setDerived` as interruptible work. */
  *setDerivedInSteps(key: Key, entries: readonly DerivedEntry[]): Work<void> {
    const owner = this.ownerOf(key)
    const before = this.derived[owner] ?? new Map<string, DerivedRow>()
    const after = new Map<string, DerivedRow>()
    const stored = new Set<string>()
    for (const entry of entries) {
      stored.add(entry.id)
      if (!isActive(entry)) continue
      const old = before.get(entry.id)
      let isUnchanged = old !== undefined && old.entry.at === entry.at && old.entry.kind === entry.kind
      if (isUnchanged && old !== undefined) {
        const text = getEntryText(entry)
        isUnchanged = getEntryText(old.entry) === text
        yield text.length
      }
      after.set(entry.id, {
        row: isUnchanged && old !== undefined ? old.row : yield* this.addDerived(key, entry),
        entry,
      })
      if (isUnchanged) before.delete(entry.id)
      else if (old !== undefined) this.changed.push({ key, entry })
    }
    for (const { row, entry } of before.values()) {
      this.derivedRanker.remove(row)
      this.removedDerived++
      // The vector of an inactive entry stays: it may become active again.
      if (!stored.has(entry.id)) this.vectors?.remove(key, entry.id)
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

  /**
   * Returns the matches, best first. The order of ties depends on the entries alone. `given` are the entries nearest to
   * the query's vector if they were found elsewhere.
   */
  search(query: IndexQuery, given?: readonly NearestEntry[]): readonly SearchMatch[] {
    return runSync(this.searchInSteps(query, given))
  }

  /** `search` as interruptible work. The index must not change meanwhile. */
  *searchInSteps(query: IndexQuery, given?: readonly NearestEntry[]): Work<readonly SearchMatch[]> {
    const { text = '', vector, limit } = query
    const nearest = vector === undefined ? [] : this.rankByVector(query, given)
    const matches = text === '' && vector !== undefined ? nearest : yield* this.rankByWords(text, query, nearest)
    return selectBest(matches, limit)
  }

  private *rankByWords(text: string, query: IndexQuery, nearest: readonly SearchMatch[]): Work<SearchMatch[]> {
    const { budget, broad } = query
    const limits = { ...limitsOf(query, query.limit), budget, broad, extractors: this.languages.extractors }
    const isWanted = (kind: Entry['kind']): boolean => query.kinds === undefined || query.kinds.includes(kind)
    const messageKey = (message: number): Key => this.keys[this.messageRanker.ownerAt(message)] as Key
    const similarities = scaleSimilarities(nearest)
    const rankBy = (
      ranker: Ranker,
      rankLimits: RankLimits,
      nameOf: (message: number) => string,
    ): Work<RankedPassage[]> =>
      ranker.rankInSteps(text, {
        ...rankLimits,
        ...(nearest.length > 0 && {
          similarity: {
            weight: query.vector?.weight ?? defaultVectorWeight,
            of: (message: number) => similarities.get(nameOf(message))?.scaled ?? 0,
          },
        }),
      })
    const withCosine = (match: SearchMatch): SearchMatch => {
      const cosine = similarities.get(nameOf(match))?.cosine
      return cosine === undefined ? match : { ...match, why: { ...match.why, meaning: cosine } }
    }
    const toMatch = ({ message, passage, score, why }: RankedPassage): SearchMatch => {
      const sequence = this.messageRanker.sequenceAt(message)
      return withCosine({ key: messageKey(message), id: formatMessageId(sequence), sequence, passage, score, why })
    }
    const nameOfMessage = (message: number): string =>
      nameOf({ key: messageKey(message), id: formatMessageId(this.messageRanker.sequenceAt(message)) })
    const matches = isWanted('message') ? (yield* rankBy(this.messageRanker, limits, nameOfMessage)).map(toMatch) : []
    if (query.kinds?.every((kind) => kind === 'message')) return matches
    const messageStrength = this.messageRanker.strength
    yield* this.forgetRemovedDerived()
    const entryAt = (row: number): KeyedEntry => this.derivedEntries[row] as KeyedEntry
    const nameOfEntry = (row: number): string => nameOf({ key: entryAt(row).key, id: entryAt(row).entry.id })
    // Rank all derived entries: with a limit, one kind could crowd out another before the filter below.
    const derivedLimits = { ...limits, before: noLimits.before, maxResults: this.derivedRanker.size }
    for (const { message, passage, score, why } of yield* rankBy(this.derivedRanker, derivedLimits, nameOfEntry)) {
      const { key, entry } = entryAt(message)
      if (isWanted(entry.kind)) matches.push(withCosine({ key, id: entry.id, sequence: 0, passage, score, why }))
    }
    const strengthOf = ({ sequence }: SearchMatch): number =>
      (sequence > 0 ? messageStrength : this.derivedRanker.strength) || minStrength
    return matches.map((match) => ({ ...match, score: match.score * strengthOf(match) }))
  }

  private rankByVector(query: IndexQuery, given: readonly NearestEntry[] | undefined): SearchMatch[] {
    const limits = limitsOf(query, vectorLimitOf(query))
    const nearest = given ?? this.vectors?.rank(query.vector?.values ?? new Float32Array(0), query.kinds, limits) ?? []
    return nearest.map(({ key, id, score }) => ({
      key,
      id,
      sequence: parseMessageId(id) ?? 0,
      passage: 0,
      score,
      why: { meaning: score },
    }))
  }

  /** Indexes the derived entries again, so that removed ones no longer count in the statistics. */
  private *forgetRemovedDerived(): Work<void> {
    const { size } = this.derivedRanker
    if (this.removedDerived === 0 || (size > maxExactDerived && this.removedDerived * 20 < size)) return
    this.derivedRanker = new Ranker(this.analysis.wordTable?.())
    this.derivedEntries = []
    this.derivedCharacters = 0
    for (const [owner, entries] of this.derived.entries())
      for (const [id, { entry }] of entries ?? [])
        entries.set(id, { row: yield* this.addDerived(this.keys[owner] as Key, entry), entry })
    this.removedDerived = 0
  }

  /** Adds each derived entry under an owner of its own, so that entries do not raise each other as neighbours. */
  private *addDerived(key: Key, entry: DerivedEntry): Work<number> {
    this.derivedEntries.push({ key, entry })
    const text = getEntryText(entry)
    this.derivedCharacters += text.length
    const passages = yield* indexPassagesInSteps(text, englishExtractor)
    return yield* this.derivedRanker.addInSteps({
      owner: this.derivedRanker.size,
      sequence: 0,
      at: entry.at,
      name: undefined,
      tokens: Math.ceil(text.length / 4),
      passages,
    })
  }

  private ownerOf(key: Key): number {
    return getOrCompute(this.owners, formatKey(key), () => this.keys.push(key) - 1)
  }
}

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

/** With more derived entries, a few removed ones may count until the index is built again. */
const maxExactDerived = 1_000
/** Cost of copying a session, in characters. */
const sessionWork = 4

const nameOf = ({ key, id }: { readonly key: Key; readonly id: string }): string => `${formatKey(key)} ${id}`

type Similarity = { readonly cosine: number; readonly scaled: number }
/** Scaled similarity of the last of the nearest entries; the first has 1 and all others 0. */
const lowestSimilarity = 0.05

function scaleSimilarities(nearest: readonly SearchMatch[]): ReadonlyMap<string, Similarity> {
  const [highest, lowest] = [nearest[0]?.score ?? 0, nearest.at(-1)?.score ?? 0]
  const scale = (cosine: number): number =>
    highest > lowest ? lowestSimilarity + ((1 - lowestSimilarity) * (cosine - lowest)) / (highest - lowest) : 1
  return new Map(nearest.map((match) => [nameOf(match), { cosine: match.score, scaled: scale(match.score) }]))
}
