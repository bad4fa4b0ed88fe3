import type { Millis } from '../domain/entry.ts'
import { splitWords, stem } from '../text/words.ts'
import { type IndexedText, LexicalIndex, type LexicalIndexSnapshot, type Posting } from './lexicalIndex.ts'
import { maxQueryCharacters, queryTerms } from './terms.ts'
import { TopK } from './topK.ts'

/** A ranked row, with the parts of its score: own BM25 score, neighbours' share, best score of its burst. */
export type RankedText = {
  readonly row: number
  readonly score: number
  readonly why: { readonly words: number; readonly nearby: number; readonly burst: number }
}

/** Ranking weights, measured on dialogues (bench/recall.ts). `saturation` and `length` are BM25's k1 and b. */
const weights = { saturation: 1.2, length: 0.5, previous: 0.5, next: 0.3, burst: 0.3, speaker: 0.4 }

/** Terms in more than one of this many texts are ignored if the query has rarer ones. */
const commonTermDivisor = 2
/** Only this many of the rarest query terms are used. */
const maxQueryTerms = 24
/** If the postings cover less than one of this many texts, only those texts and their neighbours are visited. */
const sparseDivisor = 6

/**
 * Restricts a ranking to texts before a sequence number and within a period (both ends included), and limits the
 * result.
 */
export type RankLimits = {
  readonly before: number
  readonly from: Millis
  readonly to: Millis
  readonly maxResults: number
}

export const noLimits: Omit<RankLimits, 'maxResults'> = {
  before: Number.POSITIVE_INFINITY,
  from: Number.NEGATIVE_INFINITY,
  to: Number.POSITIVE_INFINITY,
}

/** A query term with its weight and the number of texts that contain it. */
type QueryTerm = { readonly posting: Posting; readonly weight: number; readonly documents: number }

/**
 * Ranks texts for a query: BM25 over word stems, raised by the neighbouring messages, by the best message of the same
 * burst, and by the speaker if the query names one. Statistics cover the added texts only. Texts of several sessions
 * may be added in any order; neighbours are determined within a session.
 */
export class Ranker {
  private readonly index: LexicalIndex
  private readonly removed = new Set<number>()
  private scores = new Float64Array()
  private raised = new Float64Array()
  /** Best score per burst. */
  private best = new Float64Array()
  private marked = new Uint8Array()
  private sparseRows = new Uint32Array()
  private allRows = new Uint32Array()

  constructor(index = new LexicalIndex()) {
    this.index = index
  }

  get size(): number {
    return this.index.size
  }

  ownerAt(row: number): number {
    return this.index.owners.values[row] as number
  }

  sequenceAt(row: number): number {
    return this.index.sequences.values[row] as number
  }

  /** Adds a text and returns its row. */
  add(text: IndexedText): number {
    return this.index.add(text)
  }

  /** Valid only if nothing was removed. */
  snapshot(): LexicalIndexSnapshot {
    return this.index.snapshot()
  }

  /** Excludes a text from results and statistics. Its terms stay in memory until the index is dropped. */
  remove(row: number): void {
    if (this.removed.has(row)) return
    this.removed.add(row)
    this.index.clearLength(row)
  }

