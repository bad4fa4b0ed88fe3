import { DatabaseSync } from 'node:sqlite'
import type { Json, Message } from '../../src/domain/entry.ts'
import { formatKey } from '../../src/domain/key.ts'
import type { SessionHead } from '../../src/domain/session.ts'
import { type OpenStore, scopeOfRows } from './runOperation.ts'

export type StoredSession = { readonly head: SessionHead; readonly messages: readonly Message[] }

/** Reads all sessions of a store with all their messages, by key. */
export async function readStoredSessions({ store }: OpenStore): Promise<ReadonlyMap<string, StoredSession>> {
  const limit = Number.MAX_SAFE_INTEGER
  const sessions = new Map<string, StoredSession>()
  for (const { key } of await store.list({ limit })) {
    sessions.set(formatKey(key), {
      head: await store.readHead(key, 0),
      messages: await store.readMessages(key, { limit }),
    })
  }
  return sessions
}

/** Reads the values of all rows of the table, by name; a row that is stored twice has two. */
export async function readStoredRows({ memory }: OpenStore): Promise<ReadonlyMap<string, readonly Json[]>> {
  const rows = await memory.table(scopeOfRows).list([], { limit: Number.MAX_SAFE_INTEGER })
  const byName = Map.groupBy(rows, ({ key }) => key)
  return new Map([...byName].map(([name, same]) => [name, same.map(({ value }) => value as Json)]))
}

/** Returns the results of SQLite's own integrity checks. */
export function findDamage(file: string): readonly string[] {
  const database = new DatabaseSync(file)
  try {
    const integrity = database
      .prepare('PRAGMA integrity_check')
      .all()
      .map((row) => String(row.integrity_check))
    const references = database
      .prepare('PRAGMA foreign_key_check')
      .all()
      .map((row) => `a row of ${row.table} has a dangling reference`)
    return [...integrity.filter((result) => result !== 'ok'), ...references]
  } finally {
    database.close()
  }
}
