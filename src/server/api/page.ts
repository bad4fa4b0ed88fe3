import { bad, limitIn } from './query.ts'

/** A page of a list; `next` is where to go on with `after`, null at the end. */
export type Page<T> = { readonly items: readonly T[]; readonly next: string | null }

/** The page of a list of which one item more was read than it may have. */
export function pageOf<T>(found: readonly T[], limit: number, placeOf: (item: T) => string | number): Page<T> {
  const items = found.slice(0, limit)
  const last = items.at(-1)
  return { items, next: found.length > limit && last !== undefined ? String(placeOf(last)) : null }
}

/** The page that a query asks for of a list that is at hand as a whole, each item with an id of its own. */
export function pageIn<T extends { readonly id: string }>(all: readonly T[], query: URLSearchParams): Page<T> {
  const after = query.get('after')
  const place = after === null ? -1 : all.findIndex(({ id }) => id === after)
  if (after !== null && place < 0)
    throw bad('after', after, 'the `next` of the page before. What it names may be gone: begin anew')
  return pageOf(all.slice(place + 1), limitIn(query), ({ id }) => id)
}
