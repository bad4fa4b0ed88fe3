import type { VectorList, WordTable } from '../domain/ports.ts'
import type { Work } from '../domain/work.ts'
import type { KnownStems } from './knownStems.ts'
import type { LexicalIndex } from './lexicalIndex.ts'
import { markers } from './passageTerms.ts'
import type { Posting } from './postingTable.ts'
import type { ParsedQuery } from './query.ts'
import { bm25, decay, type FeatureName, minSimilarity, strongSimilarity } from './rankingWeights.ts'

/** Terms in more than one of this many passages are ignored if the query has rarer ones. */
const commonTermDivisor = 2
/** Only this many of the rarest query terms are used; one bit each in the masks. */
const maxQueryTerms = 24
/** Cost of the related words of a word, in characters: up to 1 ms if they were not looked up lately. */
const relatedWork = 512

/** A query term with its weight and the number of passages that contain it. */
type QueryTerm = {
  readonly posting: Posting
  readonly weight: number
  readonly documents: number
  readonly idf: number
}

/** Features of all passages for one query, by name. Columns of messages are read through the message of a passage. */
export type Features = {
  readonly byPassage: Readonly<Record<PassageFeature, Float32Array>>
  readonly byMessage: Readonly<Record<MessageFeature, Float32Array>>
  readonly byBurst: Readonly<Record<BurstFeature, Float32Array>>
  /** 1 for passages with a word that means much the same as one of the query. */
  readonly isRelated: Uint8Array
  /** Query terms that a passage contains, one bit each, rarest first. */
  readonly masks: Uint32Array
  /** Highest BM25 score of a passage, or half the highest similarity if that is more: comparable between indexes. */
  readonly strength: number
}
type PassageFeature = 'words' | 'meaning' | 'topic'
type MessageFeature = 'wordsOf' | 'wordsNear' | 'wordsAround' | 'meaningNear'
type BurstFeature = 'burstBest' | 'burstWords'

/** Computes the features of passages. Its buffers are reused: a result is valid until the next query. */
export class FeatureExtractor {
  private readonly index: LexicalIndex
  private byPassage = { words: new Float32Array(), meaning: new Float32Array(), topic: new Float32Array() }
  private byMessage = {
    wordsOf: new Float32Array(),
    wordsNear: new Float32Array(),
    wordsAround: new Float32Array(),
    meaningNear: new Float32Array(),
  }
  private byBurst = { burstBest: new Float32Array(), burstWords: new Float32Array() }
  private masks = new Uint32Array()
  private isRelated = new Uint8Array()
  /** Best similarity of the current query word per passage, and the passages that have one. */
  private similarities = new Float32Array()
  private similarRows = new Uint32Array()
  private meaningOf = new Float32Array()
  private fading = { wordsNear: new Float32Array(), wordsAround: new Float32Array(), meaningNear: new Float32Array() }
  private burstCounts = new Float32Array()
  private burstLengths = new Float32Array()

  constructor(index: LexicalIndex) {
    this.index = index
  }

  /** Computes the features of the first `endRow` passages, all scaled to at most 1. */
  *extractInSteps(
    query: ParsedQuery,
    endRow: number,
    table: WordTable | undefined,
    knownStems: KnownStems | undefined,
    topics: VectorList | undefined,
  ): Work<Features> {
    this.reset()
    const terms = this.selectTerms(query.terms)
    this.addWords(terms, endRow)
    if (table !== undefined && knownStems !== undefined) yield* this.addMeaning(query, table, knownStems, endRow)
    if (table !== undefined && topics !== undefined) this.addTopic(query, table, topics, endRow)
    const strength = Math.max(scale(this.byPassage.words, endRow), 0.5 * scale(this.byPassage.meaning, endRow))
    const { messages } = this.index.passages
    const endMessage = endRow === 0 ? 0 : (messages.values[endRow - 1] as number) + 1
    maximumByGroup(this.byPassage.words, messages.values, endRow, this.byMessage.wordsOf)
    maximumByGroup(this.byPassage.meaning, messages.values, endRow, this.meaningOf)
    this.spread(endMessage)
    this.meaningOf.fill(0, 0, endMessage)
    maximumByGroup(this.byMessage.wordsOf, this.index.messages.bursts.values, endMessage, this.byBurst.burstBest)
    scale(this.byBurst.burstWords, this.index.burstCount)
    const { byPassage, byMessage, byBurst, isRelated, masks } = this
    return { byPassage, byMessage, byBurst, isRelated, masks, strength }
  }

