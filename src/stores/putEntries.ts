import type { DerivedEntry } from '../domain/entry.ts'

/** Puts derived entries in the order in which they were put first. */
export function putEntries(entries: readonly DerivedEntry[], put: readonly DerivedEntry[]): readonly DerivedEntry[] {
  if (put.length === 0) return entries
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  for (const entry of put) byId.set(entry.id, entry)
  return [...byId.values()]
}
