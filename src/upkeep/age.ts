import type { Knowledge, Millis } from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { aged, agesAt, isSpent } from './confidence.ts'
import { revise } from './revise.ts'

/**
 * Takes confidence back from knowledge nobody uses, in every scope, and removes what nobody believes any more. Resolves to
 * when there may be something to do again for what there is.
 */
export async function ageKnowledge(store: Store, now: Millis): Promise<Millis> {
  let next = Number.POSITIVE_INFINITY
  for (let after = ''; ; ) {
    const page = await store.list({ after, limit: 1_000 })
    for (const { key } of page) if (key.id === '') next = Math.min(next, await ageScope(store, key, now))
    const last = page.at(-1)
    if (last === undefined) return next
    after = formatKey(last.key)
  }
}

async function ageScope(store: Store, key: Key, now: Millis): Promise<Millis> {
  let next = Number.POSITIVE_INFINITY
  await revise(store, key, ({ derived }) => {
    const known = derived.filter((entry): entry is Knowledge => entry.kind === 'knowledge')
    const older = known.map((entry) => aged(entry, now))
    next = Math.min(...older.map(agesAt))
    return {
      put: older.filter((entry, at) => entry !== known[at] && !isSpent(entry)),
      drop: older.filter(isSpent).map(({ id }) => id),
    }
  })
  return next
}