  private reset(): void {
    const { rowCount, messageCount, burstCount } = this.index
    if (this.masks.length < rowCount) {
      const capacity = Math.max(256, rowCount * 2)
      const create = () => new Float32Array(capacity)
      this.byPassage = { words: create(), meaning: create(), topic: create() }
      this.byMessage = { wordsOf: create(), wordsNear: create(), wordsAround: create(), meaningNear: create() }
      this.byBurst = { burstBest: create(), burstWords: create() }
      this.masks = new Uint32Array(capacity)
      this.isRelated = new Uint8Array(capacity)
      this.similarities = create()
      this.similarRows = new Uint32Array(capacity)
      this.meaningOf = create()
      this.fading = { wordsNear: create(), wordsAround: create(), meaningNear: create() }
      this.burstCounts = create()
      this.burstLengths = create()
      return
    }
    for (const column of Object.values(this.byPassage)) column.fill(0, 0, rowCount)
    for (const column of Object.values(this.byMessage)) column.fill(0, 0, messageCount)
    for (const column of Object.values(this.byBurst)) column.fill(0, 0, burstCount)
    this.masks.fill(0, 0, rowCount)
    this.isRelated.fill(0, 0, rowCount)
    this.burstLengths.fill(0, 0, burstCount)
  }

  /**
   * Selects the rarest query terms that occur in the index. Drops very common terms unless fewer than two rarer ones
   * remain.
   */
  private selectTerms(terms: ReadonlyMap<string, number>): QueryTerm[] {
    const found: QueryTerm[] = []
    for (const [term, weight] of terms) {
      const posting = this.index.postings.get(term)
      if (posting !== undefined)
        found.push({ posting, weight, documents: posting.rows.length, idf: this.idfOf(posting) })
    }
    const rarer = found.filter(({ documents }) => documents <= this.index.rowCount / commonTermDivisor)
    return (rarer.length > 1 ? rarer : found).sort((a, b) => a.documents - b.documents).slice(0, maxQueryTerms)
  }

  private idfOf({ rows: { length } }: Posting): number {
    return Math.log(1 + (this.index.rowCount - length + 0.5) / (length + 0.5))
  }

  /** Adds the BM25 score of each query term to each passage and burst that contains it. */
  private addWords(terms: readonly QueryTerm[], endRow: number): void {
    const { index, masks, burstCounts, burstLengths } = this
    const { words } = this.byPassage
    const { burstWords } = this.byBurst
    const lengths = index.passages.lengths.values
    const messages = index.passages.messages.values
    const bursts = index.messages.bursts.values
    for (let row = 0; row < endRow; row++) {
      const burst = bursts[messages[row] as number] as number
      burstLengths[burst] = (burstLengths[burst] as number) + (lengths[row] as number)
    }
    const meanLength = Math.max(1, index.totalTerms / Math.max(1, index.rowCount))
    const meanBurst = Math.max(1, index.totalTerms / Math.max(1, index.burstCount))
    const flat = bm25.saturation * (1 - bm25.length)
    const slope = (bm25.saturation * bm25.length) / meanLength
    const burstFlat = bm25.saturation * (1 - bm25.burstLength)
    const burstSlope = (bm25.saturation * bm25.burstLength) / meanBurst
    terms.forEach(({ posting, weight, idf }, bit) => {
      const [rows, counts, length] = [posting.rows.values, posting.counts.values, posting.rows.length]
      const factor = weight * idf * (bm25.saturation + 1)
      let end = 0
      for (; end < length; end++) {
        const row = rows[end] as number
        if (row >= endRow) break
        const count = counts[end] as number
        words[row] = (words[row] as number) + (factor * count) / (count + flat + slope * (lengths[row] as number))
        masks[row] = (masks[row] as number) | (1 << bit)
        const burst = bursts[messages[row] as number] as number
        burstCounts[burst] = (burstCounts[burst] as number) + count
      }
      for (let at = 0; at < end; at++) {
        const burst = bursts[messages[rows[at] as number] as number] as number
        const count = burstCounts[burst] as number
        if (count === 0) continue
        burstCounts[burst] = 0
        burstWords[burst] =
          (burstWords[burst] as number) +
          (idf * count) / (count + burstFlat + burstSlope * (burstLengths[burst] as number))
      }
    })
  }