  /**
   * Returns the best texts, best first. Ties at the end of the list: in a single session the later texts are taken;
   * with several sessions all of them are returned, because their order is not known here.
   */
  rank(query: string, limits: RankLimits): RankedText[] {
    const end = this.rowsBefore(limits.before)
    const terms = this.selectTerms(query)
    if (terms.length === 0) return []
    const top = new TopK(Math.min(limits.maxResults, end))
    this.addTermScores(terms, end)
    const rows = this.rowsToVisit(terms, end)
    this.addNeighbourScores(rows, end)
    const speakerBoosts = this.speakerBoosts(query)
    const { scores, raised, best } = this
    const [times, bursts, speakers] = [this.index.times.values, this.index.bursts.values, this.index.speakers.values]
    const scoreAt = (row: number): number => {
      const own = raised[row] as number
      return own === 0
        ? 0
        : own * (speakerBoosts[speakers[row] as number] as number) +
            weights.burst * (best[bursts[row] as number] as number)
    }
    const isWithinPeriod = (row: number): boolean =>
      (times[row] as number) >= limits.from && (times[row] as number) <= limits.to
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at] as number
      if (raised[row] === 0) continue
      const score = scoreAt(row)
      if (score >= top.threshold && isWithinPeriod(row)) top.push(row, score)
    }
    const selected = top.sorted()
    if (this.index.sessions > 1 && selected.length === limits.maxResults) {
      const present = new Set(selected.map(({ row }) => row))
      for (const row of rows)
        if (scoreAt(row) === top.threshold && isWithinPeriod(row) && !present.has(row))
          selected.push({ row, score: top.threshold })
    }
    const ranked = selected.map(({ row, score }) => {
      const words = scores[row] as number
      return {
        row,
        score,
        why: {
          words,
          nearby: (raised[row] as number) - words,
          burst: weights.burst * (best[bursts[row] as number] as number),
        },
      }
    })
    this.reset(rows)
    return ranked
  }

  /** Adds the BM25 score of each query term to each text that contains it. */
  private addTermScores(terms: readonly QueryTerm[], end: number): void {
    this.ensureCapacity()
    const { scores, removed } = this
    const lengths = this.index.lengths.values
    const documentCount = this.size - removed.size
    const meanLength = Math.max(1, this.index.totalTerms / Math.max(1, documentCount))
    const [flat, slope] = [
      weights.saturation * (1 - weights.length),
      (weights.saturation * weights.length) / meanLength,
    ]
    for (const { posting, weight, documents } of terms) {
      const [rows, counts, length] = [posting.rows.values, posting.counts.values, posting.rows.length]
      const idf = Math.log(1 + (documentCount - documents + 0.5) / (documents + 0.5))
      const factor = weight * (weights.saturation + 1) * idf
      for (let at = 0; at < length; at++) {
        const row = rows[at] as number
        if (row >= end) break
        if (removed.size > 0 && removed.has(row)) continue
        const count = counts[at] as number
        scores[row] = (scores[row] as number) + (factor * count) / (count + flat + slope * (lengths[row] as number))
      }
    }
  }

  /** Clears the buffers for the next query. */
  private reset(rows: Uint32Array): void {
    const { scores, raised, best, marked } = this
    const bursts = this.index.bursts.values
    if (rows.buffer === this.allRows.buffer) {
      scores.fill(0, 0, rows.length)
      raised.fill(0, 0, rows.length)
      best.fill(0, 0, this.index.size)
      return
    }
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at] as number
      scores[row] = 0
      raised[row] = 0
      marked[row] = 0
      best[bursts[row] as number] = 0
    }
  }

  private ensureCapacity(): void {
    if (this.scores.length >= this.size) return
    const capacity = Math.max(256, this.size * 2)
    this.scores = new Float64Array(capacity)
    this.raised = new Float64Array(capacity)
    this.best = new Float64Array(capacity)
    this.marked = new Uint8Array(capacity)
    this.sparseRows = new Uint32Array(capacity)
    this.allRows = Uint32Array.from({ length: capacity }, (_, row) => row)
  }

  /**
   * Returns the rows whose score can be above 0: for rare terms the matching rows and their neighbours, otherwise all
   * rows.
   */
  private rowsToVisit(terms: readonly QueryTerm[], end: number): Uint32Array {
    const total = terms.reduce((sum, { posting }) => sum + posting.rows.length, 0)
    if (total * sparseDivisor > end) return this.allRows.subarray(0, end)
    const { marked, sparseRows } = this
    const [previous, next] = [this.index.previous.values, this.index.next.values]
    let count = 0
    const mark = (row: number): void => {
      if (row < 0 || row >= end || marked[row] === 1) return
      marked[row] = 1
      sparseRows[count++] = row
    }
    for (const { posting } of terms) {
      const [rows, length] = [posting.rows.values, posting.rows.length]
      for (let at = 0; at < length && (rows[at] as number) < end; at++) {
        const row = rows[at] as number
        mark(row)
        mark((previous[row] as number) - 1)
        mark((next[row] as number) - 1)
      }
    }
    return sparseRows.subarray(0, count)
  }

  /**
   * Selects the rarest query terms that occur in the index. Drops very common terms unless fewer than two rarer ones
   * remain.
   */
  private selectTerms(query: string): QueryTerm[] {
    const documentCount = this.size - this.removed.size
    const found: QueryTerm[] = []
    for (const [term, weight] of queryTerms(query)) {
      const posting = this.index.postings.get(term)
      const documents = posting === undefined ? 0 : this.countDocuments(posting)
      if (posting !== undefined && documents > 0) found.push({ posting, weight, documents })
    }
    const rarer = found.filter(({ documents }) => documents <= documentCount / commonTermDivisor)
    return (rarer.length > 1 ? rarer : found).sort((a, b) => a.documents - b.documents).slice(0, maxQueryTerms)
  }

  private countDocuments({ rows }: Posting): number {
    if (this.removed.size === 0) return rows.length
    let count = 0
    for (let at = 0; at < rows.length; at++) if (!this.removed.has(rows.values[at] as number)) count++
    return count
  }

  /**
   * Returns the number of rows with a sequence number below `before`, by binary search. Used with a single session
   * only.
   */
  private rowsBefore(before: number): number {
    if (before === Number.POSITIVE_INFINITY) return this.size
    let [low, high] = [0, this.size]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.sequenceAt(middle) < before) low = middle + 1
      else high = middle
    }
    return low
  }

  /**
   * Adds a share of the scores of the messages right before and after in the same burst, and records the best score per
   * burst.
   */
  private addNeighbourScores(rows: Uint32Array, end: number): void {
    const { scores, raised, best } = this
    const [lengths, previous, next, bursts] = [
      this.index.lengths.values,
      this.index.previous.values,
      this.index.next.values,
      this.index.bursts.values,
    ]
    const { previous: previousWeight, next: nextWeight } = weights
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at] as number
      const own = scores[row] as number
      if (own > 0) {
        const burst = bursts[row] as number
        if (own > (best[burst] as number)) best[burst] = own
      }
      const before = previous[row] as number
      const after = next[row] as number
      const withPrevious = before === 0 ? own : own + previousWeight * (scores[before - 1] as number)
      const total =
        after === 0 || after > end ? withPrevious : withPrevious + nextWeight * (scores[after - 1] as number)
      // A text without terms is never a result, whatever its neighbours score.
      if (total > 0 && lengths[row] !== 0) raised[row] = total
    }
  }

  /** Returns the score factor per speaker: raised if the query names the speaker. */
  private speakerBoosts(query: string): Float64Array {
    const queryStems = new Set(splitWords(query.slice(0, maxQueryCharacters)).map(stem))
    return Float64Array.from(this.index.names.keys(), (name) =>
      name !== '' && queryStems.has(name) ? 1 + weights.speaker : 1,
    )
  }
}
