// Durable appends from 64 callers at once, and what they cost one caller and everybody else on the thread.
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { openMemory } from '../src/index.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { changeOf, sentences, sessionKey, spoken } from './corpus.ts'
import { percentile } from './data.ts'
import { peer } from './peer.ts'
import { inTurn, report, sorted, timed } from './rounds.ts'

const callers = 64
const texts = sentences(5_000)
const textOf = (at: number): string => texts[at % texts.length] as string

/** Appends one message, the `at`th of all, to a session. */
type Append = (session: number, at: number) => Promise<unknown>
type Side = { readonly append: Append; readonly close: () => Promise<unknown> }

function committing(path: string): Side {
  const store = sqliteStore(path)
  return {
    append: (session, at) => store.commit(changeOf(sessionKey(session), `a${at}`, [spoken(textOf(at), at)])),
    close: () => store.close(),
  }
}

async function appending(path: string): Promise<Side> {
  const memory = await openMemory({ store: `sqlite:${path}` })
  return {
    append: (session, at) =>
      memory.append(sessionKey(session), [{ role: at % 2 === 0 ? 'user' : 'assistant', content: textOf(at) }]),
    close: () => memory.close(),
  }
}

/** What the driver alone does: one transaction for each message, on the disk when it returns. */
function bare(path: string, hasText: boolean): Side {
  const database = new DatabaseSync(path)
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE message (place INTEGER PRIMARY KEY, session TEXT, sequence INTEGER, at REAL, role TEXT, tokens INTEGER, content TEXT);
    CREATE UNIQUE INDEX message_sequence ON message (session, sequence);
    CREATE VIRTUAL TABLE found USING fts5 (content, content = message, content_rowid = place);
  `)
  const insert = database.prepare(
    'INSERT INTO message (session, sequence, at, role, tokens, content) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const index = database.prepare('INSERT INTO found (rowid, content) VALUES (?, ?)')
  const append: Append = async (session, at) => {
    const { role, tokens, content } = spoken(textOf(at), at)
    database.exec('BEGIN IMMEDIATE')
    const { lastInsertRowid } = insert.run(`s${session}`, at, at, role, tokens, content)
    if (hasText) index.run(lastInsertRowid, content)
    database.exec('COMMIT')
  }
  return { append, close: async () => database.close() }
}

type Mastra = {
  Memory: new (
    options: object,
  ) => {
    createThread(thread: { threadId: string; resourceId: string }): Promise<unknown>
    saveMessages(said: { messages: object[] }): Promise<unknown>
  }
  LibSQLStore: new (options: { id: string; url: string }) => { init(): Promise<void>; close(): Promise<void> }
}

async function mastra(path: string): Promise<Side | undefined> {
  const [memories, stores] = [await peer<Mastra>('@mastra/memory'), await peer<Mastra>('@mastra/libsql')]
  if (memories === undefined || stores === undefined) return undefined
  const storage = new stores.LibSQLStore({ id: 'bench', url: `file:${path}` })
  await storage.init()
  const memory = new memories.Memory({ storage, options: { semanticRecall: false } })
  for (let session = 0; session < callers; session++)
    await memory.createThread({ threadId: `s${session}`, resourceId: 'bench' })
  const append: Append = (session, at) => {
    const content = { format: 2, parts: [{ type: 'text', text: textOf(at) }] }
    const role = at % 2 === 0 ? 'user' : 'assistant'
    return memory.saveMessages({
      messages: [{ id: `a${at}`, threadId: `s${session}`, resourceId: 'bench', role, createdAt: new Date(), content }],
    })
  }
  return { append, close: () => storage.close() }
}

/** So many messages from 64 callers, each of which waits for its own before it sends the next. */
async function together(append: Append, sessions: number, first: number, count: number): Promise<void> {
  let next = first
  const caller = async (number: number): Promise<void> => {
    while (next < first + count) await append(number % sessions, next++)
  }
  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)))
}

/** Messages a second, in rounds of so many. */
function rate({ append }: Side, sessions: number, count: number): (round: number) => Promise<number> {
  return async (round) => (1_000 * count) / (await timed(() => together(append, sessions, round * count, count)))
}

export async function appends(folder: string, quick: boolean): Promise<void> {
  const [count, rounds] = quick ? [500, 5] : [2_000, 7]
  const made: Side[] = []
  const keep = <T extends Side | undefined>(side: T): T => {
    if (side !== undefined) made.push(side)
    return side
  }
  const file = (name: string): string => join(folder, `${name}.db`)
  const ours = {
    'store.commit, 64 sessions': rate(keep(committing(file('commit-64'))), 64, count),
    'store.commit, 8 sessions': rate(keep(committing(file('commit-8'))), 8, count),
    'memory.append, 64 sessions': rate(keep(await appending(file('append-64'))), 64, count),
    'memory.append, 8 sessions': rate(keep(await appending(file('append-8'))), 8, count),
  }
  const theirs: Record<string, (round: number) => Promise<number>> = {
    'node:sqlite, row only': rate(keep(bare(file('bare'), false)), 64, count),
    'node:sqlite, row and FTS5': rate(keep(bare(file('bare-text'), true)), 64, count),
  }
  const libsql = keep(await mastra(file('mastra')))
  if (libsql !== undefined) theirs['@mastra/memory on libSQL, does not sync'] = rate(libsql, 64, count / 4)
  const figures = await inTurn({ ...ours, ...theirs }, rounds, 2)
  const targets = Object.keys(ours).flatMap((name) =>
    Object.keys(theirs).map((other) => ({ ours: name, peer: other, atLeast: 3 })),
  )
  report(`durable appends from ${callers} callers, messages/s, ${rounds} rounds of ${count}`, figures, targets)
  for (const side of made) await side.close()
  await aside(folder, quick)
}

/** For information: what one caller alone waits, and what everybody else does while many append. */
async function aside(folder: string, quick: boolean): Promise<void> {
  const file = (name: string): string => join(folder, `aside-${name}.db`)
  const sides = {
    'store.commit': committing(file('commit')),
    'memory.append': await appending(file('append')),
    'node:sqlite, row only': bare(file('bare'), false),
    'node:sqlite, row and FTS5': bare(file('bare-text'), true),
  }
  const [rounds, count] = quick ? [200, 500] : [600, 1_000]
  const alone = Object.entries(sides).map(
    ([name, { append }]) => [name, (round: number) => timed(() => append(0, round))] as const,
  )
  const waits = await inTurn(Object.fromEntries(alone), rounds, 50)
  report('one caller alone, ms for an append', waits)
  for (const [name, times] of waits) console.log(`  ${name}: p99 ${percentile(sorted(times), 0.99).toPrecision(3)}`)
  const busy = Object.entries(sides).map(([name, { append }]) => {
    // as if every message came by a request of its own: others may be served in between
    const served: Append = async (session, at) => {
      await setImmediate()
      return append(session, at)
    }
    return [name, (round: number) => loopDelay(() => together(served, 64, 10_000 + round * count, count))] as const
  })
  const delays = await inTurn(
    {
      ...Object.fromEntries(busy),
      'nothing to do': () => loopDelay(() => new Promise((done) => setTimeout(done, 500))),
    },
    5,
  )
  report(`event-loop delay while ${callers} callers append, p99 in ms, a timer of 1 ms included`, delays)
  for (const { close } of Object.values(sides)) await close()
}

async function loopDelay(work: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await work()
  delay.disable()
  return delay.percentile(99) / 1e6
}