  /**
   * Adds, for each word of the query, the similarity of the most similar word of each passage. The related words come
   * from the table and are looked up in the index, so that the cost grows with the matches.
   */
  private *addMeaning({ terms }: ParsedQuery, table: WordTable, knownStems: KnownStems, endRow: number): Work<void> {
    const { meaning } = this.byPassage
    const { index, similarities, similarRows } = this
    const maxDocuments = index.rowCount / commonTermDivisor
    const unknownIdf = Math.log(1 + index.rowCount)
    for (const term of terms.keys()) {
      const own = index.postings.get(term)
      if (index.names.has(term) || (own !== undefined && own.rows.length > maxDocuments)) continue
      const ownIdf = own === undefined ? unknownIdf : this.idfOf(own)
      let count = own === undefined ? 0 : this.raise(own, ownIdf, endRow, 0)
      for (const { stem, similarity } of table.relatedStems(term, (row) => knownStems.has(row))) {
        const posting = index.postings.get(stem)
        if (posting === undefined) continue
        const value = ((similarity - minSimilarity) / (1 - minSimilarity)) * Math.min(ownIdf, this.idfOf(posting))
        count = this.raise(posting, value, endRow, count)
        if (similarity >= strongSimilarity) this.markRelated(posting, endRow)
      }
      for (let at = 0; at < count; at++) {
        const row = similarRows[at] as number
        meaning[row] = (meaning[row] as number) + (similarities[row] as number)
        similarities[row] = 0
      }
      yield relatedWork
    }
  }

  private markRelated({ rows: { values, length } }: Posting, endRow: number): void {
    for (let at = 0; at < length && (values[at] as number) < endRow; at++) this.isRelated[values[at] as number] = 1
  }

  /** Raises the similarity of the passages of a posting to `value`. Returns the number of passages that have one. */
  private raise({ rows: { values, length } }: Posting, value: number, endRow: number, count: number): number {
    const { similarities, similarRows } = this
    let similarCount = count
    for (let at = 0; at < length; at++) {
      const row = values[at] as number
      if (row >= endRow) break
      const before = similarities[row] as number
      if (before >= value) continue
      if (before === 0) similarRows[similarCount++] = row
      similarities[row] = value
    }
    return similarCount
  }

  /** Computes how much closer than the average each passage is to the topic of the query. */
  private addTopic({ terms }: ParsedQuery, table: WordTable, topics: VectorList, endRow: number): void {
    const vector = new Float32Array(table.dimensions)
    let isEmpty = true
    for (const term of terms.keys()) {
      const row = this.index.names.has(term) ? undefined : table.rowOf(term)
      if (row === undefined) continue
      table.addTo(vector, row)
      isEmpty = false
    }
    if (isEmpty || endRow === 0) return
    const cosines = topics.scores(vector)
    const { topic } = this.byPassage
    let [sum, highest] = [0, 0]
    for (let row = 0; row < endRow; row++) {
      const cosine = cosines[row] as number
      sum += cosine
      if (cosine > highest) highest = cosine
    }
    const mean = sum / endRow
    const range = highest - mean
    if (range <= 0) return
    for (let row = 0; row < endRow; row++) topic[row] = Math.max(0, ((cosines[row] as number) - mean) / range)
  }

  /** Adds the scores of the messages around each message in its burst, fading with the distance. */
  private spread(endMessage: number): void {
    const { index, byMessage, fading } = this
    const { previous, next } = index.messages
    this.spreadFrom(previous.values, byMessage, 0, endMessage, 1)
    this.spreadFrom(next.values, fading, endMessage - 1, endMessage, -1)
    for (const name of spreadFeatures) {
      const [target, other] = [byMessage[name], fading[name]]
      for (let message = 0; message < endMessage; message++)
        target[message] = (target[message] as number) + (other[message] as number)
      other.fill(0, 0, endMessage)
      scale(target, endMessage)
    }
  }

  /** Sums the scores on one side. `neighbours` holds the number of each message's neighbour plus one, or 0. */
  private spreadFrom(
    neighbours: Uint32Array,
    { wordsNear, wordsAround, meaningNear }: Readonly<Record<SpreadFeature, Float32Array>>,
    start: number,
    endMessage: number,
    step: 1 | -1,
  ): void {
    const { meaningOf } = this
    const { wordsOf } = this.byMessage
    for (let message = start; message >= 0 && message < endMessage; message += step) {
      const other = (neighbours[message] as number) - 1
      if (other < 0 || other >= endMessage) continue
      const words = wordsOf[other] as number
      wordsNear[message] = fade(decay.near * ((wordsNear[other] as number) + words))
      wordsAround[message] = fade(decay.around * ((wordsAround[other] as number) + words))
      meaningNear[message] = fade(decay.near * ((meaningNear[other] as number) + (meaningOf[other] as number)))
    }
  }
}

