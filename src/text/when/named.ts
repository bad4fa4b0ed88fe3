import type { Millis } from '../../domain/entry.ts'
import {
  dateOf,
  dayOf,
  hour,
  monthOf,
  newestDate,
  newestMonth,
  type Stretch,
  shiftedBack,
  type Unit,
  unitBefore,
  weekdayBefore,
  weekendBefore,
  yearOf,
} from './calendar.ts'
import type { Word } from './clauses.ts'

/** A time that was named: the first word after it, and whether it floats, because no year was said with it. */
export type Named = Stretch & { readonly end: number; readonly floats?: boolean }

/**
 * What leads up to a name: a month alone is one only after `in`, a weekday only after `on`; other words such as `since` take
 * both, and `over` neither, but the last week.
 */
export type Lead = 'none' | 'in' | 'on' | 'over' | 'other'

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
const counts = ['a', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve']
/** What a number of four digits counts when it is no year. */
const counted =
  /^(?:words?|tokens?|lines?|characters?|chars?|bytes?|steps?|times|items?|rows?|people|users?|ms|seconds?|minutes?|hours?|days?|dollars?|euros?)$/

const textAt = (words: readonly Word[], at: number): string => words[at]?.text ?? ''

/** The time that is named at this word, if one is. */
export const namedAt = (words: readonly Word[], at: number, now: Millis, lead: Lead): Named | undefined =>
  relativeAt(words, at, now) ??
  passedAt(words, at, now, lead) ??
  dateAt(words, at, now, lead) ??
  alone(words, at, now, lead)

/** The unit a word names, in the singular or the plural. */
export function unitOf(text: string): Unit | undefined {
  const unit = text.replace(/s$/, '')
  return unit === 'day' || unit === 'week' || unit === 'month' || unit === 'year' ? unit : undefined
}

/** Today, yesterday, last night, this week, last March, two weeks ago. */
function relativeAt(words: readonly Word[], at: number, now: Millis): Named | undefined {
  const [first, second, third] = [textAt(words, at), textAt(words, at + 1), textAt(words, at + 2)]
  if (first === 'today') return { ...dayOf(now), end: at + 1 }
  if (first === 'yesterday') return { ...unitBefore('day', 1, now), end: at + 1 }
  if (first === 'earlier' && second === 'today') return { from: dayOf(now).from, to: now, end: at + 2 }
  if (first === 'the' && second === 'day') return relativeAt(words, at + 1, now)
  if (first === 'day' && second === 'before' && third === 'yesterday')
    return { ...unitBefore('day', 2, now), end: at + 3 }
  if ((first === 'this' || first === 'last') && third !== 'of') {
    const found = nearest(words[at + 1], first === 'last', now)
    return found && { ...found, end: at + 2 }
  }
  const { many, end } = countAt(words, at)
  const unit = unitOf(textAt(words, end))
  return many > 0 && unit !== undefined && textAt(words, end + 1) === 'ago'
    ? { ...unitBefore(unit, many, now), end: end + 2 }
    : undefined
}

function nearest(word: Word | undefined, isLast: boolean, now: Millis): Stretch | undefined {
  if (word === undefined) return undefined
  const { text } = word
  if (text === 'week' || text === 'month' || text === 'year') return unitBefore(text, isLast ? 1 : 0, now)
  if (text === 'weekend') return weekendBefore(isLast ? 1 : 0, now)
  if (!isLast) return undefined
  if (text === 'night') return { from: dayOf(now).from - 6 * hour, to: dayOf(now).from + 6 * hour }
  const [weekday, month] = [weekdays.indexOf(text), monthNamed(word)]
  if (weekday >= 0) return weekdayBefore(weekday, now)
  return month === undefined || !isSure(word) ? undefined : newestMonth(month, now, true)
}

/** The last three days, up to now; without a number only where `in` leads up to it, since the last week may be one of anything. */
function passedAt(words: readonly Word[], at: number, now: Millis, lead: Lead): Named | undefined {
  const start = textAt(words, at) === 'the' ? at + 1 : at
  if (!/^(?:last|past)$/.test(textAt(words, start))) return undefined
  const { many, end } = countAt(words, start + 1)
  const unit = unitOf(textAt(words, end))
  if (unit === undefined || textAt(words, end + 1) === 'of' || (many === 0 && lead !== 'in' && lead !== 'over'))
    return undefined
  return { from: shiftedBack(unit, Math.max(1, many), now), to: now, end: end + 1 }
}

/** How many, in digits or words, and the word after it; 0 if no number stands there. */
function countAt(words: readonly Word[], at: number): { many: number; end: number } {
  const text = textAt(words, at)
  if (/^[1-9]\d{0,3}$/.test(text)) return { many: Number(text), end: at + 1 }
  if (text === 'a' && textAt(words, at + 1) === 'couple' && textAt(words, at + 2) === 'of')
    return { many: 2, end: at + 3 }
  const many = Math.max(counts.indexOf(text), text === 'a' || text === 'an' ? 1 : 0)
  return { many, end: many > 0 ? at + 1 : at }
}

/** A day by its date: 2025-05-03, 3 May, the 3rd of May, May 3rd, each with or without a year. */
function dateAt(words: readonly Word[], at: number, now: Millis, lead: Lead): Named | undefined {
  const iso = /^(\d{4})-(\d\d)-(\d\d)(?:t[\d:.]+(?:z|[+-]\d\d:?\d\d)?)?$/.exec(textAt(words, at))
  if (iso !== null)
    return ended(Number(iso[2]) <= 12 ? dateOf(Number(iso[1]), Number(iso[2]) - 1, Number(iso[3])) : undefined, at + 1)
  const start = textAt(words, at) === 'the' ? at + 1 : at
  const leading = dayNumber(textAt(words, start))
  const place = leading === undefined ? start : start + (textAt(words, start + 1) === 'of' ? 2 : 1)
  const date = leading ?? dayNumber(textAt(words, place + 1))
  const month = monthNamed(words[place])
  if (date === undefined || month === undefined) return undefined
  const end = leading === undefined ? place + 2 : place + 1
  const year = yearAt(words, end)
  const isOrdinal = /\D$/.test(textAt(words, leading === undefined ? place + 1 : start))
  if (!isSure(words[place]) && !isOrdinal && year === undefined && lead !== 'on') return undefined
  return year === undefined
    ? ended(newestDate(month, date, now), end, true)
    : ended(dateOf(year.number, month, date), year.end)
}

/** A month with its year; after a word that leads up to it a month, year or weekday alone. */
function alone(words: readonly Word[], at: number, now: Millis, lead: Lead): Named | undefined {
  const word = words[at]
  const month = monthNamed(word)
  const year = yearAt(words, month === undefined ? at : at + 1)
  if (month !== undefined && year !== undefined) return { ...monthOf(year.number, month), end: year.end }
  if (lead === 'none' || lead === 'over') return undefined
  const weekday = weekdays.indexOf(word?.text ?? '')
  if (weekday >= 0) return lead === 'in' ? undefined : { ...weekdayBefore(weekday, now), end: at + 1, floats: true }
  if (lead === 'on') return undefined
  if (year !== undefined && month === undefined)
    return counted.test(textAt(words, year.end)) ? undefined : { ...yearOf(year.number), end: year.end }
  // nobody is in may but in the month; before may, or before Jan, may be before anything
  if (month === undefined || (lead !== 'in' && isOther(word))) return undefined
  return { ...newestMonth(month, now), end: at + 1, floats: true }
}

/** The number of a month by its name or the beginning of it, as in Sep or Sept. */
function monthNamed(word: Word | undefined): number | undefined {
  const text = word?.text ?? ''
  const found = months.findIndex(
    (month) => text === month || text === month.slice(0, 3) || (month === 'september' && text === 'sept'),
  )
  return found < 0 ? undefined : found
}

const isOther = (word: Word | undefined): boolean => word?.text === 'jan' || (word?.text === 'may' && !word.isCapital)

/** Whether a month's name is nothing but that: may, march and mar are other words too, unless they are written large. */
const isSure = (word: Word | undefined): boolean =>
  word !== undefined && (word.isCapital || (word.text.length > 3 && word.text !== 'march'))

function dayNumber(text: string): number | undefined {
  const found = /^([1-9]|[12]\d|3[01])(?:st|nd|rd|th)?$/.exec(text)
  return found === null ? undefined : Number(found[1])
}

/** A year of this century or the last, also after `of`. */
function yearAt(words: readonly Word[], at: number): { number: number; end: number } | undefined {
  const place = textAt(words, at) === 'of' ? at + 1 : at
  return /^(?:19|20)\d\d$/.test(textAt(words, place))
    ? { number: Number(textAt(words, place)), end: place + 1 }
    : undefined
}

const ended = (found: Stretch | undefined, end: number, floats = false): Named | undefined =>
  found && { ...found, end, floats }
