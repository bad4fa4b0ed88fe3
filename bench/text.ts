// Search by words in one scope of 100,000 messages.
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteStore } from '../src/stores/sqlite.ts'
import { fill, scope, seeded, sentences, vocabulary } from './corpus.ts'
import { bareSearch } from './firstSearch.ts'
import { type Figures, inTurn, report, type Target, timed } from './rounds.ts'

/** Ranks of words in the vocabulary, the commonest first. */
const ranks = { rare: [5_000, vocabulary.length], middling: [200, 5_000], common: [0, 200] } as const
type Kind = keyof typeof ranks
const kinds = Object.keys(ranks) as Kind[]

const target: Target = { ours: 'store.search', peer: 'FTS5', atMost: 2 }

/** Questions of 1 to 8 words of one kind, or of any. */
function questions(count: number, kind: Kind | 'mixed'): string[] {
  const random = seeded(7)
  const word = (): string => {
    const [from, to] = ranks[kind === 'mixed' ? (kinds[Math.floor(random() * 3)] as Kind) : kind]
    return vocabulary[from + Math.floor(random() * (to - from))] as string
  }
  return Array.from({ length: count }, (_, at) => Array.from({ length: 1 + (at % 8) }, word).join(' '))
}

/** The same rows for FTS5 alone, merged into one segment: as quick as it can be. */
function fillBare(path: string, texts: readonly string[]): DatabaseSync {
  const database = new DatabaseSync(path)
  database.exec('PRAGMA journal_mode = WAL; CREATE VIRTUAL TABLE found USING fts5 (content); BEGIN')
  const insert = database.prepare('INSERT INTO found (content) VALUES (?)')
  for (const content of texts) insert.run(content)
  database.exec("COMMIT; INSERT INTO found (found) VALUES ('optimize')")
  return database
}

export async function text(folder: string, quick: boolean): Promise<void> {
  const [sessions, count, rounds] = quick ? [100, 40, 3] : [1_000, 120, 5]
  const [ours, theirs] = [join(folder, 'ours.db'), join(folder, 'fts5.db')]
  const texts = sentences(sessions * 100)
  const store = sqliteStore(ours)
  await fill(store, sessions, 100, texts)
  const database = fillBare(theirs, texts)
  const bare = bareSearch(database)
  const all = new Map<string, number[]>([
    ['store.search', []],
    ['FTS5', []],
  ])
  for (const kind of [...kinds, 'mixed'] as const) {
    const asked = questions(count + 16, kind)
    const figures: Figures = await inTurn(
      {
        'store.search': (round) => timed(() => store.search({ scope }, { text: asked[round] as string, limit: 10 })),
        FTS5: (round) => timed(() => bare(asked[round] as string)),
      },
      count,
      16,
    )
    for (const [name, times] of figures) all.get(name)?.push(...times)
    report(`search of ${texts.length} messages, 1 to 8 words, ${kind}, ms, ${count} questions`, figures, [target])
  }
  report('all of these', all, [target])
  await store.close()
  database.close()
  await firstSearches(ours, theirs, rounds)
}

/** The first search of a process: ours reads all there is to search. */
async function firstSearches(ours: string, theirs: string, rounds: number): Promise<void> {
  const asked = questions(rounds + 1, 'mixed')
  const first = (kind: string, path: string) => async (round: number) =>
    Number(
      execFileSync(
        process.execPath,
        [join(import.meta.dirname, 'firstSearch.ts'), kind, path, asked[round] as string],
        {
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      ),
    )
  const figures = await inTurn({ 'store.search': first('ours', ours), FTS5: first('fts5', theirs) }, rounds)
  report('the first search of a new process, with opening, ms', figures, [{ ours: 'store.search', peer: 'FTS5' }])
}
