// Time to erase a session for good from files of 100 MB and 1 GB, compared with VACUUM, and how long others wait.
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { benchKey, createChange, createMessage, createSentences, fillStore } from './corpus.ts'
import { measureMs, report } from './measure.ts'

const rounds = 5
/** A message takes about 210 bytes of the file. */
const messagesPerMegabyte = 4_700

async function benchFile(path: string, megabytes: number): Promise<void> {
  const texts = createSentences(50_000)
  const store = sqliteStore(path)
  await fillStore(store, megabytes, messagesPerMegabyte, texts)
  const [erasures, wipes, appends]: [number[], number[], number[]] = [[], [], []]
  for (let round = 0; round < rounds; round++) {
    erasures.push(await measureMs(() => store.erase(benchKey(round))))
    let isWiping = true
    const wiping = measureMs(() => store.capabilities.file?.wipe()).finally(() => {
      isWiping = false
    })
    for (let number = 0; isWiping; number++) {
      const append = [createMessage(texts[number] as string, number)]
      appends.push(await measureMs(() => store.commit(createChange(benchKey(1_000 + round), `${number}`, append))))
    }
    wipes.push(await wiping)
  }
  await store.close()
  const size = Math.round(statSync(path).size / 1e6)
  const database = new DatabaseSync(path)
  const vacuum = [await measureMs(() => database.exec('VACUUM'))]
  database.close()
  report(
    `erase a session of 1 MB from a file of ${size} MB, ms`,
    new Map([
      ['delete its rows, clear the log', erasures],
      ['clear the unused parts of all pages', wipes],
      ['an append meanwhile', appends],
      ['longest append meanwhile', [Math.max(...appends)]],
      ['VACUUM, during which nobody can write', vacuum],
    ]),
  )
}

export async function benchErasure(folder: string, quick: boolean): Promise<void> {
  for (const megabytes of quick ? [100] : [100, 1_000]) await benchFile(join(folder, `${megabytes}.db`), megabytes)
}
