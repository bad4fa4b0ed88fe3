import { isBlank } from '../domain/entry.ts'
import type { TermExtractor } from '../domain/ports.ts'
import type { Work } from '../domain/work.ts'
import { type PassageRange, splitPassagesInSteps } from '../text/passages.ts'
import { countMatches, datePattern, isInterrogative, numberPattern } from '../text/sentences.ts'

/** Properties of a passage that some questions look for, as bits. */
export const markers = {
  /** Nothing but a question. */
  question: 1,
  /** Names a time. */
  time: 2,
  /** Names a number. */
  number: 4,
  /** A person's own words in a chat with an assistant. */
  user: 8,
  /** Says that something is not so. */
  negation: 16,
} as const

/** A passage as it is indexed. */
export type IndexedPassage = {
  readonly terms: readonly string[]
  readonly characters: number
  readonly markers: number
}

const negation = /\b(?:never|not|no longer|without|avoid|dislike|hate|stopped)\b|n['’]t\b/i

/** Analyses a text for the index, passage by passage; a blank text has no passages. Interruptible work. */
export function* indexPassagesInSteps(content: string, extractor: TermExtractor): Work<readonly IndexedPassage[]> {
  if (isBlank(content)) return []
  const passages: IndexedPassage[] = []
  for (const range of yield* splitPassagesInSteps(content)) {
    passages.push(indexPassage(content, range, extractor))
    yield range[1] - range[0]
  }
  return passages
}

function indexPassage(content: string, [start, end]: PassageRange, extractor: TermExtractor): IndexedPassage {
  const text = start === 0 && end === content.length ? content : content.slice(start, end)
  return {
    terms: extractor.extract(text),
    characters: text.length,
    markers:
      (isInterrogative(text) ? markers.question : 0) |
      (negation.test(text) ? markers.negation : 0) |
      (countMatches(1, text, datePattern) > 0 ? markers.time : 0) |
      (countMatches(1, text, numberPattern) > 0 ? markers.number : 0),
  }
}
