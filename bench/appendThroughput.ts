// Throughput of durable appends from 64 concurrent callers, latency of a single caller, and event-loop delay.
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { percentile } from '../src/evaluation/statistics.ts'
import { openMemory } from '../src/index.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { benchKey, createChange, createMessage, createSentences } from './corpus.ts'
import { importPeer, measureInterleaved, measureMs, report, sorted } from './measure.ts'

const callers = 64
const texts = createSentences(5_000)
const getText = (index: number): string => texts[index % texts.length] as string

/** Appends message number `index` to a session. */
type Append = (session: number, index: number) => Promise<unknown>
type Contender = { readonly append: Append; readonly close: () => Promise<unknown> }

function openStoreContender(path: string): Contender {
  const store = sqliteStore(path)
  return {
    append: (session, index) =>
      store.commit(createChange(benchKey(session), `a${index}`, [createMessage(getText(index), index)])),
    close: () => store.close(),
  }
}

async function openMemoryContender(path: string): Promise<Contender> {
  const memory = await openMemory({ store: `sqlite:${path}` })
  return {
    append: (session, index) =>
      memory.append(benchKey(session), [{ role: index % 2 === 0 ? 'user' : 'assistant', content: getText(index) }]),
    close: () => memory.close(),
  }
}

/** Uses the driver directly: one transaction per message, synced to disk on return. */
function openDriverContender(path: string, hasTextIndex: boolean): Contender {
  const database = new DatabaseSync(path)
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE message (id INTEGER PRIMARY KEY, session TEXT, sequence INTEGER, at REAL, role TEXT, tokens INTEGER, content TEXT);
    CREATE UNIQUE INDEX message_sequence ON message (session, sequence);
    CREATE VIRTUAL TABLE found USING fts5 (content, content = message, content_rowid = id);
  `)
  const insert = database.prepare(
    'INSERT INTO message (session, sequence, at, role, tokens, content) VALUES (?, ?, ?, ?, ?, ?)',
  )
  const insertText = database.prepare('INSERT INTO found (rowid, content) VALUES (?, ?)')
  const append: Append = async (session, index) => {
    const { role, tokens, content } = createMessage(getText(index), index)
    database.exec('BEGIN IMMEDIATE')
    const { lastInsertRowid } = insert.run(`s${session}`, index, index, role, tokens, content)
    if (hasTextIndex) insertText.run(lastInsertRowid, content)
    database.exec('COMMIT')
  }
  return { append, close: async () => database.close() }
}

type Mastra = {
  Memory: new (
    options: object,
  ) => {
    createThread(thread: { threadId: string; resourceId: string }): Promise<unknown>
    saveMessages(request: { messages: object[] }): Promise<unknown>
  }
  LibSQLStore: new (options: { id: string; url: string }) => { init(): Promise<void>; close(): Promise<void> }
}

async function openMastraContender(path: string): Promise<Contender | undefined> {
  const [memories, stores] = [await importPeer<Mastra>('@mastra/memory'), await importPeer<Mastra>('@mastra/libsql')]
  if (memories === undefined || stores === undefined) return undefined
  const storage = new stores.LibSQLStore({ id: 'bench', url: `file:${path}` })
  await storage.init()
  const memory = new memories.Memory({ storage, options: { semanticRecall: false } })
  for (let session = 0; session < callers; session++)
    await memory.createThread({ threadId: `s${session}`, resourceId: 'bench' })
  const append: Append = (session, index) => {
    const content = { format: 2, parts: [{ type: 'text', text: getText(index) }] }
    const role = index % 2 === 0 ? 'user' : 'assistant'
    return memory.saveMessages({
      messages: [
        { id: `a${index}`, threadId: `s${session}`, resourceId: 'bench', role, createdAt: new Date(), content },
      ],
    })
  }
  return { append, close: () => storage.close() }
}

/** Appends `count` messages from 64 concurrent callers; each waits for its append before the next. */
async function appendConcurrently(append: Append, sessions: number, first: number, count: number): Promise<void> {
  let next = first
  const caller = async (number: number): Promise<void> => {
    while (next < first + count) await append(number % sessions, next++)
  }
  await Promise.all(Array.from({ length: callers }, (_, number) => caller(number)))
}

/** Measures messages per second in rounds of `count`. */
function measureRate({ append }: Contender, sessions: number, count: number): (round: number) => Promise<number> {
  return async (round) =>
    (1_000 * count) / (await measureMs(() => appendConcurrently(append, sessions, round * count, count)))
}

export async function benchAppendThroughput(folder: string, quick: boolean): Promise<void> {
  const [count, rounds] = quick ? [500, 5] : [2_000, 7]
  const opened: Contender[] = []
  const track = <T extends Contender | undefined>(contender: T): T => {
    if (contender !== undefined) opened.push(contender)
    return contender
  }
  const file = (name: string): string => join(folder, `${name}.db`)
  const ours = {
    'store.commit, 64 sessions': measureRate(track(openStoreContender(file('commit-64'))), 64, count),
    'store.commit, 8 sessions': measureRate(track(openStoreContender(file('commit-8'))), 8, count),
    'memory.append, 64 sessions': measureRate(track(await openMemoryContender(file('append-64'))), 64, count),
    'memory.append, 8 sessions': measureRate(track(await openMemoryContender(file('append-8'))), 8, count),
  }
  const theirs: Record<string, (round: number) => Promise<number>> = {
    'node:sqlite, row only': measureRate(track(openDriverContender(file('bare'), false)), 64, count),
    'node:sqlite, row and FTS5': measureRate(track(openDriverContender(file('bare-text'), true)), 64, count),
  }
  const libsql = track(await openMastraContender(file('mastra')))
  if (libsql !== undefined) theirs['@mastra/memory on libSQL, does not sync'] = measureRate(libsql, 64, count / 4)
  const measurements = await measureInterleaved({ ...ours, ...theirs }, rounds, 2)
  const targets = Object.keys(ours).flatMap((name) =>
    Object.keys(theirs).map((other) => ({ ours: name, peer: other, atLeast: 3 })),
  )
  report(`durable appends from ${callers} callers, messages/s, ${rounds} rounds of ${count}`, measurements, targets)
  for (const contender of opened) await contender.close()
  await reportLatency(folder, quick)
}

/** Reports, without targets, the latency of a single caller and the event-loop delay under load. */
async function reportLatency(folder: string, quick: boolean): Promise<void> {
  const file = (name: string): string => join(folder, `latency-${name}.db`)
  const contenders = {
    'store.commit': openStoreContender(file('commit')),
    'memory.append': await openMemoryContender(file('append')),
    'node:sqlite, row only': openDriverContender(file('bare'), false),
    'node:sqlite, row and FTS5': openDriverContender(file('bare-text'), true),
  }
  const [rounds, count] = quick ? [200, 500] : [600, 1_000]
  const alone = Object.entries(contenders).map(
    ([name, { append }]) => [name, (round: number) => measureMs(() => append(0, round))] as const,
  )
  const latencies = await measureInterleaved(Object.fromEntries(alone), rounds, 50)
  report('one caller alone, ms per append', latencies)
  for (const [name, times] of latencies) console.log(`  ${name}: p99 ${percentile(sorted(times), 0.99).toPrecision(3)}`)
  const busy = Object.entries(contenders).map(([name, { append }]) => {
    // Simulates one request per message: other requests can be served in between.
    const appendPerRequest: Append = async (session, index) => {
      await setImmediate()
      return append(session, index)
    }
    return [
      name,
      (round: number) =>
        measureLoopDelay(() => appendConcurrently(appendPerRequest, 64, 10_000 + round * count, count)),
    ] as const
  })
  const delays = await measureInterleaved(
    {
      ...Object.fromEntries(busy),
      idle: () => measureLoopDelay(() => new Promise((done) => setTimeout(done, 500))),
    },
    5,
  )
  report(`event-loop delay while ${callers} callers append, p99 in ms, including a 1 ms timer`, delays)
  for (const { close } of Object.values(contenders)) await close()
}

/** Returns the p99 of the event-loop delay in milliseconds. */
async function measureLoopDelay(operation: () => Promise<unknown>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  await operation()
  delay.disable()
  return delay.percentile(99) / 1e6
}
