import { runSync, type Work } from '../domain/work.ts'

/** Part of a text: [start, end). */
export type PassageRange = readonly [start: number, end: number]

/** Texts up to this length are one passage. */
const maxWholeCharacters = 1_500
/** Preferred length of a passage, and the lengths at which it may be cut. */
const preferredCharacters = 800
const [minCharacters, maxCharacters] = [320, 1_040]

/** Ends of paragraphs, lines and sentences. */
const boundary = /\n[^\S\n]*\n\s*|\n\s*|(?<=[.!?。！？])[^\S\n]+/g
/** Value of a cut after a paragraph, line or sentence, in preferred lengths: a third of one for each level. */
const cutValues = [1.05, 0.7, 0.35] as const
const [paragraph, line, sentence] = [0, 1, 2]

/** Position of a cut times three, plus its kind: objects for each line of a long text take long to collect. */
type Cut = number
const positionOf = (cut: Cut): number => Math.floor(cut / cutValues.length)

/**
 * Splits a long text into passages of some 800 characters at the ends of paragraphs, lines or sentences. The passages
 * cover the text without gaps. A short text is one passage.
 *
 * @example
 * splitPassages('short') // [[0, 5]]
 */
export const splitPassages = (text: string): readonly PassageRange[] => runSync(splitPassagesInSteps(text))

/** `splitPassages` as interruptible work. */
export function* splitPassagesInSteps(text: string): Work<readonly PassageRange[]> {
  if (text.length <= maxWholeCharacters) return [[0, text.length]]
  const cuts = yield* findCuts(text)
  const passages: PassageRange[] = []
  let start = 0
  let next = 0
  while (text.length - start > maxCharacters) {
    while (next < cuts.length && positionOf(cuts[next] as Cut) < start + minCharacters) next++
    let best: Cut | undefined
    for (let index = next; index < cuts.length; index++) {
      const cut = cuts[index] as Cut
      if (positionOf(cut) > start + maxCharacters) break
      if (best === undefined || worthOf(cut, start) > worthOf(best, start)) best = cut
    }
    const end = best === undefined ? wordEnd(text, start + preferredCharacters) : positionOf(best)
    passages.push([start, end])
    start = end
  }
  passages.push([start, text.length])
  return passages
}

const worthOf = (cut: Cut, start: number): number =>
  (cutValues[cut % cutValues.length] as number) -
  Math.abs(positionOf(cut) - start - preferredCharacters) / preferredCharacters

/** Characters searched in a step, and their work in characters of other work. */
const [windowCharacters, windowWork] = [16_384, 1_024]

function* findCuts(text: string): Work<Cut[]> {
  const cuts: Cut[] = []
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = nextNonSpace(text, start + windowCharacters)
    for (const { 0: space, index } of text.slice(start, end).matchAll(boundary)) {
      const isParagraph = space.indexOf('\n') !== space.lastIndexOf('\n')
      const kind = isParagraph ? paragraph : space.includes('\n') ? line : sentence
      cuts.push((start + index + space.length) * cutValues.length + kind)
    }
    yield windowWork
  }
  return cuts
}

/** Position of the first character at or after `from` that is not white space: no boundary continues across it. */
function nextNonSpace(text: string, from: number): number {
  const nonSpace = /\S/g
  nonSpace.lastIndex = from
  return nonSpace.exec(text)?.index ?? text.length
}

/** Returns the end of the last word before a position, or the position itself in unbroken text. */
function wordEnd(text: string, position: number): number {
  // Only the end is searched: without a space, a search of the whole text would make splitting quadratic.
  const space = text.slice(position - minCharacters, position).lastIndexOf(' ')
  if (space >= 0) return position - minCharacters + space + 1
  const code = text.charCodeAt(position)
  // A low surrogate belongs to the character before.
  return code >= 0xdc00 && code <= 0xdfff ? position + 1 : position
}
