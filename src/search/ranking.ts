import type { Millis, Tokens } from '../domain/entry.ts'
import type { TermExtractor, VectorList, WordTable } from '../domain/ports.ts'
import { runSync, type Work } from '../domain/work.ts'
import { Column, float64Array } from './column.ts'
import { FeatureExtractor, type Features, weighFeatures } from './features.ts'
import { KnownStems } from './knownStems.ts'
import { type IndexedText, LexicalIndex, type LexicalIndexSnapshot } from './lexicalIndex.ts'
import { markers } from './passageTerms.ts'
import { type ParsedQuery, parseQuery, splitQuestion } from './query.ts'
import { lexicalWeights, type RankingWeights, semanticWeights, weightsForSearch } from './rankingWeights.ts'
import { type ScoredRow, selectHighest } from './topK.ts'

/** A ranked passage: number of its message, its number within the message, and the main parts of its score. */
export type RankedPassage = {
  readonly message: number
  readonly passage: number
  readonly score: number
  readonly why: {
    readonly words: number
    readonly related: number
    readonly nearby: number
    /** Only in a broad ranking. */
    readonly similar?: number
  }
}

/**
 * Restricts a ranking to messages before a sequence number and within a period (both ends included), and limits the
 * result.
 */
export type RankLimits = {
  readonly before: number
  readonly from: Millis
  readonly to: Millis
  readonly maxResults: number
  /** Ranks by score per token, for a context of this size, and returns several passages of a message. */
  readonly budget?: Tokens | undefined
  /** Also returns passages that match only by a word of somewhat related meaning. */
  readonly broad?: boolean | undefined
  /** Extractors of the languages in the index. Default: English. */
  readonly extractors?: readonly TermExtractor[] | undefined
  /** Similarity of messages to the query by an embedder, from 0 to 1, and its weight in the score. */
  readonly similarity?: { readonly weight: number; readonly of: (message: number) => number } | undefined
}

export const noLimits: Omit<RankLimits, 'maxResults'> = {
  before: Number.POSITIVE_INFINITY,
  from: Number.NEGATIVE_INFINITY,
  to: Number.POSITIVE_INFINITY,
}

/** Messages ranked per returned one, so that duplicates and questions can give way. */
const spareResults = 32

/** Measured memory of a passage for the scores of a query, and of its vector besides the values. */
const scoringBytes = 150
const vectorBytes = 250

/**
 * Ranks passages of messages for a query by a weighted sum of features (see rankingWeights.ts). Statistics cover the
 * added messages only. Messages of several sessions may be added in any order; neighbours are determined within a
 * session. A stored question never ranks above a statement that contains the same words of the query, and of texts
 * that say the same only the best is returned.
 */
export class Ranker {
  readonly index = new LexicalIndex()
  private readonly extractor = new FeatureExtractor(this.index)
  private readonly table: WordTable | undefined
  /** Sum of the word vectors of each passage. */
  private readonly topics: VectorList | undefined
  private readonly knownStems: KnownStems | undefined
  private scores = new Float32Array()
  /** Match of the best passage with the last query, by which the scores of two rankers are compared. */
  strength = 0
  /** Factor by which the score of a passage falls with its cost. */
  private readonly densities = new Column(float64Array)
  private totalCost = 0

  constructor(table?: WordTable) {
    this.table = table
    this.topics = table?.createVectors()
    this.knownStems = table && new KnownStems(table)
  }

  /** Number of messages. */
  get size(): number {
    return this.index.messageCount
  }

  /** Estimated memory. */
  get bytes(): number {
    const bytesPerPassage = scoringBytes + (this.table === undefined ? 0 : vectorBytes + 4 * this.table.dimensions)
    return this.index.bytes + this.index.rowCount * bytesPerPassage
  }

  ownerAt(message: number): number {
    return this.index.messages.owners.values[message] as number
  }

  sequenceAt(message: number): number {
    return this.index.messages.sequences.values[message] as number
  }

  /** Adds a message and returns its number. */
  add(text: IndexedText): number {
    return runSync(this.addInSteps(text))
  }

  /** `add` as interruptible work. */
  *addInSteps(text: IndexedText): Work<number> {
    const message = yield* this.index.addInSteps(text)
    this.addDensities()
    if (this.knownStems === undefined) return message
    for (const { terms, characters } of text.passages) {
      this.topics?.add(this.knownStems.addTerms(terms))
      yield characters
    }
    return message
  }

  /** Valid only if nothing was removed. */
  snapshotInSteps(): Work<LexicalIndexSnapshot> {
    return this.index.snapshotInSteps()
  }

