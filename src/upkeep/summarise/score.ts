import {
  countMatches,
  datePattern,
  firstPersonPattern,
  identifierPattern,
  namePattern,
  numberPattern,
} from '../../text/sentences.ts'
import { extractTerms } from '../../text/words.ts'
import type { Work } from '../work.ts'
import { type Cue, findCues } from './cues.ts'
import type { Piece, PieceKind } from './pieces.ts'
import { findSegments } from './segments.ts'

// Weights measured on long dialogues by the content of later questions: answers and dates most, then events, numbers,
// names. Cues decide which sentences a reader would miss.
const eventPattern =
  /\b(?:I|[Ww]e)(?:['’](?:ve|d|m|re))?\s(?:(?:just|also|finally|recently|never|always)\s)?(?:\w{2,20}ed|went|got|had|made|did|took|saw|met|bought|found|won|lost|began|wrote|gave|ran|came|left|told|kept|was|were|been|chose|prefer|want|need|hate|love)\b/g
const cueWeights: Readonly<Record<Cue, number>> = {
  decision: 2,
  constraint: 1.5,
  preference: 0.8,
  outcome: 0.8,
  problem: 0.4,
  nextStep: 0.3,
}
const questionPattern = /\?["'”’)\]]*$/
const questionFactor = 0.7

/** An unnamed assistant's explanation can be generated again; a person's statement, or a result, cannot. */
const unnamedAssistantFactor = 0.3
const assistantResultFactor = 0.6
const kindFactors: Readonly<Record<PieceKind, number>> = { prose: 1, earlier: 1.5, series: 1, output: 0.2 }
const failedOutputFactor = 2
const longTurnFactor = 0.6
/** A text that introduces something that is not shown. */
const introductionFactor = 0.4
const openingFactor = 1.8
/** The n-th best piece of a topic counts this much less, so that other topics get in. */
const topicDecay = 0.04

/** Scores pieces by information per word; only the order of the scores is meaningful. */
export function* scorePieces(pieces: readonly Piece[]): Work<readonly number[]> {
  const terms: ReadonlySet<string>[] = []
  const frequency = new Map<string, number>()
  for (const { text } of pieces) {
    const own = new Set(extractTerms(text))
    for (const term of own) frequency.set(term, (frequency.get(term) ?? 0) + 1)
    terms.push(own)
    yield text.length
  }
  const opening = pieces.findIndex(({ isFiller, speaker }) => !isFiller && speaker === 'User')
  const scores: number[] = []
  for (const [index, piece] of pieces.entries()) {
    let rarity = 0
    for (const term of terms[index] ?? []) rarity += Math.log(1 + pieces.length / (frequency.get(term) ?? 1))
    // The exponent keeps long turns, which have many rare words, from outweighing short ones.
    const density = rarity ** 0.6 / (piece.words + 5)
    scores.push(density * pieceFactor(piece) * (index === opening ? openingFactor : 1))
    yield piece.text.length
  }
  return balanceTopics(yield* findSegments(pieces), scores)
}

/** Lowers the scores of all but the best pieces of each topic. */
function balanceTopics(segments: readonly number[], scores: readonly number[]): readonly number[] {
  const taken = new Map<number, number>()
  const balanced = [...scores]
  for (const index of [...scores.keys()].sort((left, right) => (scores[right] ?? 0) - (scores[left] ?? 0))) {
    const segment = segments[index] ?? 0
    const rank = taken.get(segment) ?? 0
    balanced[index] = (scores[index] ?? 0) / (1 + topicDecay * rank)
    taken.set(segment, rank + 1)
  }
  return balanced
}

function pieceFactor(piece: Piece): number {
  const { kind, text, isPerson, isFromLongTurn } = piece
  if (kind === 'output')
    return /error|exception|failure|fatal|panic|failed/i.test(text) ? failedOutputFactor : kindFactors.output
  const cues = findCues(text)
  const isResult = cues.includes('outcome') || cues.includes('decision')
  return (
    proseInterest(piece, cues) *
    kindFactors[kind] *
    (isPerson ? 1 : isResult ? assistantResultFactor : unnamedAssistantFactor) *
    (isFromLongTurn ? longTurnFactor : 1) *
    (text.endsWith(':') ? introductionFactor : 1)
  )
}

function proseInterest({ text, isAnswer }: Piece, cues: readonly Cue[]): number {
  let interest =
    1 +
    1.2 * countMatches(2, text, datePattern) +
    0.5 * countMatches(2, text, numberPattern) +
    0.4 * countMatches(3, text, namePattern) +
    0.5 * countMatches(2, text, eventPattern)
  if (firstPersonPattern.test(text)) interest += 0.3
  if (identifierPattern.test(text)) interest += 0.3
  if (isAnswer) interest += 1.2
  for (const cue of cues) interest += cueWeights[cue]
  return questionPattern.test(text) ? interest * questionFactor : interest
}
