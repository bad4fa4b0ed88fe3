import { DatabaseSync } from 'node:sqlite'
import type { Message } from '../../src/domain/entry.ts'
import { formatKey } from '../../src/domain/key.ts'
import type { Head } from '../../src/domain/session.ts'
import type { Opened } from './perform.ts'

/** A session as it is found after a fault: its state, and every message of it. */
export type Kept = { readonly head: Head; readonly messages: readonly Message[] }

/** Everything a store holds, by session. */
export async function keptIn({ store }: Opened): Promise<ReadonlyMap<string, Kept>> {
  const limit = Number.MAX_SAFE_INTEGER
  const kept = new Map<string, Kept>()
  for (const { key } of await store.list({ limit })) {
    kept.set(formatKey(key), { head: await store.head(key, 0), messages: await store.page(key, { limit }) })
  }
  return kept
}

/** What SQLite itself finds wrong with a file. */
export function damageOf(file: string): readonly string[] {
  const database = new DatabaseSync(file)
  try {
    const integrity = database
      .prepare('PRAGMA integrity_check')
      .all()
      .map((row) => String(row.integrity_check))
    const references = database
      .prepare('PRAGMA foreign_key_check')
      .all()
      .map((row) => `a row of ${row.table} belongs to nothing`)
    return [...integrity.filter((found) => found !== 'ok'), ...references]
  } finally {
    database.close()
  }
}
