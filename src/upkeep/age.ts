import type { Knowledge, Millis } from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { aged, isSpent } from './confidence.ts'
import { revise } from './revise.ts'

/** Takes confidence back from knowledge nobody uses, in every scope, and removes what nobody believes any more. */
export async function ageKnowledge(store: Store, now: Millis): Promise<void> {
  for (let after = ''; ; ) {
    const page = await store.list({ after, limit: 1_000 })
    for (const { key } of page) if (key.id === '') await ageScope(store, key, now)
    const last = page.at(-1)
    if (last === undefined) return
    after = formatKey(last.key)
  }
}

async function ageScope(store: Store, key: Key, now: Millis): Promise<void> {
  await revise(store, key, ({ derived }) => {
    const known = derived.filter((entry): entry is Knowledge => entry.kind === 'knowledge')
    const older = known.map((entry) => aged(entry, now))
    return { put: older.filter((entry, at) => entry !== known[at] && !isSpent(entry)), drop: older.filter(isSpent).map(({ id }) => id) }
  })
}
