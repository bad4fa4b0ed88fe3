// Opening a file of 1,000,000 messages and an empty one.
import { join } from 'node:path'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { fill, sentences, sessionKey } from './corpus.ts'
import { inTurn, report, timed } from './rounds.ts'

async function opened(path: string, session: number): Promise<void> {
  const store = sqliteStore(path)
  await store.head(sessionKey(session), 0)
  await store.close()
}

export async function open(folder: string, quick: boolean): Promise<void> {
  const [sessions, rounds] = quick ? [100, 30] : [1_000, 100]
  const [large, empty] = [join(folder, 'large.db'), join(folder, 'empty.db')]
  const filled = sqliteStore(large)
  await fill(filled, sessions, 1_000, sentences(50_000))
  await filled.close()
  await sqliteStore(empty).close()

  const name = `${sessions * 1_000} messages`
  const figures = await inTurn(
    {
      [name]: (round) => timed(() => opened(large, round)),
      'an empty file': (round) => timed(() => opened(empty, round)),
    },
    rounds,
    5,
  )
  report('opening a file, the head of one session, closing, ms', figures, [
    { ours: name, peer: 'an empty file', atMost: 1.5 },
  ])
}
