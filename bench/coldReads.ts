// Reads the last 50 messages of a session for the first time, and again.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openMemory } from '../src/index.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { benchKey, createSentences, fillStore, scope } from './corpus.ts'
import { type Contenders, measureInterleaved, measureMs, report, type Target } from './measure.ts'

const newest = { limit: 50, newest: true } as const
const columns = 'sequence, at, role, name, tokens, line_tokens, tokenizer, weight, "offset", calls, answers, content'

const peers = ['rows as objects, by the driver', 'rows as arrays, mapped by hand'] as const
const targets: readonly Target[] = ['store.page', 'memory.transcript'].flatMap((ours) =>
  peers.map((peer) => ({ ours, peer, atMost: 2 })),
)

/** Uses a prepared statement on its own connection, with the session ids loaded in advance. */
function openDriver(
  path: string,
  asObjects: boolean,
): { readonly read: (session: number) => readonly object[]; readonly close: () => void } {
  const database = new DatabaseSync(path, { readOnly: true })
  const named = database.prepare('SELECT name, id FROM session WHERE scope = ?').all(scope)
  const ids = new Map(named.map(({ name, id }) => [name, id as number]))
  const statement = database.prepare(
    `SELECT ${columns} FROM message WHERE session = ? ORDER BY sequence DESC LIMIT ${newest.limit}`,
  )
  statement.setReturnArrays(!asObjects)
  const read = (session: number): object[] => {
    const rows = statement.all(ids.get(`s${session}`) as number)
    return (asObjects ? rows : (rows as unknown as unknown[][]).map(toMessage)).reverse()
  }
  return { read, close: () => database.close() }
}

function toMessage([
  sequence,
  at,
  role,
  name,
  tokens,
  lineTokens,
  tokenizer,
  weight,
  offset,
  calls,
  answers,
  content,
]: readonly unknown[]): object {
  return { sequence, at, role, name, tokens, lineTokens, tokenizer, weight, offset, calls, answers, content }
}

export async function benchColdReads(folder: string, quick: boolean): Promise<void> {
  const [sessions, warmUpRounds] = quick ? [400, 100] : [2_000, 300]
  const path = join(folder, 'sessions.db')
  const filled = sqliteStore(path)
  await fillStore(filled, sessions, 120, createSentences(20_000))
  await filled.close()

  const store = sqliteStore(path)
  const memory = await openMemory({ store: `sqlite:${path}` })
  const [objects, arrays] = [openDriver(path, true), openDriver(path, false)]
  const createContenders = (sessionOf: (round: number) => number): Contenders => ({
    'store.page': (round) => measureMs(() => store.readMessages(benchKey(sessionOf(round)), newest)),
    'memory.transcript': (round) => measureMs(() => memory.transcript(benchKey(sessionOf(round)), newest)),
    [peers[0]]: (round) => measureMs(() => objects.read(sessionOf(round))),
    [peers[1]]: (round) => measureMs(() => arrays.read(sessionOf(round))),
  })
  const first = await measureInterleaved(
    createContenders((round) => round),
    sessions - warmUpRounds,
    warmUpRounds,
  )
  report(
    `last 50 messages of a session read for the first time, ms, ${sessions - warmUpRounds} sessions`,
    first,
    targets,
  )
  const again = await measureInterleaved(
    createContenders((round) => sessions - 1 - (round % 50)),
    1_000,
    100,
  )
  report('the same again (warm, no target), ms', again)
  objects.close()
  arrays.close()
  await memory.close()
  await store.close()
}
