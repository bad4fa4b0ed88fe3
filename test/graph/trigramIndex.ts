import { DatabaseSync } from 'node:sqlite'

/** Blocks of the trigram index of observations, also of deleted rows. */
export const readIndexBlocks = (database: DatabaseSync): readonly Uint8Array[] =>
  (database.prepare('SELECT block FROM graph_observation_words_data').all() as { block: Uint8Array }[]).map(
    ({ block }) => block,
  )

/** True if the index of observations holds a trigram, also of a deleted row. */
export function isIndexed(file: string, letters: string): boolean {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    return readIndexBlocks(database).some((block) => Buffer.from(block).includes(letters))
  } finally {
    database.close()
  }
}
