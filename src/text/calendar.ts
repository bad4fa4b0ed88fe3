import type { Millis } from '../domain/entry.ts'

/** Range of time; `to` is exclusive. */
export type TimeRange = { readonly from: Millis; readonly to: Millis }
export type CalendarUnit = 'day' | 'week' | 'month' | 'year'

export const hourMs: Millis = 3_600_000
export const dayMs: Millis = 24 * hourMs

const getYear = (at: Millis): number => new Date(at).getUTCFullYear()
const getMonth = (at: Millis): number => new Date(at).getUTCMonth()

export const dayOf = (at: Millis): TimeRange => daysFrom(Math.floor(at / dayMs) * dayMs, 1)
/** Returns the week from Monday to Sunday. */
const weekOf = (at: Millis): TimeRange =>
  daysFrom((Math.floor((Math.floor(at / dayMs) - firstMonday) / 7) * 7 + firstMonday) * dayMs, 7)
/** Months count from 0; values below 0 or above 11 give months of another year. */
export const monthOf = (year: number, month: number): TimeRange => ({
  from: Date.UTC(year, month, 1),
  to: Date.UTC(year, month + 1, 1),
})
export const yearOf = (year: number): TimeRange => ({ from: Date.UTC(year, 0, 1), to: Date.UTC(year + 1, 0, 1) })

/** Days from the epoch, a Thursday, to the first Monday. */
const firstMonday = 4
const daysFrom = (from: Millis, days: number): TimeRange => ({ from, to: from + days * dayMs })

/** Returns the calendar day, week, month or year that lies `count` units before the one of `now`. */
export function unitBefore(unit: CalendarUnit, count: number, now: Millis): TimeRange {
  if (unit === 'day') return dayOf(now - count * dayMs)
  if (unit === 'week') return weekOf(now - count * 7 * dayMs)
  return unit === 'month' ? monthOf(getYear(now), getMonth(now) - count) : yearOf(getYear(now) - count)
}

/** Returns the same time of day `count` units earlier; in a month too short for the day, on its last day. */
export function shiftBack(unit: CalendarUnit, count: number, now: Millis): Millis {
  if (unit === 'day' || unit === 'week') return now - count * (unit === 'day' ? 1 : 7) * dayMs
  const { from, to } = monthOf(getYear(now), getMonth(now) - count * (unit === 'month' ? 1 : 12))
  return Math.min(from + (new Date(now).getUTCDate() - 1) * dayMs, to - dayMs) + (now - dayOf(now).from)
}

/** Returns Saturday and Sunday of the week that lies `weeks` weeks back. */
export function weekendBefore(weeks: number, now: Millis): TimeRange {
  const { to } = unitBefore('week', weeks, now)
  return { from: to - 2 * dayMs, to }
}

/** Returns the last such weekday before today; Monday is 0. */
export function weekdayBefore(weekday: number, now: Millis): TimeRange {
  const today = dayOf(now).from / dayMs - firstMonday
  return dayOf(now - ((((today - weekday - 1) % 7) + 7) % 7) * dayMs - dayMs)
}

/** Returns the latest such month that has begun or, with `mustBeOver`, has ended. */
export function latestMonth(month: number, now: Millis, mustBeOver = false): TimeRange {
  const current = getMonth(now)
  return monthOf(getYear(now) - (month > current || (mustBeOver && month === current) ? 1 : 0), month)
}

/** Returns a calendar day; undefined for a date that does not exist. */
export function dateOf(year: number, month: number, date: number): TimeRange | undefined {
  const { from, to } = monthOf(year, month)
  const at = from + (date - 1) * dayMs
  return at < to ? daysFrom(at, 1) : undefined
}

/** Returns the latest such day that has begun. A leap day may be eight years back. */
export function latestDate(month: number, date: number, now: Millis): TimeRange | undefined {
  for (let year = getYear(now); year >= getYear(now) - 8; year--) {
    const found = dateOf(year, month, date)
    if (found !== undefined && found.from <= now) return found
  }
  return undefined
}
