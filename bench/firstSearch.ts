// node bench/firstSearch.ts ours|fts5 FILE QUESTION: how long the first search of a process takes, with opening the file.
import { DatabaseSync } from 'node:sqlite'
import { sqliteStore } from '../src/stores/sqlite.ts'

/** The ten best by FTS5 alone: texts that have any of the words. */
export function bareSearch(database: DatabaseSync): (question: string) => unknown[] {
  const statement = database.prepare(
    'SELECT rowid, content, bm25(found) AS score FROM found WHERE found MATCH ? ORDER BY bm25(found) LIMIT 10',
  )
  return (question) => statement.all(question.replaceAll(' ', ' OR '))
}

async function ours(path: string, text: string): Promise<void> {
  const store = sqliteStore(path)
  // the scope of corpus.ts, which is not loaded here: its vocabulary would take longer than the search
  await store.search({ scope: 'bench' }, { text, limit: 10 })
}

if (import.meta.main) {
  const [kind, path = '', question = ''] = process.argv.slice(2)
  const start = performance.now()
  if (kind === 'ours') await ours(path, question)
  else bareSearch(new DatabaseSync(path))(question)
  console.log(performance.now() - start)
}