  /** Fills an empty ranker from a snapshot, in steps after which other work may run. */
  *restore(snapshot: LexicalIndexSnapshot): Generator<void> {
    yield* this.index.restore(snapshot)
    this.addDensities()
    if (this.table !== undefined) yield* this.restoreTopics(this.table)
  }

  /** Computes the factor for the cost of each new passage. */
  private addDensities(): void {
    const { costs } = this.index.passages
    const { density, baseTokens } = this.weights
    for (let row = this.densities.length; row < costs.length; row++) {
      const cost = costs.values[row] as number
      this.densities.push((cost + baseTokens) ** -density)
      this.totalCost += cost
    }
  }

  /** Excludes a message from results. Its terms stay in memory until the index is dropped. */
  remove(message: number): void {
    this.index.clear(message)
  }

  /**
   * Returns the best passages, best first, and all of those that are as good as the last one: the caller knows the
   * order of sessions.
   */
  *rankInSteps(text: string, limits: RankLimits): Work<RankedPassage[]> {
    const query = parseQuery(text, limits.extractors)
    const endRow = this.rowsBefore(limits.before)
    const parts = splitQuestion(text, limits.extractors)
    this.strength = 0
    return parts.length === 0
      ? yield* this.rankQuery(query, endRow, limits)
      : yield* this.rankParts([query, ...parts], endRow, limits)
  }

  private *rankQuery(query: ParsedQuery, endRow: number, limits: RankLimits): Work<RankedPassage[]> {
    const features = yield* this.extractInSteps(query, endRow)
    this.strength = Math.max(this.strength, features.strength)
    this.score(features, query, endRow, limits)
    const isEligible = this.eligibility(features, endRow, limits)
    if (limits.budget !== undefined) this.raiseOnlyMatch(features, endRow, limits.budget, isEligible)
    const selected = selectHighest(this.scores, endRow, this.capacityFor(limits), isEligible)
    return this.selectDistinct(this.placeQuestions(selected, features), limits).map(({ row, score }) =>
      this.describe(row, score, features, limits),
    )
  }

  /** Ranks by the best score for the whole question or one of its parts, so that neither part crowds out the other. */
  private *rankParts(queries: readonly ParsedQuery[], endRow: number, limits: RankLimits): Work<RankedPassage[]> {
    const best = new Map<number, RankedPassage>()
    for (const [number, query] of queries.entries()) {
      const factor = number === 0 ? 1 : partFactor
      for (const ranked of yield* this.rankQuery(query, endRow, limits)) {
        const key = ranked.message * maxTerms + ranked.passage
        const score = ranked.score * factor
        if (score > (best.get(key)?.score ?? 0)) best.set(key, { ...ranked, score })
      }
    }
    return [...best.values()].sort((a, b) => b.score - a.score || b.message - a.message)
  }

  /** Number of passages to select before duplicates are dropped and, for a context, until they fill it. */
  private capacityFor({ maxResults, budget }: RankLimits): number {
    const all = maxResults + spareResults
    if (budget === undefined) return all
    const meanCost = this.totalCost / Math.max(1, this.index.rowCount)
    // Passages that cost little are taken first.
    return Math.min(all, spareResults + Math.ceil((3 * spareTokens * budget) / (meanCost + 1)))
  }

  /** Computes the features of the first passages; `bench/fit.ts` reads them. */
  extractInSteps(query: ParsedQuery, endRow: number): Work<Features> {
    return this.extractor.extractInSteps(query, endRow, this.table, this.knownStems, this.topics)
  }

  /** Combines the features of each passage into its score. */
  private score(features: Features, query: ParsedQuery, endRow: number, limits: RankLimits): void {
    if (this.scores.length < endRow) this.scores = new Float32Array(endRow * 2)
    const weights = this.weights
    const featureWeights = limits.budget === undefined ? weightsForSearch(weights) : weights.features
    weighFeatures(features, this.index, query, featureWeights, endRow, this.scores)
    const { scores } = this
    const { messages, markers: marked } = this.index.passages
    const speakers = this.index.messages.speakers.values
    const speakerFactors = this.speakerFactors(query, weights)
    // A list of results has no budget that long answers could use up.
    const [userFactor, longFactor] = limits.budget === undefined ? [1, 1] : [weights.user, weights.longMessage]
    let highest = 0
    for (let row = 0; row < endRow; row++) {
      const message = messages.values[row] as number
      const isUser = ((marked.values[row] as number) & markers.user) !== 0
      const score =
        (scores[row] as number) *
        (speakerFactors[speakers[message] as number] as number) *
        (isUser ? userFactor : 1) *
        (query.asksLatest ? 1 + latestBonus * this.recencyOf(message) : 1) *
        (query.isNegated && ((marked.values[row] as number) & markers.negation) !== 0 ? negationFactor : 1) *
        (this.isWhole(row, message) ? 1 : longFactor)
      scores[row] = score
      if (score > highest) highest = score
    }
    if (limits.similarity !== undefined) this.addSimilarity(limits.similarity, endRow, highest)
    if (limits.budget === undefined) return
    const densities = this.densities.values
    for (let row = 0; row < endRow; row++) scores[row] = (scores[row] as number) * (densities[row] as number)
  }

