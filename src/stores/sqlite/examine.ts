import { statSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { isBlank, messageId } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import { type Gap, withGap } from '../../domain/session.ts'
import { searchTerms } from '../../search/terms.ts'
import { faultOf } from './faults.ts'
import { type Cells, columnsOf, derivedColumns, derivedOf, messageColumns, messageOf } from './rows.ts'
import { versionOf } from './schema.ts'

/** Something that is not as it was written. */
export type Fault = {
  readonly what: 'structure' | 'message' | 'derived' | 'session' | 'words'
  readonly key?: string
  readonly id?: string
  readonly why: string
}

/** What a file holds, and what is wrong with it. */
export type Findings = {
  readonly path: string
  readonly format: number
  readonly bytes: number
  readonly sessions: number
  readonly messages: number
  readonly derived: number
  readonly vectors: number
  /** Entries that were put aside earlier because they were damaged. */
  readonly quarantined: number
  readonly faults: readonly Fault[]
}

export type Progress = (done: number, total: number) => void

/** What a session's row should say, told by its messages. */
export type Tally = {
  readonly messages: number
  readonly last: number
  readonly weight: number
  readonly asked: number | null
  readonly gaps: readonly Gap[]
}

/** So many rows are looked at before others get their turn. */
const piece = 1_000

/** Looks at everything a database holds and changes nothing. */
export async function examine(
  database: DatabaseSync,
  path: string,
  onProgress: Progress = () => undefined,
): Promise<Findings> {
  const count = (table: string): number => {
    try {
      return Number(database.prepare(`SELECT count(*) AS many FROM ${table}`).get()?.many)
    } catch {
      return 0
    }
  }
  const total = count('message') + count('derived') + count('session')
  const faults = [...structure(database, path)]
  let done = 0
  for (const check of [messagesOf, derivedEntriesOf, sessionsOf]) {
    for await (const found of check(database, path)) {
      faults.push(...found.faults)
      done += found.seen
      onProgress(Math.min(done, total), total)
    }
  }
  return {
    path,
    format: versionOf(database),
    bytes: statSync(path).size,
    sessions: count('session'),
    messages: count('message'),
    derived: count('derived'),
    vectors: count('vector'),
    quarantined: count('quarantine'),
    faults,
  }
}

type Seen = { readonly seen: number; readonly faults: readonly Fault[] }

function* structure(database: DatabaseSync, path: string): Iterable<Fault> {
  try {
    const lines = database.prepare('PRAGMA integrity_check(100)').all() as { integrity_check: string }[]
    for (const { integrity_check: why } of lines) if (why !== 'ok') yield { what: 'structure', why }
    for (const { table } of database.prepare('PRAGMA foreign_key_check').all() as { table: string }[])
      yield { what: 'structure', why: `a row of ${table} has lost its session` }
  } catch (error) {
    yield { what: 'structure', why: faultOf(error, path).message }
  }
}

async function* messagesOf(database: DatabaseSync, path: string): AsyncIterable<Seen> {
  const select = `SELECT m.place, s.scope, s.name, m.terms, ${columnsOf('m', messageColumns)} FROM message m JOIN session s ON s.id = m.session WHERE m.place > ? ORDER BY m.place LIMIT ${piece}`
  yield* walked(database, path, select, ([scope, name, terms, ...row]) => {
    const key = nameOf(scope, name)
    const message = messageOf(row)
    if (message === undefined)
      return {
        what: 'message',
        key,
        id: messageId(row[0] as number),
        why: 'its checksum differs from what was written',
      }
    return terms === searchTerms(message.content).join('\n')
      ? undefined
      : { what: 'words', key, id: message.id, why: 'it cannot be found by all its words' }
  })
}

async function* derivedEntriesOf(database: DatabaseSync, path: string): AsyncIterable<Seen> {
  const select = `SELECT d.place, s.scope, s.name, ${columnsOf('d', derivedColumns)} FROM derived d JOIN session s ON s.id = d.session WHERE d.place > ? ORDER BY d.place LIMIT ${piece}`
  yield* walked(database, path, select, ([scope, name, ...row]) =>
    derivedOf(row) === undefined
      ? {
          what: 'derived',
          key: nameOf(scope, name),
          id: String(row[0]),
          why: 'its checksum differs from what was written',
        }
      : undefined,
  )
}

async function* sessionsOf(database: DatabaseSync, path: string): AsyncIterable<Seen> {
  const select = `SELECT id, scope, name, id, messages, last, weight, asked, gaps FROM session WHERE id > ? ORDER BY id LIMIT ${piece}`
  yield* walked(database, path, select, ([scope, name, id, messages, last, weight, asked, gaps]) => {
    const tally = tallyOf(database, id as number, last as number, weight as number)
    const right =
      tally.messages === messages &&
      tally.last === last &&
      tally.weight === weight &&
      tally.asked === asked &&
      JSON.stringify(tally.gaps) === gaps
    return right
      ? undefined
      : { what: 'session', key: nameOf(scope, name), why: 'what is kept beside its messages does not fit them' }
  })
}

/** Counts a session's messages again. Numbers given to messages that are gone by now are only known to the session's own row. */
export function tallyOf(database: DatabaseSync, session: number, last: number, weight: number): Tally {
  const select = database.prepare(
    'SELECT sequence, role, content, "offset" + weight FROM message WHERE session = ? ORDER BY sequence',
  )
  select.setReturnArrays(true)
  let tally: Tally = { messages: 0, last: 0, weight: 0, asked: null, gaps: [] }
  for (const [sequence, role, content, sum] of select.iterate(session) as unknown as Iterable<
    [number, string, string, number]
  >) {
    const asked = role === 'user' && !isBlank(content) ? sequence : tally.asked
    tally = {
      messages: tally.messages + 1,
      last: sequence,
      weight: sum,
      asked,
      gaps: withMissing(tally.gaps, tally.last + 1, sequence - 1),
    }
  }
  const isLater = Number.isSafeInteger(last) && last > tally.last
  const later = isLater ? { last, gaps: withMissing(tally.gaps, tally.last + 1, last) } : {}
  return { ...tally, ...later, weight: Number.isSafeInteger(weight) && weight > tally.weight ? weight : tally.weight }
}

function withMissing(gaps: readonly Gap[], first: number, last: number): readonly Gap[] {
  return first > last ? gaps : first === last ? withGap(gaps, first) : [...gaps, [first, last]]
}

/** Goes through a table in pieces; a part that cannot be read is reported, and what comes before it was seen. */
async function* walked(
  database: DatabaseSync,
  path: string,
  select: string,
  faultIn: (row: Cells) => Fault | undefined,
): AsyncIterable<Seen> {
  try {
    const statement = database.prepare(select)
    statement.setReturnArrays(true)
    for (let after = 0; ; ) {
      const rows = statement.all(after) as unknown as Cells[]
      yield { seen: rows.length, faults: rows.flatMap(([, ...row]) => faultIn(row) ?? []) }
      if (rows.length < piece) return
      after = rows.at(-1)?.[0] as number
      await new Promise((resolve) => setImmediate(resolve))
    }
  } catch (error) {
    yield { seen: 0, faults: [{ what: 'structure', why: faultOf(error, path).message }] }
  }
}

const nameOf = (scope: Cells[number] | undefined, id: Cells[number] | undefined): string =>
  formatKey({ scope, id } as Key)
