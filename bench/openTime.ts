// Time to open a file of 1,000,000 messages, compared with an empty one.
import { join } from 'node:path'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { benchKey, createSentences, fillStore } from './corpus.ts'
import { measureInterleaved, measureMs, report } from './measure.ts'

async function openAndClose(path: string, session: number): Promise<void> {
  const store = sqliteStore(path)
  await store.readHead(benchKey(session), 0)
  await store.close()
}

export async function benchOpenTime(folder: string, quick: boolean): Promise<void> {
  const [sessions, rounds] = quick ? [100, 30] : [1_000, 100]
  const [large, empty] = [join(folder, 'large.db'), join(folder, 'empty.db')]
  const filled = sqliteStore(large)
  await fillStore(filled, sessions, 1_000, createSentences(50_000))
  await filled.close()
  await sqliteStore(empty).close()

  const name = `${sessions * 1_000} messages`
  const measurements = await measureInterleaved(
    {
      [name]: (round) => measureMs(() => openAndClose(large, round)),
      'an empty file': (round) => measureMs(() => openAndClose(empty, round)),
    },
    rounds,
    5,
  )
  report('open a file, read the head of one session, close, ms', measurements, [
    { ours: name, peer: 'an empty file', atMost: 1.5 },
  ])
}
