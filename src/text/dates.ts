import type { Millis } from '../domain/entry.ts'
import {
  type CalendarUnit,
  dateOf,
  dayMs,
  dayOf,
  hourMs,
  latestDate,
  latestMonth,
  monthOf,
  shiftBack,
  type TimeRange,
  unitBefore,
  weekdayBefore,
  weekendBefore,
  yearOf,
} from './calendar.ts'

/** Range of time named in a text, and the span of the phrase that names it. */
export type Period = TimeRange & { readonly span: readonly [start: number, end: number] }

/** Finds the range of time that a text names, relative to `now`. */
export type FindPeriod = (text: string, now: Millis) => Period | undefined

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
 * findPeriod('What did we decide in March?', Date.UTC(2026, 4, 20)) // from 1 March to 1 April 2026; span: [18, 26]
 */
export function findPeriod(text: string, now: Millis, offset = 0): Period | undefined {
  const offsetMs = offset * minuteMs
  for (const words of splitClauses(text.slice(0, maxCharacters))) {
    for (let at = 0; at < words.length; at++) {
      const found = parsePhrase(words, at, now + offsetMs)
      if (found === undefined) continue
      const { from, to, end } = found
      const span = [(words[at] as Word).start, (words[end - 1] as Word).end] as const
      const isComplete = span[1] + maxPhraseCharacters < maxCharacters || text.length <= maxCharacters
      // `from < to` is false for an empty range and for an invalid `now`.
      if (!(from < to && isComplete)) return undefined
      return { from: from === minTimeMs ? minTimeMs : from - offsetMs, to: to - offsetMs, span }
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
  // Without a year, the start is the latest one before the end, as in "from November to February" and "March to May
  // 2024".
  const begin = first.withoutYear === true ? (parseExpression(words, at + 1, last.to - 1, 'other') ?? first) : first
  return { from: begin.from, to: last.to, end: last.end }
}

/** Extends a single day back to an earlier day of its month, as in "between 3 and 5 May". */
function extendToDay(text: string, last: DateExpression): DateExpression | undefined {
  const [first, date] = [Number(text), new Date(last.from).getUTCDate()]
  if (!/^\d{1,2}$/.test(text) || first < 1 || first >= date || last.to - last.from !== dayMs) return undefined
  return { ...last, from: last.from - (date - first) * dayMs }
}

/** Date expression: its range of time, and the index of the first word after it. */
type DateExpression = TimeRange & {
  readonly end: number
  /** No year was given, so the range is the latest one before now. */
  readonly withoutYear?: boolean
}

/**
 * Preposition before an expression. A bare month counts only after `in`, a bare weekday only after `on`; other words
 * such as `since` accept both; `over` accepts neither, but accepts "the last week".
 */
type Preposition = 'none' | 'in' | 'on' | 'over' | 'other'

const months = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
]
const weekdays = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
const numberWords = [
  'a',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
]
/** Nouns after a four-digit number that is not a year. */
const countedNoun =
  /^(?:words?|tokens?|lines?|characters?|chars?|bytes?|steps?|times|items?|rows?|people|users?|ms|seconds?|minutes?|hours?|days?|dollars?|euros?)$/

const textAt = (words: readonly Word[], at: number): string => words[at]?.text ?? ''

/** Parses the date expression that starts at a word. */
const parseExpression = (
  words: readonly Word[],
  at: number,
  now: Millis,
  preposition: Preposition,
): DateExpression | undefined =>
  parseRelative(words, at, now) ??
  parseLastUnits(words, at, now, preposition) ??
  parseDate(words, at, now, preposition) ??
  parseBareName(words, at, now, preposition)

/** Parses a unit in the singular or plural. */
function parseUnit(text: string): CalendarUnit | undefined {
  const unit = text.replace(/s$/, '')
  return unit === 'day' || unit === 'week' || unit === 'month' || unit === 'year' ? unit : undefined
}

/** Parses today, yesterday, last night, this week, last March, two weeks ago. */
function parseRelative(words: readonly Word[], at: number, now: Millis): DateExpression | undefined {
  const [first, second, third] = [textAt(words, at), textAt(words, at + 1), textAt(words, at + 2)]
  if (first === 'today') return { ...dayOf(now), end: at + 1 }
  if (first === 'yesterday') return { ...unitBefore('day', 1, now), end: at + 1 }
  if (first === 'earlier' && second === 'today') return { from: dayOf(now).from, to: now, end: at + 2 }
  if (first === 'the' && second === 'day') return parseRelative(words, at + 1, now)
  if (first === 'day' && second === 'before' && third === 'yesterday')
    return { ...unitBefore('day', 2, now), end: at + 3 }
  if ((first === 'this' || first === 'last') && third !== 'of') {
    const found = findNearest(words[at + 1], first === 'last', now)
    return found && { ...found, end: at + 2 }
  }
  const { count, end } = parseCount(words, at)
  const unit = parseUnit(textAt(words, end))
  return count > 0 && unit !== undefined && textAt(words, end + 1) === 'ago'
    ? { ...unitBefore(unit, count, now), end: end + 2 }
    : undefined
}

function findNearest(word: Word | undefined, isLast: boolean, now: Millis): TimeRange | undefined {
  if (word === undefined) return undefined
  const { text } = word
  if (text === 'week' || text === 'month' || text === 'year') return unitBefore(text, isLast ? 1 : 0, now)
  if (text === 'weekend') return weekendBefore(isLast ? 1 : 0, now)
  if (!isLast) return undefined
  if (text === 'night') return { from: dayOf(now).from - 6 * hourMs, to: dayOf(now).from + 6 * hourMs }
  const [weekday, month] = [weekdays.indexOf(text), parseMonth(word)]
  if (weekday >= 0) return weekdayBefore(weekday, now)
  return month === undefined || !isClearlyMonth(word) ? undefined : latestMonth(month, now, true)
}

/**
 * Parses "the last three days". Without a number it needs `in` or `over` before it: "the last week" may be of anything.
 */
function parseLastUnits(
  words: readonly Word[],
  at: number,
  now: Millis,
  preposition: Preposition,
): DateExpression | undefined {
  const start = textAt(words, at) === 'the' ? at + 1 : at
  if (!/^(?:last|past)$/.test(textAt(words, start))) return undefined
  const { count, end } = parseCount(words, start + 1)
  const unit = parseUnit(textAt(words, end))
  if (
    unit === undefined ||
    textAt(words, end + 1) === 'of' ||
    (count === 0 && preposition !== 'in' && preposition !== 'over')
  )
    return undefined
  return { from: shiftBack(unit, Math.max(1, count), now), to: now, end: end + 1 }
}

/** Parses a number in digits or words; 0 if there is none. */
function parseCount(words: readonly Word[], at: number): { count: number; end: number } {
  const text = textAt(words, at)
  if (/^[1-9]\d{0,3}$/.test(text)) return { count: Number(text), end: at + 1 }
  if (text === 'a' && textAt(words, at + 1) === 'couple' && textAt(words, at + 2) === 'of')
    return { count: 2, end: at + 3 }
  const count = Math.max(numberWords.indexOf(text), text === 'a' || text === 'an' ? 1 : 0)
  return { count, end: count > 0 ? at + 1 : at }
}

/** Parses 2025-05-03, 3 May, the 3rd of May, May 3rd, the last three with or without a year. */
function parseDate(
  words: readonly Word[],
  at: number,
  now: Millis,
  preposition: Preposition,
): DateExpression | undefined {
  const iso = /^(\d{4})-(\d\d)-(\d\d)(?:t[\d:.]+(?:z|[+-]\d\d:?\d\d)?)?$/.exec(textAt(words, at))
  if (iso !== null)
    return withEnd(
      Number(iso[2]) <= 12 ? dateOf(Number(iso[1]), Number(iso[2]) - 1, Number(iso[3])) : undefined,
      at + 1,
    )
  const start = textAt(words, at) === 'the' ? at + 1 : at
  const leadingDay = parseDay(textAt(words, start))
  const monthIndex = leadingDay === undefined ? start : start + (textAt(words, start + 1) === 'of' ? 2 : 1)
  const date = leadingDay ?? parseDay(textAt(words, monthIndex + 1))
  const month = parseMonth(words[monthIndex])
  if (date === undefined || month === undefined) return undefined
  const end = leadingDay === undefined ? monthIndex + 2 : monthIndex + 1
  const year = parseYear(words, end)
  const isOrdinal = /\D$/.test(textAt(words, leadingDay === undefined ? monthIndex + 1 : start))
  if (!isClearlyMonth(words[monthIndex]) && !isOrdinal && year === undefined && preposition !== 'on') return undefined
  return year === undefined
    ? withEnd(latestDate(month, date, now), end, true)
    : withEnd(dateOf(year.number, month, date), year.end)
}

/** Parses a month with its year or, after a preposition, a bare month, year or weekday. */
function parseBareName(
  words: readonly Word[],
  at: number,
  now: Millis,
  preposition: Preposition,
): DateExpression | undefined {
  const word = words[at]
  const month = parseMonth(word)
  const year = parseYear(words, month === undefined ? at : at + 1)
  if (month !== undefined && year !== undefined) return { ...monthOf(year.number, month), end: year.end }
  if (preposition === 'none' || preposition === 'over') return undefined
  const weekday = weekdays.indexOf(word?.text ?? '')
  if (weekday >= 0)
    return preposition === 'in' ? undefined : { ...weekdayBefore(weekday, now), end: at + 1, withoutYear: true }
  if (preposition === 'on') return undefined
  if (year !== undefined && month === undefined)
    return countedNoun.test(textAt(words, year.end)) ? undefined : { ...yearOf(year.number), end: year.end }
  // "in may" can only be the month; "before may" and "before Jan" can be followed by anything.
  if (month === undefined || (preposition !== 'in' && isAmbiguousMonth(word))) return undefined
  return { ...latestMonth(month, now), end: at + 1, withoutYear: true }
}

/** Parses the name of a month or its abbreviation, such as Sep or Sept. */
function parseMonth(word: Word | undefined): number | undefined {
  const text = word?.text ?? ''
  const found = months.findIndex(
    (month) => text === month || text === month.slice(0, 3) || (month === 'september' && text === 'sept'),
  )
  return found < 0 ? undefined : found
}

const isAmbiguousMonth = (word: Word | undefined): boolean =>
  word?.text === 'jan' || (word?.text === 'may' && !word.isCapital)

/** Tells whether a word can only be a month: may, march and mar have other meanings unless capitalised. */
const isClearlyMonth = (word: Word | undefined): boolean =>
  word !== undefined && (word.isCapital || (word.text.length > 3 && word.text !== 'march'))

function parseDay(text: string): number | undefined {
  const found = /^([1-9]|[12]\d|3[01])(?:st|nd|rd|th)?$/.exec(text)
  return found === null ? undefined : Number(found[1])
}

/** Parses a year from 1900 to 2099, also after `of`. */
function parseYear(words: readonly Word[], at: number): { number: number; end: number } | undefined {
  const index = textAt(words, at) === 'of' ? at + 1 : at
  const text = textAt(words, index)
  return /^(?:19|20)\d\d$/.test(text) ? { number: Number(text), end: index + 1 } : undefined
}

const withEnd = (found: TimeRange | undefined, end: number, withoutYear = false): DateExpression | undefined =>
  found && { ...found, end, withoutYear }

/** Word of a text in lower case, without punctuation and possessive s. */
type Word = { readonly text: string; readonly start: number; readonly end: number; readonly isCapital: boolean }

/** Words between spaces and punctuation; a comma or colon before a digit is part of a number. */
const wordPattern = /(?:[^\s,;:()[\]{}"“”—–!?]|[,:](?=\d))+/gu
const isWithinClause = (between: string): boolean => !/[^\s,]/u.test(between)

/** Splits a text into clauses of words; a date expression never crosses the end of a clause. */
function splitClauses(text: string): Word[][] {
  const clauses: Word[][] = []
  let end = 0
  let isOpen = false
  for (const { 0: found, index } of text.matchAll(wordPattern)) {
    const bare = trimEndPunctuation(found)
    const word = {
      text: bare.replace(/['’]s$/u, '').toLowerCase(),
      start: index,
      end: index + bare.length,
      isCapital: /^\p{Lu}/u.test(bare),
    }
    if (isOpen && isWithinClause(text.slice(end, index))) clauses.at(-1)?.push(word)
    else clauses.push([word])
    end = index + found.length
    isOpen = bare.length === found.length
  }
  return clauses
}

/**
 * Removes stops and apostrophes at the end. Scans backwards: a regular expression would be quadratic for long rows of
 * them.
 */
function trimEndPunctuation(found: string): string {
  let end = found.length
  while (end > 0 && ".…'’".includes(found[end - 1] as string)) end--
  return found.slice(0, end)
}
