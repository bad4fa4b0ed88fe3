import type { Millis } from '../../domain/entry.ts'

/** A time with a beginning and an end that is not part of it. */
export type Stretch = { readonly from: Millis; readonly to: Millis }
export type Unit = 'day' | 'week' | 'month' | 'year'

export const hour: Millis = 3_600_000
export const day: Millis = 24 * hour

const yearAt = (at: Millis): number => new Date(at).getUTCFullYear()
const monthAt = (at: Millis): number => new Date(at).getUTCMonth()

export const dayOf = (at: Millis): Stretch => stretch(Math.floor(at / day) * day, 1)
/** From Monday to Sunday. */
const weekOf = (at: Millis): Stretch => stretch((Math.floor((Math.floor(at / day) - monday) / 7) * 7 + monday) * day, 7)
/** Months count from 0; one before January or after December is one of another year. */
export const monthOf = (year: number, month: number): Stretch => ({
  from: Date.UTC(year, month, 1),
  to: Date.UTC(year, month + 1, 1),
})
export const yearOf = (year: number): Stretch => ({ from: Date.UTC(year, 0, 1), to: Date.UTC(year + 1, 0, 1) })

/** The first Monday there is: days are counted from a Thursday. */
const monday = 4
const stretch = (from: Millis, days: number): Stretch => ({ from, to: from + days * day })

/** The day, week, month or year that lies so many of its kind before the one of this time. */
export function unitBefore(unit: Unit, many: number, now: Millis): Stretch {
  if (unit === 'day') return dayOf(now - many * day)
  if (unit === 'week') return weekOf(now - many * 7 * day)
  return unit === 'month' ? monthOf(yearAt(now), monthAt(now) - many) : yearOf(yearAt(now) - many)
}

/** The same time of day so many units earlier; where the month is too short for the day, on its last one. */
export function shiftedBack(unit: Unit, many: number, now: Millis): Millis {
  if (unit === 'day' || unit === 'week') return now - many * (unit === 'day' ? 1 : 7) * day
  const { from, to } = monthOf(yearAt(now), monthAt(now) - many * (unit === 'month' ? 1 : 12))
  return Math.min(from + (new Date(now).getUTCDate() - 1) * day, to - day) + (now - dayOf(now).from)
}

/** Saturday and Sunday of the week that lies so many weeks back. */
export function weekendBefore(weeks: number, now: Millis): Stretch {
  const { to } = unitBefore('week', weeks, now)
  return { from: to - 2 * day, to }
}

/** The last day before today with this name; Monday is 0. */
export function weekdayBefore(weekday: number, now: Millis): Stretch {
  const today = dayOf(now).from / day - monday
  return dayOf(now - ((((today - weekday - 1) % 7) + 7) % 7) * day - day)
}

/** The newest month of this name that has begun or, if it must be over, that has ended. */
export function newestMonth(month: number, now: Millis, isOver = false): Stretch {
  const here = monthAt(now)
  return monthOf(yearAt(now) - (month > here || (isOver && month === here) ? 1 : 0), month)
}

/** A day of a month of a year; undefined where there is none. */
export function dateOf(year: number, month: number, date: number): Stretch | undefined {
  const { from, to } = monthOf(year, month)
  const at = from + (date - 1) * day
  return at < to ? stretch(at, 1) : undefined
}

/** The newest day of this name that has begun. A leap day may be eight years back. */
export function newestDate(month: number, date: number, now: Millis): Stretch | undefined {
  for (let year = yearAt(now); year >= yearAt(now) - 8; year--) {
    const found = dateOf(year, month, date)
    if (found !== undefined && found.from <= now) return found
  }
  return undefined
}
