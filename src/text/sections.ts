import { type Sentence, sentencesOf } from './sentences.ts'
import { amount, day, firstPerson, identifier, name, upTo } from './signals.ts'
import { termsOf } from './words.ts'

/** How often a sentence that no longer fits is passed over for the ones ranked after it. */
const patience = 4

/**
 * The sentences that say most, in their order, as many as fit; ` ... ` stands for what was left out between them. Empty if
 * not even one fits. `fits` must hold for a text whenever it holds for a longer one: it is asked a few times only.
 *
 * @example
 * selectSentences('Hello there. My flight is on 3 May. Nice weather.', (text) => text.length < 40) // '... My flight is on 3 May. ...'
 */
export function selectSentences(text: string, fits: (candidate: string) => boolean): string {
  const sentences = sentencesOf(text)
  const holds = (places: readonly number[]): boolean => fits(assemble(text, sentences, places))
  const ranked = rank(sentences)
  let chosen = pack(ranked, holds)
  if (chosen.length === 0) {
    // The best are too long even alone: nothing longer than the longest that fits alone can be shown.
    const sorted = [...ranked].sort((left, right) => lengthOf(sentences, left) - lengthOf(sentences, right))
    const longest = sorted[largest(sorted.length, (count) => holds(sorted.slice(count - 1, count))) - 1]
    if (longest === undefined) return ''
    const packed = pack(
      ranked.filter((place) => lengthOf(sentences, place) <= lengthOf(sentences, longest)),
      holds,
    )
    chosen = packed.length > 0 ? packed : [longest]
  }
  return chosen.length === ranked.length && fits(text) ? text : assemble(text, sentences, chosen)
}

/** As many as hold together, taken from the front; a few that do not hold are passed over. */
function pack(order: readonly number[], holds: (places: readonly number[]) => boolean): readonly number[] {
  let kept: readonly number[] = []
  let rest = order
  for (let passed = 0; passed <= patience && rest.length > 0; passed++) {
    const count = largest(rest.length, (taken) => holds([...kept, ...rest.slice(0, taken)]))
    kept = [...kept, ...rest.slice(0, count)]
    rest = rest.slice(count + 1)
  }
  return kept
}

const lengthOf = (sentences: readonly Sentence[], place: number): number => sentences[place]?.text.length ?? 0

/** The largest count up to a limit for which a condition holds that, once false, stays false; small counts are tried first. */
function largest(limit: number, holds: (count: number) => boolean): number {
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

function assemble(text: string, sentences: readonly Sentence[], places: readonly number[]): string {
  let result = ''
  let before = -1
  for (const place of [...places].sort((left, right) => left - right)) {
    const sentence = sentences[place] as Sentence
    if (place > before + 1) result += before < 0 ? '... ' : ' ... '
    else if (before >= 0) result += gapBetween(text, sentences[before] as Sentence, sentence)
    result += sentence.text
    before = place
  }
  return before >= 0 && before < sentences.length - 1 ? `${result} ...` : result
}

/** The white space between two neighbours; half a pair of code fences would be worse than none. */
function gapBetween(text: string, before: Sentence, after: Sentence): string {
  const gap = text.slice(before.end, after.start)
  return /\S/.test(gap) ? '\n' : gap
}

/** The places of the sentences, best first; one that was said before is not said again. */
function rank(sentences: readonly Sentence[]): number[] {
  const terms = sentences.map((sentence) => new Set(termsOf(sentence.text)))
  const frequency = new Map<string, number>()
  for (const set of terms) for (const term of set) frequency.set(term, (frequency.get(term) ?? 0) + 1)
  const scores = sentences.map((sentence, place) => {
    let rarity = 0
    for (const term of terms[place] ?? []) rarity += Math.log(1 + sentences.length / (frequency.get(term) ?? 1))
    return (rarity / (wordCount(sentence.text) + 5)) * weightOf(sentence.text)
  })
  const firsts = new Map<string, number>()
  for (const [place, sentence] of sentences.entries()) if (!firsts.has(sentence.text)) firsts.set(sentence.text, place)
  return [...firsts.values()].sort((left, right) => (scores[right] ?? 0) - (scores[left] ?? 0))
}

function wordCount(text: string): number {
  let count = 1
  for (let at = text.indexOf(' '); at >= 0; at = text.indexOf(' ', at + 1)) count++
  return count
}

// What later questions ask about, as measured on long dialogues: dates most, then numbers, the speaker, names.
const negation = /\b(?:not|no|never|without|cannot|nor|none)\b|n['’]t\b/i
const question = /\?["'”’)]*$/

function weightOf(sentence: string): number {
  let weight = 1 + upTo(2, sentence, day) + 0.6 * upTo(2, sentence, amount) + 0.3 * upTo(3, sentence, name)
  if (firstPerson.test(sentence)) weight += 0.4
  if (negation.test(sentence)) weight += 0.3
  if (identifier.test(sentence)) weight += 0.5
  return question.test(sentence) ? weight * 0.7 : weight
}
