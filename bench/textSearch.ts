// Full-text search in one scope of 100,000 messages.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { createRandom, createSentences, fillStore, scope, vocabulary } from './corpus.ts'
import { createFts5Search } from './firstSearch.ts'
import { type Measurements, measureInterleaved, measureMs, report, type Target } from './measure.ts'

/** Rank ranges in the vocabulary, most frequent first. */
const ranks = { rare: [5_000, vocabulary.length], middling: [200, 5_000], common: [0, 200] } as const
type Kind = keyof typeof ranks
const kinds = Object.keys(ranks) as Kind[]

const target: Target = { ours: 'store.search', peer: 'FTS5', atMost: 2 }

/** Creates queries of 1 to 8 words of one frequency, or of mixed ones. */
function createQueries(count: number, kind: Kind | 'mixed'): string[] {
  const random = createRandom(7)
  const word = (): string => {
    const [from, to] = ranks[kind === 'mixed' ? (kinds[Math.floor(random() * 3)] as Kind) : kind]
    return vocabulary[from + Math.floor(random() * (to - from))] as string
  }
  return Array.from({ length: count }, (_, at) => Array.from({ length: 1 + (at % 8) }, word).join(' '))
}

/** Fills a plain FTS5 table with the same rows, merged into one segment for the best speed. */
function createFts5Database(path: string, texts: readonly string[]): DatabaseSync {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE found USING fts5 (content); BEGIN')
  const insert = database.prepare('INSERT INTO found (content) VALUES (?)')
  for (const content of texts) insert.run(content)
  database.exec("COMMIT; INSERT INTO found (found) VALUES ('optimize')")
  return database
}

export async function benchTextSearch(folder: string, quick: boolean): Promise<void> {
  const [sessions, count, rounds] = quick ? [100, 40, 3] : [1_000, 120, 5]
  const [ours, theirs] = [join(folder, 'ours.db'), join(folder, 'fts5.db')]
  const texts = createSentences(sessions * 100)
  const store = sqliteStore(ours)
  await fillStore(store, sessions, 100, texts)
  const database = createFts5Database(theirs, texts)
  const searchFts5 = createFts5Search(database)
  const all = new Map<string, number[]>([
    ['store.search', []],
    ['FTS5', []],
  ])
  for (const kind of [...kinds, 'mixed'] as const) {
    const queries = createQueries(count + 16, kind)
    const measurements: Measurements = await measureInterleaved(
      {
        'store.search': (round) =>
          measureMs(() => store.search({ scope }, { text: queries[round] as string, limit: 10 })),
        FTS5: (round) => measureMs(() => searchFts5(queries[round] as string)),
      },
      count,
      16,
    )
    for (const [name, times] of measurements) all.get(name)?.push(...times)
    report(`search of ${texts.length} messages, 1 to 8 words, ${kind}, ms, ${count} queries`, measurements, [target])
  }
  report('all queries', all, [target])
  await store.close()
  database.close()
  await measureFirstSearches(ours, theirs, rounds)
}

/** Measures the first search of a new process, in which the store loads its whole index. */
async function measureFirstSearches(ours: string, theirs: string, rounds: number): Promise<void> {
  const queries = createQueries(rounds + 1, 'mixed')
  const runFirstSearch = (kind: string, path: string) => async (round: number) =>
    Number(
      execFileSync(
        process.execPath,
        [join(import.meta.dirname, 'firstSearch.ts'), kind, path, queries[round] as string],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      ),
    )
  const measurements = await measureInterleaved(
    { 'store.search': runFirstSearch('ours', ours), FTS5: runFirstSearch('fts5', theirs) },
    rounds,
  )
  report('the first search of a new process, including opening, ms', measurements, [
    { ours: 'store.search', peer: 'FTS5' },
  ])
}
