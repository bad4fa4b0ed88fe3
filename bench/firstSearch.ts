// Prints the time of the first search of a process, including opening the file.
// Usage: node bench/firstSearch.ts ours|fts5 FILE QUERY
import { DatabaseSync } from 'node:sqlite'
import { sqliteStore } from '../src/stores/sqlite.ts'

/** Returns the ten best FTS5 matches of any word in the query. */
export function createFts5Search(database: DatabaseSync): (query: string) => unknown[] {
  const statement = database.prepare(
    'SELECT rowid, content, bm25(found) AS score FROM found WHERE found MATCH ? ORDER BY bm25(found) LIMIT 10',
  )
  return (query) => statement.all(query.replaceAll(' ', ' OR '))
}

async function searchStore(path: string, text: string): Promise<void> {
  const store = sqliteStore(path)
  // The scope of corpus.ts, which is not imported because building its vocabulary takes longer than the search.
  await store.search({ scope: 'bench' }, { text, limit: 10 })
}

if (import.meta.main) {
  const [kind, path = '', query = ''] = process.argv.slice(2)
  const start = performance.now()
  if (kind === 'ours') await searchStore(path, query)
  else createFts5Search(new DatabaseSync(path))(query)
  console.log(performance.now() - start)
}
