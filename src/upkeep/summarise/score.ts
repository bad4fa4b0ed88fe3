import { Heap } from '../../domain/heap.ts'
import type { Work } from '../../domain/work.ts'
import {
  countMatches,
  datePattern,
  firstPersonPattern,
  identifierPattern,
  namePattern,
  numberPattern,
} from '../../text/sentences.ts'
import { extractTerms } from '../../text/words.ts'
import { type Cue, findCues, foreignDatePattern, foreignFirstPersonPattern } from './cues.ts'
import { type Piece, type PieceKind, pieceWork } from './pieces.ts'

// Weights measured on long dialogues by the content of later questions: answers and dates most, then events, numbers,
// names. Cues mark the sentences that a reader would miss.
const eventPattern =
  /\b(?:I|[Ww]e)(?:['’](?:ve|d|m|re))?\s(?:(?:just|also|finally|recently|never|always)\s)?(?:\w{2,20}ed|went|got|had|made|did|took|saw|met|bought|found|won|lost|began|wrote|gave|ran|came|left|told|kept|was|were|been|chose|prefer|want|need|hate|love)\b/g
const cueWeights: Readonly<Record<Cue, number>> = {
  decision: 2.2,
  constraint: 1.8,
  preference: 1,
  outcome: 0.9,
  problem: 0.4,
  nextStep: 0.3,
}
/** An assistant's "must" and "please" are advice. */
const isWish = (cue: Cue): boolean => cue === 'constraint' || cue === 'preference'
const assistantWishShare = 0.4
/** Order, ticket and telephone numbers, amounts, times and hashes. */
const referencePattern = /\b[A-Z]{1,6}-?\d{2,}|\b\d[\d.,:]*\d|[€$£]|\b[0-9a-f]{7,40}\b/g
const questionPattern = /\?["'”’)\]]*$/
const questionFactor = 0.5

/** An unnamed assistant's explanation can be generated again; a person's statement, or a result, cannot. */
const unnamedAssistantFactor = 0.3
const assistantResultFactor = 0.7
const kindFactors: Readonly<Record<PieceKind, number>> = {
  prose: 1,
  earlier: 1.4,
  series: 1,
  detail: 1,
  output: 0.2,
}
const failedOutputFactor = 2
const longTurnFactor = 0.6
/** A text that introduces something that is not shown. */
const introductionFactor = 0.4
const openingFactor = 2.2
/** A sentence that is stored as a fact is shown twice if the summary has it, too. */
const factFactor = 0.5
/** Opinions of others, and guesses. */
const reportedPattern =
  /\b(?:my|our|the|a) [\p{L}-]+ (?:I got |we got |today |also |always ){0,2}(?:says?|said|thinks?|told|claims?|reckons?)\b|\baccording to\b|\b(?:he|she|they) (?:says?|said|thinks?)\b|\bsagt\b|\bmeint\b|\bdit que\b|\bdice que\b|\bdiz que\b|\bzegt\b/iu
const hedgePattern =
  /\b(?:perhaps|maybe|might|probably|likely|could|thinking (?:of|about)|vielleicht|vermutlich|peut-être|quizás?|talvez|misschien)\b/i
const uncertainFactor = 0.6
/** Offers and interim counts, which a decision or the final count replaces. */
const offerPattern =
  /\b(?:offer(?:s|ed)?|quotes?:|so far|there (?:is|are) (?:an? )?(?:one|some|another|(?:direct |early |late )?(?:flight|train|bus|room|table|slot))s?|bieten|bietet|angebote?:|bisher|proposent|devis :|ofrecen|oferecem|bieden|offertes?:)(?!\p{L})/iu
const offerFactor = 0.4
/** Share of the weight of a word that a sentence ranked higher has already. */
const repeatedShare = 0.3

/** Length, importance and words of a text, with the weight of each word. */
export type Content = {
  readonly words: number
  readonly factor: number
  readonly terms: ReadonlyMap<string, number>
}

/** Characters of a piece that determine its content: longer sentences have no stops, or no spaces between words. */
const maxMeasuredCharacters = 1_024

/** Measures the content of pieces. Rare words weigh more. */
export function* measureContent(pieces: readonly Piece[]): Work<readonly Content[]> {
  const terms: ReadonlySet<string>[] = []
  const frequency = new Map<string, number>()
  for (const piece of pieces) {
    const own = new Set(extractTerms(piece.text.slice(0, maxMeasuredCharacters)))
    for (const term of own) frequency.set(term, (frequency.get(term) ?? 0) + 1)
    terms.push(own)
    yield pieceWork(piece)
  }
  const opening = pieces.findIndex(({ speaker }) => speaker === 'User')
  const contents: Content[] = []
  for (const [index, piece] of pieces.entries()) {
    const weights = new Map<string, number>()
    // The same news of two people is not a repetition.
    const owner = piece.isPerson && piece.speaker !== 'User' ? `${piece.speaker} ` : ''
    for (const term of terms[index] ?? [])
      weights.set(owner === '' ? term : owner + term, Math.log(1 + pieces.length / (frequency.get(term) ?? 1)))
    const factor = pieceFactor(piece) * (index === opening ? openingFactor : 1)
    contents.push({ words: piece.words, factor, terms: weights })
    yield pieceWork(piece)
  }
  return contents
}

const noTerms: ReadonlyMap<string, number> = new Map()

/** Copies maps into one. */
function joinMaps(maps: readonly ReadonlyMap<string, number>[]): ReadonlyMap<string, number> {
  const joined = new Map<string, number>()
  for (const map of maps) for (const [term, weight] of map) joined.set(term, weight)
  return joined
}

/** Content of several texts together. */
export function joinContents(contents: readonly Content[]): Content {
  const [first = noTerms, ...others] = contents.map(({ terms }) => terms)
  const words = contents.reduce((sum, content) => sum + content.words, 0)
  const factor = contents.reduce((sum, content) => sum + content.factor * (content.words + 1), 0)
  return {
    words,
    factor: factor / (words + contents.length),
    terms: others.length === 0 ? first : joinMaps([first, ...others]),
  }
}

/** Scores a text by the information per word that it adds to the words covered so far. */
export function scoreContent({ words, factor, terms }: Content, covered: ReadonlySet<string>): number {
  let sum = 0
  for (const [term, weight] of terms) sum += covered.has(term) ? repeatedShare * weight : weight
  // The exponent keeps long texts, which have many rare words, from outweighing short ones.
  return (sum ** 0.6 / (words + 5)) * factor
}

/** Cost of putting a text into its place, in characters; each of its terms costs one more. */
const rankWork = 10

type Ranked = {
  readonly index: number
  readonly score: number
  /** Number of times its score has fallen because the text that it needs was not ranked yet. */
  readonly delays: number
}

const delayFactor = 0.6
/** After these, a text waits for the one it needs: in a chain of them, all others would fall again for each one. */
const maxDelays = 4

/**
 * Orders texts so that each one adds the most to those before it; returns their indexes. `needs` is the index of a text
 * that should come first: a text that is much better does not wait for it.
 */
export function* rankByGain(
  contents: readonly Content[],
  needs: readonly (number | undefined)[],
): Work<readonly number[]> {
  const covered = new Set<string>()
  const isBefore = (one: Ranked, other: Ranked): boolean =>
    one.score > other.score || (one.score === other.score && one.index < other.index)
  const heap = new Heap<Ranked>(isBefore)
  for (const [index, content] of contents.entries()) {
    heap.push({ index, score: scoreContent(content, covered), delays: 0 })
    yield rankWork + content.terms.size
  }
  const order: number[] = []
  const ranked = new Set<number>()
  const waiting = new Map<number, Ranked[]>()
  for (let top = heap.pop(); top !== undefined; top = heap.pop()) {
    const { index, delays } = top
    const content = contents[index] as Content
    const needed = needs[index]
    yield rankWork + content.terms.size
    const isReady = needed === undefined || ranked.has(needed)
    if (!isReady && delays === maxDelays) {
      waiting.set(needed, [...(waiting.get(needed) ?? []), top])
      continue
    }
    const current = isReady
      ? { index, score: Math.min(top.score, scoreContent(content, covered)), delays }
      : { index, score: top.score * delayFactor, delays: delays + 1 }
    // Scores only fall, so a text that stays ahead of the next one's former score is the best.
    if (heap.top !== undefined && isBefore(heap.top, current)) heap.push(current)
    else {
      order.push(index)
      ranked.add(index)
      for (const term of content.terms.keys()) covered.add(term)
      for (const next of waiting.get(index) ?? []) heap.push(next)
      yield content.terms.size
    }
  }
  return order
}

function pieceFactor(piece: Piece): number {
  const { kind, text, isPerson, isFromLongTurn, isFact } = piece
  if (kind === 'output')
    return /error|exception|failure|fatal|panic|failed/i.test(text) ? failedOutputFactor : kindFactors.output
  const cues = findCues(text)
  const isResult = cues.includes('outcome') || cues.includes('decision') || countMatches(1, text, referencePattern) > 0
  return (
    proseInterest(piece, cues) *
    kindFactors[kind] *
    (isPerson ? 1 : isResult ? assistantResultFactor : unnamedAssistantFactor) *
    (isFromLongTurn ? longTurnFactor : 1) *
    (isFact === true ? factFactor : 1) *
    (reportedPattern.test(text) || hedgePattern.test(text) ? uncertainFactor : 1) *
    (offerPattern.test(text) ? offerFactor : 1) *
    (text.endsWith(':') ? introductionFactor : 1)
  )
}

function proseInterest({ text, isAnswer, isPerson }: Piece, cues: readonly Cue[]): number {
  let interest =
    1 +
    0.9 * Math.min(2, countMatches(2, text, datePattern) + countMatches(2, text, foreignDatePattern)) +
    0.3 * countMatches(2, text, numberPattern) +
    0.5 * countMatches(3, text, referencePattern) +
    0.4 * countMatches(3, text, namePattern) +
    0.5 * countMatches(2, text, eventPattern)
  if (firstPersonPattern.test(text) || foreignFirstPersonPattern.test(text)) interest += 0.3
  if (identifierPattern.test(text)) interest += 0.3
  if (isAnswer) interest += 1.2
  for (const cue of cues) interest += cueWeights[cue] * (isPerson || !isWish(cue) ? 1 : assistantWishShare)
  return questionPattern.test(text) ? interest * questionFactor : interest
}