  /** Returns 0 for the oldest message and 1 for the newest. */
  private recencyOf(message: number): number {
    return message / Math.max(1, this.index.messageCount - 1)
  }

  /**
   * Puts a passage first that alone matches the question, if it uses less than half of the budget: by score per token,
   * its short neighbours could crowd it out.
   */
  private raiseOnlyMatch(
    { byPassage: { words, meaning } }: Features,
    endRow: number,
    budget: Tokens,
    isEligible: (row: number) => boolean,
  ): void {
    const { scores } = this
    const { features } = this.weights
    const { costs, messages } = this.index.passages
    let [best, bestMatch, otherMatch, highest] = [-1, 0, 0, 0]
    for (let row = 0; row < endRow; row++) {
      if ((scores[row] as number) > highest) highest = scores[row] as number
      const match = features.words * (words[row] as number) + features.meaning * (meaning[row] as number)
      if (match <= otherMatch || !isEligible(row)) continue
      const isSameMessage = best >= 0 && messages.values[row] === messages.values[best]
      if (match <= bestMatch) {
        if (!isSameMessage) otherMatch = match
        continue
      }
      if (!isSameMessage) otherMatch = bestMatch
      best = row
      bestMatch = match
    }
    const isOnlyMatch = best >= 0 && otherMatch < onlyMatchShare * bestMatch
    if (isOnlyMatch && 2 * (costs.values[best] as number) <= budget) scores[best] = highest / justBelow
  }

  private get weights(): RankingWeights {
    return this.table === undefined ? lexicalWeights : semanticWeights
  }

  /** Mixes in the similarity by an embedder. */
  private addSimilarity(
    { weight, of }: NonNullable<RankLimits['similarity']>,
    endRow: number,
    highestScore: number,
  ): void {
    const { scores } = this
    const messages = this.index.passages.messages.values
    const factor = highestScore > 0 ? (1 - weight) / highestScore : 0
    for (let row = 0; row < endRow; row++)
      scores[row] = factor * (scores[row] as number) + weight * of(messages[row] as number)
  }

  /** True if the passage is all of its message. */
  private isWhole(row: number, message: number): boolean {
    const messages = this.index.passages.messages.values
    return row === this.index.messages.firstRows.values[message] && messages[row + 1] !== message
  }

  /** Returns the score factor per speaker: raised if the query names the speaker. */
  private speakerFactors({ stems }: ParsedQuery, { namedSpeaker }: RankingWeights): Float32Array {
    return Float32Array.from(this.index.names.keys(), (name) => (name !== '' && stems.has(name) ? namedSpeaker : 1))
  }

  /**
   * Returns a test for passages that may be results. A search returns only those that match by a word or its meaning,
   * or have a neighbour that does; a context may also show what fits the topic.
   */
  private eligibility(features: Features, endRow: number, limits: RankLimits): (row: number) => boolean {
    const { words, meaning } = features.byPassage
    const { wordsOf } = features.byMessage
    const { isRelated } = features
    const { messages, lengths } = this.index.passages
    const { times, previous, next } = this.index.messages
    const endMessage = endRow === 0 ? 0 : (messages.values[endRow - 1] as number) + 1
    const hasMatch = (row: number, message: number): boolean => {
      if ((words[row] as number) > 0 || isRelated[row] === 1) return true
      if (limits.broad === true && (meaning[row] as number) > 0) return true
      const [before, after] = [previous.values[message] as number, next.values[message] as number]
      return (
        (before > 0 && (wordsOf[before - 1] as number) > 0) ||
        (after > 0 && after <= endMessage && (wordsOf[after - 1] as number) > 0) ||
        (limits.similarity?.of(message) ?? 0) > 0
      )
    }
    return (row) => {
      const message = messages.values[row] as number
      const at = times.values[message] as number
      return (
        (lengths.values[row] as number) > 0 &&
        at >= limits.from &&
        at <= limits.to &&
        (limits.budget !== undefined || hasMatch(row, message))
      )
    }
  }

