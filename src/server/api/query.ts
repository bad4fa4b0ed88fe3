import type { Millis } from '../../domain/entry.ts'
import { Refusal } from '../http/httpError.ts'
import { numberIn } from '../http/requestContext.ts'

/** Refuses what a query holds beside these names: whoever writes `limt` would wonder otherwise. */
export function checkQuery(query: URLSearchParams, takes: readonly string[]): void {
  for (const name of query.keys()) {
    if (takes.includes(name)) continue
    const known = takes.length === 0 ? 'this address takes no query' : `this address takes ${takes.join(', ')}`
    throw new Refusal(
      400,
      'unknown_parameter',
      `${JSON.stringify(name.slice(0, 40))} is unknown here; ${known}.`,
      name.slice(0, 40),
    )
  }
}

/** How many items a page has. */
export const limitIn = (query: URLSearchParams): number => numberIn(query, 'limit', 50, 500)

/** A whole number after which a list goes on; 0, its beginning, when left out. */
export function placeIn(query: URLSearchParams): number {
  const text = query.get('after') ?? '0'
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw bad('after', text, 'the `next` of the page before')
}

/** A time in milliseconds since 1970, or a date such as 2026-03-01 or 2026-03-01T12:00:00Z. */
export function timeIn(query: URLSearchParams, name: string): Millis | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const time = /^\d{1,15}$/.test(text)
    ? Number(text)
    : /^\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:\d\d))?$/.test(text)
      ? Date.parse(text)
      : Number.NaN
  if (Number.isFinite(time)) return time
  throw bad(name, text, 'milliseconds since 1970, or a date such as 2026-03-01 or 2026-03-01T12:00:00Z')
}

/** Yes or no in the query. */
export function flagIn(query: URLSearchParams, name: string, otherwise: boolean): boolean {
  const text = query.get(name)
  if (text === null) return otherwise
  if (text === 'true' || text === 'false') return text === 'true'
  throw bad(name, text, 'true or false')
}

/** The refusal of something in the query that is not as it should be. */
export const bad = (name: string, text: string, right: string): Refusal =>
  new Refusal(400, 'bad_option', `${name} is ${JSON.stringify(text.slice(0, 40))}; it must be ${right}.`, name)
