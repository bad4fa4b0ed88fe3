import { runSync, type Work } from '../domain/work.ts'
import {
  countMatches,
  datePattern,
  firstPersonPattern,
  identifierPattern,
  namePattern,
  numberPattern,
  type Sentence,
  splitSentencesInSteps,
} from './sentences.ts'
import { extractTerms } from './words.ts'

/** Number of sentences that may be skipped because they do not fit. */
const maxMisses = 4

/**
 * Selects the most informative sentences, in their order, as many as fit; ` ... ` marks omissions. Returns '' if not
 * even one fits. `fits` must be monotone (true for a text if true for a longer one): a binary search calls it a few
 * times.
 *
 * @example
 * selectSentences('Hello there. My flight is on 3 May. Nice weather.', (text) => text.length < 40) // '... My flight is on 3 May. ...'
 */
export const selectSentences = (text: string, fits: Fits): string => runSync(selectSentencesInSteps(text, fits))

type Fits = (candidate: string) => boolean
type Holds = (indexes: readonly number[]) => Work<boolean>

/** `selectSentences` as interruptible work. */
export function* selectSentencesInSteps(text: string, fits: Fits): Work<string> {
  const sentences = yield* splitSentencesInSteps(text)
  const holds: Holds = function* (indexes) {
    const candidate = joinSentences(text, sentences, indexes)
    yield candidate.length
    return fits(candidate)
  }
  const ranked = yield* rankSentences(sentences)
  let chosen = yield* pack(ranked, holds)
  if (chosen.length === 0) {
    // The best sentences do not fit even alone: nothing longer than the longest one that fits alone can be selected.
    const sorted = [...ranked].sort((left, right) => lengthOf(sentences, left) - lengthOf(sentences, right))
    const longest = sorted[(yield* findLargest(sorted.length, (count) => holds(sorted.slice(count - 1, count)))) - 1]
    if (longest === undefined) return ''
    const packed = yield* pack(
      ranked.filter((index) => lengthOf(sentences, index) <= lengthOf(sentences, longest)),
      holds,
    )
    chosen = packed.length > 0 ? packed : [longest]
  }
  return chosen.length === ranked.length && fits(text) ? text : joinSentences(text, sentences, chosen)
}

/** Takes as many as fit together from the front; skips a few that do not fit. */
function* pack(order: readonly number[], holds: Holds): Work<readonly number[]> {
  let chosen: readonly number[] = []
  let rest = order
  for (let misses = 0; misses <= maxMisses && rest.length > 0; misses++) {
    const count = yield* findLargest(rest.length, (taken) => holds([...chosen, ...rest.slice(0, taken)]))
    chosen = [...chosen, ...rest.slice(0, count)]
    rest = rest.slice(count + 1)
  }
  return chosen
}

const lengthOf = (sentences: readonly Sentence[], index: number): number => sentences[index]?.text.length ?? 0

/** Finds the largest count up to a limit for which a monotone condition holds; tries small counts first. */
function* findLargest(limit: number, holds: (count: number) => Work<boolean>): Work<number> {
  let low = 0
  let high = 1
  while (high <= limit && (yield* holds(high))) {
    low = high
    high *= 2
  }
  high = Math.min(high, limit + 1)
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (yield* holds(middle)) low = middle
    else high = middle
  }
  return low
}

function joinSentences(text: string, sentences: readonly Sentence[], indexes: readonly number[]): string {
  let result = ''
  let before = -1
  for (const index of [...indexes].sort((left, right) => left - right)) {
    const sentence = sentences[index] as Sentence
    if (index > before + 1) result += before < 0 ? '... ' : ' ... '
    else if (before >= 0) result += gapBetween(text, sentences[before] as Sentence, sentence)
    result += sentence.text
    before = index
  }
  return before >= 0 && before < sentences.length - 1 ? `${result} ...` : result
}

/** Returns the white space between two neighbours; a code fence between them becomes a line break. */
function gapBetween(text: string, before: Sentence, after: Sentence): string {
  const gap = text.slice(before.end, after.start)
  return /\S/.test(gap) ? '\n' : gap
}

/** Characters of a sentence that determine its rank: a longer one, such as a text without stops, hardly ever fits. */
const maxRankedCharacters = 8_192

/** Returns the indexes of the sentences, best first, without repeated sentences. */
function* rankSentences(sentences: readonly Sentence[]): Work<number[]> {
  const terms: ReadonlySet<string>[] = []
  const frequency = new Map<string, number>()
  const starts = sentences.map(({ text }) => text.slice(0, maxRankedCharacters))
  for (const text of starts) {
    const own = new Set(extractTerms(text))
    for (const term of own) frequency.set(term, (frequency.get(term) ?? 0) + 1)
    terms.push(own)
    yield text.length
  }
  const scores: number[] = []
  for (const [index, text] of starts.entries()) {
    let rarity = 0
    for (const term of terms[index] ?? []) rarity += Math.log(1 + sentences.length / (frequency.get(term) ?? 1))
    scores.push((rarity / (countWords(text) + 5)) * weighSentence(text))
    yield text.length
  }
  const firstIndexes = new Map<string, number>()
  for (const [index, { text }] of sentences.entries()) if (!firstIndexes.has(text)) firstIndexes.set(text, index)
  return [...firstIndexes.values()].sort((left, right) => (scores[right] ?? 0) - (scores[left] ?? 0))
}

function countWords(text: string): number {
  let count = 1
  for (let index = text.indexOf(' '); index >= 0; index = text.indexOf(' ', index + 1)) count++
  return count
}

// Weights measured on long dialogues: later questions ask about dates most, then numbers, the speaker and names.
const negation = /\b(?:not|no|never|without|cannot|nor|none)\b|n['’]t\b/i
const question = /\?["'”’)]*$/

function weighSentence(sentence: string): number {
  let weight =
    1 +
    countMatches(2, sentence, datePattern) +
    0.6 * countMatches(2, sentence, numberPattern) +
    0.3 * countMatches(3, sentence, namePattern)
  if (firstPersonPattern.test(sentence)) weight += 0.4
  if (negation.test(sentence)) weight += 0.3
  if (identifierPattern.test(sentence)) weight += 0.5
  return question.test(sentence) ? weight * 0.7 : weight
}