const spreadFeatures = ['wordsNear', 'wordsAround', 'meaningNear'] as const
type SpreadFeature = (typeof spreadFeatures)[number]

/** Smaller values count as 0: arithmetic with numbers close to 0 is many times slower. */
const negligible = 1e-4
const fade = (value: number): number => (value > negligible ? value : 0)

/** Divides values by their maximum, and returns it. */
function scale(values: Float32Array, end: number): number {
  let highest = 0
  for (let at = 0; at < end; at++) if ((values[at] as number) > highest) highest = values[at] as number
  if (highest === 0) return 0
  const factor = 1 / highest
  for (let at = 0; at < end; at++) values[at] = (values[at] as number) * factor
  return highest
}

function maximumByGroup(values: Float32Array, groups: Uint32Array, end: number, target: Float32Array): void {
  for (let at = 0; at < end; at++) {
    const group = groups[at] as number
    const value = values[at] as number
    if (value > (target[group] as number)) target[group] = value
  }
}

/**
 * Writes the weighted sum of the features of each passage. With a weight of 1 for one feature and 0 for the others it
 * writes that feature, which is how `bench/fit.ts` reads them.
 */
export function weighFeatures(
  { byPassage, byMessage, byBurst }: Features,
  index: LexicalIndex,
  query: ParsedQuery,
  weights: Readonly<Record<FeatureName, number>>,
  endRow: number,
  target: Float32Array,
): void {
  const { words, meaning, topic } = byPassage
  const messageOf = index.passages.messages.values
  const marked = index.passages.markers.values
  const firstRows = index.messages.firstRows.values
  const shared = shareByMessage({ byMessage, byBurst }, index, weights, endRow)
  const timeWeight = query.asksTime ? weights.time : 0
  const numberWeight = query.asksNumber ? weights.number : 0
  for (let row = 0; row < endRow; row++) {
    const message = messageOf[row] as number
    let sum =
      (shared[message] as number) +
      weights.words * (words[row] as number) +
      weights.meaning * (meaning[row] as number) +
      weights.topic * (topic[row] as number)
    const isFirst = row === firstRows[message]
    const isLast = row + 1 === endRow || messageOf[row + 1] !== message
    if (!isFirst || !isLast)
      sum +=
        weights.wordsBeside * betterBeside(words, row, isFirst, isLast) +
        weights.meaningBeside * betterBeside(meaning, row, isFirst, isLast)
    const mark = marked[row] as number
    if ((mark & markers.time) !== 0) sum += timeWeight
    if ((mark & markers.number) !== 0) sum += numberWeight
    target[row] = sum
  }
}

let sharedBuffer = new Float32Array()

/** Sums the weighted features that all passages of a message share. */
function shareByMessage(
  { byMessage, byBurst }: Pick<Features, 'byMessage' | 'byBurst'>,
  index: LexicalIndex,
  weights: Readonly<Record<FeatureName, number>>,
  endRow: number,
): Float32Array {
  const endMessage = endRow === 0 ? 0 : (index.passages.messages.values[endRow - 1] as number) + 1
  if (sharedBuffer.length < endMessage) sharedBuffer = new Float32Array(endMessage * 2)
  const bursts = index.messages.bursts.values
  for (let message = 0; message < endMessage; message++) {
    const burst = bursts[message] as number
    sharedBuffer[message] =
      weights.wordsNear * (byMessage.wordsNear[message] as number) +
      weights.wordsAround * (byMessage.wordsAround[message] as number) +
      weights.meaningNear * (byMessage.meaningNear[message] as number) +
      weights.burstBest * (byBurst.burstBest[burst] as number) +
      weights.burstWords * (byBurst.burstWords[burst] as number)
  }
  return sharedBuffer
}

/** The better value of the passages before and after in the same message. */
const betterBeside = (values: Float32Array, row: number, isFirst: boolean, isLast: boolean): number =>
  Math.max(isFirst ? 0 : (values[row - 1] as number), isLast ? 0 : (values[row + 1] as number))
