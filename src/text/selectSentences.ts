import {
  countMatches,
  datePattern,
  firstPersonPattern,
  identifierPattern,
  namePattern,
  numberPattern,
  type Sentence,
  splitSentences,
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
export function selectSentences(text: string, fits: (candidate: string) => boolean): string {
  const sentences = splitSentences(text)
  const holds = (indexes: readonly number[]): boolean => fits(joinSentences(text, sentences, indexes))
  const ranked = rankSentences(sentences)
  let chosen = pack(ranked, holds)
  if (chosen.length === 0) {
    // The best sentences do not fit even alone: nothing longer than the longest one that fits alone can be selected.
    const sorted = [...ranked].sort((left, right) => lengthOf(sentences, left) - lengthOf(sentences, right))
    const longest = sorted[findLargest(sorted.length, (count) => holds(sorted.slice(count - 1, count))) - 1]
    if (longest === undefined) return ''
    const packed = pack(
      ranked.filter((index) => lengthOf(sentences, index) <= lengthOf(sentences, longest)),
      holds,
    )
    chosen = packed.length > 0 ? packed : [longest]
  }
  return chosen.length === ranked.length && fits(text) ? text : joinSentences(text, sentences, chosen)
}

/** Takes as many as fit together from the front; skips a few that do not fit. */
function pack(order: readonly number[], holds: (indexes: readonly number[]) => boolean): readonly number[] {
  let chosen: readonly number[] = []
  let rest = order
  for (let misses = 0; misses <= maxMisses && rest.length > 0; misses++) {
    const count = findLargest(rest.length, (taken) => holds([...chosen, ...rest.slice(0, taken)]))
    chosen = [...chosen, ...rest.slice(0, count)]
    rest = rest.slice(count + 1)
  }
  return chosen
}

const lengthOf = (sentences: readonly Sentence[], index: number): number => sentences[index]?.text.length ?? 0

/** Finds the largest count up to a limit for which a monotone condition holds; tries small counts first. */
function findLargest(limit: number, holds: (count: number) => boolean): number {
  let low = 0
  let high = 1
  while (high <= limit && holds(high)) {
    low = high
    high *= 2
  }
  high = Math.min(high, limit + 1)
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (holds(middle)) low = middle
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

/** Returns the indexes of the sentences, best first, without repeated sentences. */
function rankSentences(sentences: readonly Sentence[]): number[] {
  const terms = sentences.map((sentence) => new Set(extractTerms(sentence.text)))
  const frequency = new Map<string, number>()
  for (const set of terms) for (const term of set) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  const scores = sentences.map((sentence, index) => {
    let rarity = 0
    for (const term of terms[index] ?? []) rarity += Math.log(1 + sentences.length / (frequency.get(term) ?? 1))
    return (rarity / (countWords(sentence.text) + 5)) * weighSentence(sentence.text)
  })
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
