import type { Millis } from '../domain/entry.ts'
import { dayMs, type Stretch } from './dates/calendar.ts'
import {
  type DateExpression,
  type Preposition,
  parseExpression,
  parseUnit,
  splitClauses,
  type Word,
} from './dates/expressions.ts'

/** Range of time named in a text, and the span of the phrase that names it. */
export type Period = Stretch & { readonly said: readonly [start: number, end: number] }

/** Finds the range of time that a text names, relative to `now`. */
export type WhenIn = (text: string, now: Millis) => Period | undefined

const minuteMs = 60_000
/** Questions are shorter; text after this is usually quoted material. */
const maxCharacters = 2_000
/** A phrase this close to the limit may continue behind it. */
const maxPhraseCharacters = 40
/** Earliest date of ECMAScript. */
const minTimeMs: Millis = -8.64e15

const prepositions: Readonly<Record<string, Preposition>> = {
  in: 'in',
  during: 'in',
  on: 'on',
  over: 'over',
  within: 'over',
  for: 'over',
}
const rangeConnectors: Readonly<Record<string, RegExp>> = { between: /^and$/, from: /^(?:to|until|till|through)$/ }

/**
 * Finds the first range of time that an English text names, relative to `now`, in UTC or `offset` minutes ahead of it.
 * Ambiguous words are not treated as dates. Reads only the first 2,000 characters.
 *
 * @example
 * whenIn('What did we decide in March?', Date.UTC(2026, 4, 20)) // from 1 March to 1 April 2026; said: [18, 26]
 */
export function whenIn(text: string, now: Millis, offset = 0): Period | undefined {
  const offsetMs = offset * minuteMs
  for (const words of splitClauses(text.slice(0, maxCharacters))) {
    for (let at = 0; at < words.length; at++) {
      const found = parsePhrase(words, at, now + offsetMs)
      if (found === undefined) continue
      const { from, to, end } = found
      const said = [(words[at] as Word).start, (words[end - 1] as Word).end] as const
      const isComplete = said[1] + maxPhraseCharacters < maxCharacters || text.length <= maxCharacters
      // `from < to` is false for an empty range and for an invalid `now`.
      if (!(from < to && isComplete)) return undefined
      return { from: from === minTimeMs ? minTimeMs : from - offsetMs, to: to - offsetMs, said }
    }
  }
  return undefined
}

/** Parses the phrase that starts at a word: a date expression with or without a preposition. */
function parsePhrase(words: readonly Word[], at: number, now: Millis): DateExpression | undefined {
  const { text } = words[at] as Word
  const between = Object.hasOwn(rangeConnectors, text) ? parseRange(words, at, now) : undefined
  if (between !== undefined) return between
  if (text === 'since' || text === 'before' || text === 'after') return parseOpenRange(words, at, now)
  const preposition = Object.hasOwn(prepositions, text) ? prepositions[text] : undefined
  return preposition === undefined
    ? parseExpression(words, at, now, 'none')
    : parseExpression(words, at + 1, now, preposition)
}

/** Parses "since", "before" or "after" a date. "A week after" a date is none of these and gives an empty range. */
function parseOpenRange(words: readonly Word[], at: number, now: Millis): DateExpression | undefined {
  const expression = parseExpression(words, at + 1, now, 'other')
  if (expression === undefined) return undefined
  if (parseUnit(words[at - 1]?.text ?? '') !== undefined) return { ...expression, to: expression.from }
  const { from, to, end } = expression
  const { text } = words[at] as Word
  return text === 'before' ? { from: minTimeMs, to: from, end } : { from: text === 'since' ? from : to, to: now, end }
}

/** Parses "between … and …" and "from … to …". */
function parseRange(words: readonly Word[], at: number, now: Millis): DateExpression | undefined {
  const connector = rangeConnectors[(words[at] as Word).text] as RegExp
  const first = parseExpression(words, at + 1, now, 'other')
  const end = first?.end ?? at + 2
  const last = connector.test(words[end]?.text ?? '') ? parseExpression(words, end + 1, now, 'other') : undefined
  if (last === undefined) return undefined
  if (first === undefined) return extendToDay(words[at + 1]?.text ?? '', last)
  // Without a year, the start is the latest one before the end, as in "from November to February" and "March to May 2024".
  const begin = first.withoutYear === true ? (parseExpression(words, at + 1, last.to - 1, 'other') ?? first) : first
  return { from: begin.from, to: last.to, end: last.end }
}

/** Extends a single day back to an earlier day of its month, as in "between 3 and 5 May". */
function extendToDay(text: string, last: DateExpression): DateExpression | undefined {
  const [first, date] = [Number(text), new Date(last.from).getUTCDate()]
  if (!/^\d{1,2}$/.test(text) || first < 1 || first >= date || last.to - last.from !== dayMs) return undefined
  return { ...last, from: last.from - (date - first) * dayMs }
}