  /** Moves each question behind the best statement that contains the same words of the query. */
  private placeQuestions(ranked: readonly ScoredRow[], { masks }: Features): ScoredRow[] {
    const marked = this.index.passages.markers.values
    const isQuestion = (row: number): boolean => ((marked[row] as number) & markers.question) !== 0
    const placed = ranked.map(({ row, score }, position) => {
      const mask = masks[row] as number
      if (mask === 0 || !isQuestion(row)) return { row, score }
      for (let at = position + 1; at < Math.min(ranked.length, position + maxPlacesMoved); at++) {
        const other = ranked[at] as ScoredRow
        if (!isQuestion(other.row) && ((masks[other.row] as number) & mask) === mask)
          return { row, score: other.score * justBelow }
      }
      return { row, score }
    })
    return placed.sort((a, b) => b.score - a.score || b.row - a.row)
  }

  /** Keeps the best of texts that say the same and, for a search, the best passage of each message. */
  private selectDistinct(ranked: readonly ScoredRow[], { budget, maxResults }: RankLimits): ScoredRow[] {
    const { messages, fingerprints, lengths, costs } = this.index.passages
    let tokens = 0
    const seen = new Set<number>()
    const seenMessages = new Set<number>()
    const distinct: ScoredRow[] = []
    for (const scored of ranked) {
      // Equal scores are ordered by the caller.
      if (distinct.length >= maxResults && scored.score < (distinct.at(-1)?.score ?? 0)) break
      const message = messages.values[scored.row] as number
      const text = (fingerprints.values[scored.row] as number) * maxTerms + (lengths.values[scored.row] as number)
      if (seen.has(text) || (budget === undefined && seenMessages.has(message))) continue
      seen.add(text)
      seenMessages.add(message)
      distinct.push(scored)
      tokens += costs.values[scored.row] as number
      if (budget !== undefined && tokens > spareTokens * budget && distinct.length >= minContextHits) break
    }
    return distinct
  }

  private describe(
    row: number,
    score: number,
    { byPassage, byMessage, isRelated }: Features,
    { broad }: RankLimits,
  ): RankedPassage {
    const message = this.index.passages.messages.values[row] as number
    return {
      message,
      passage: row - (this.index.messages.firstRows.values[message] as number),
      score,
      why: {
        words: byPassage.words[row] as number,
        related: isRelated[row] === 1 ? (byPassage.meaning[row] as number) : 0,
        nearby: byMessage.wordsNear[message] as number,
        ...(broad === true && { similar: byPassage.meaning[row] as number }),
      },
    }
  }

  /** Returns the first passage of the first message that is not before a sequence number. For a single session only. */
  private rowsBefore(before: number): number {
    if (before === Number.POSITIVE_INFINITY) return this.index.rowCount
    let [low, high] = [0, this.size]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.sequenceAt(middle) < before) low = middle + 1
      else high = middle
    }
    return low === this.size ? this.index.rowCount : (this.index.messages.firstRows.values[low] as number)
  }

  /** Sums the word vectors of all passages again, from the postings. */
  private *restoreTopics(table: WordTable): Generator<void> {
    const { dimensions } = table
    const sums = new Float32Array(this.index.rowCount * dimensions)
    let work = 0
    for (const [term, { rows, counts }] of this.index.postings) {
      // Most terms of long or hostile texts are not in the table.
      if (++work % vectorsPerStep === 0) yield
      const tableRow = table.rowOf(term)
      if (tableRow === undefined) continue
      this.knownStems?.add(tableRow)
      for (let at = 0; at < rows.length; at++) {
        const from = (rows.values[at] as number) * dimensions
        table.addTo(sums.subarray(from, from + dimensions), tableRow, counts.values[at])
        if (++work % vectorsPerStep === 0) yield
      }
    }
    for (let row = 0; row < this.index.rowCount; row++) {
      this.topics?.add(sums.subarray(row * dimensions, (row + 1) * dimensions))
      if (row % vectorsPerStep === vectorsPerStep - 1) yield
    }
  }
}

/** Score of a passage for a part of the question, relative to the same score for the whole. */
const partFactor = 0.8
/** A question about the present raises the newest message by this share. */
const latestBonus = 0.3
const negationFactor = 1.15
/** A passage alone matches the question if no other message has more than this share of its match. */
const onlyMatchShare = 0.4
/** More terms than a passage can have. */
const maxTerms = 65_536
/** Hits for a context, however long they are, so that short ones can fill its rest. */
const minContextHits = 64
/** Hits cost up to this many times the budget, because some of them will not fit. */
const spareTokens = 2.5
/** A question is compared with this many of the passages that rank below it. */
const maxPlacesMoved = 200
/** Factor that puts a score right below another one. */
const justBelow = 0.999_999
/** Vectors added between two pauses: a few milliseconds of work. */
const vectorsPerStep = 4_096
