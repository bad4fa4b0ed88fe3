// The last 50 messages of a session that was not read before, and of one that was.
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openMemory } from '../src/index.ts'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { fill, scope, sentences, sessionKey } from './corpus.ts'
import { type Contenders, inTurn, report, type Target, timed } from './rounds.ts'

const newest = { limit: 50, newest: true } as const
const columns = 'sequence, at, role, name, tokens, line_tokens, tokenizer, weight, "offset", calls, answers, content'

const peers = ['rows as objects, by the driver', 'rows as arrays, mapped by hand'] as const
const targets: readonly Target[] = ['store.page', 'memory.transcript'].flatMap((ours) =>
  peers.map((peer) => ({ ours, peer, atMost: 2 })),
)

/** The prepared statement alone, on a connection of its own; even the number of a session is at hand. */
function bare(
  path: string,
  hasObjects: boolean,
): { readonly read: (session: number) => readonly object[]; readonly close: () => void } {
  const database = new DatabaseSync(path, { readOnly: true })
  const named = database.prepare('SELECT name, id FROM session WHERE scope = ?').all(scope)
  const ids = new Map(named.map(({ name, id }) => [name, id as number]))
  const statement = database.prepare(
    `SELECT ${columns} FROM message WHERE session = ? ORDER BY sequence DESC LIMIT ${newest.limit}`,
  )
  statement.setReturnArrays(!hasObjects)
  const read = (session: number): object[] => {
    const rows = statement.all(ids.get(`s${session}`) as number)
    return (hasObjects ? rows : (rows as unknown as unknown[][]).map(mapped)).reverse()
  }
  return { read, close: () => database.close() }
}

function mapped([
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

export async function cold(folder: string, quick: boolean): Promise<void> {
  const [sessions, warm] = quick ? [400, 100] : [2_000, 300]
  const path = join(folder, 'sessions.db')
  const filled = sqliteStore(path)
  await fill(filled, sessions, 120, sentences(20_000))
  await filled.close()

  const store = sqliteStore(path)
  const memory = await openMemory({ store: `sqlite:${path}` })
  const [objects, arrays] = [bare(path, true), bare(path, false)]
  const reads = (sessionOf: (round: number) => number): Contenders => ({
    'store.page': (round) => timed(() => store.page(sessionKey(sessionOf(round)), newest)),
    'memory.transcript': (round) => timed(() => memory.transcript(sessionKey(sessionOf(round)), newest)),
    [peers[0]]: (round) => timed(() => objects.read(sessionOf(round))),
    [peers[1]]: (round) => timed(() => arrays.read(sessionOf(round))),
  })
  const first = await inTurn(
    reads((round) => round),
    sessions - warm,
    warm,
  )
  report(`last 50 messages of a session not read before, ms, ${sessions - warm} sessions`, first, targets)
  const again = await inTurn(
    reads((round) => sessions - 1 - (round % 50)),
    1_000,
    100,
  )
  report('the same once more (hot, for information), ms', again)
  objects.close()
  arrays.close()
  await memory.close()
  await store.close()
}
