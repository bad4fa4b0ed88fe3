import type { DatabaseSync } from 'node:sqlite'
import { runSync, type Work } from '../../../domain/work.ts'

/** Tables with a trigram index. */
export const indexedTables = ['graph_node', 'graph_observation'] as const
export type IndexedTable = (typeof indexedTables)[number]

/**
 * Yielded instead of a cost, after up to 200 deleted rows, where a deletion may commit and continue in another
 * transaction, before which others may write: it uses no row ids from before.
 */
export const commitPoint = Number.POSITIVE_INFINITY

/** Pages of an index that one statement writes: about a millisecond of work, but it may read many more. */
const mergedPages = 16
/** Time after which the thread commits what it has merged. */
const maxMergeMs = 50
/** The first step begins the merge of all segments, the second one sees if the one before had anything to merge. */
const minMergeSteps = 2

/** Merges the index of a table into a single segment, or continues to, which removes the trigrams of deleted rows. */
function* mergeIndexInSteps(database: DatabaseSync, table: IndexedTable, isFirst: boolean): Work<void> {
  // By default, a merge of fewer than four segments ends early if others add as many between two steps.
  if (isFirst) database.exec(`INSERT INTO ${table}_words (${table}_words, rank) VALUES ('usermerge', 2)`)
  const merge = database.prepare(`INSERT INTO ${table}_words (${table}_words, rank) VALUES ('merge', ?)`)
  const total = database.prepare('SELECT total_changes() AS changes')
  const countChanges = (): number => Number(total.get()?.changes)
  // A negative number begins a merge of all segments, a positive one continues it. The statement itself is a change.
  let pages = isFirst ? -mergedPages : mergedPages
  for (let before = Number.NEGATIVE_INFINITY; countChanges() - before >= 2; ) {
    before = countChanges()
    merge.run(pages)
    pages = mergedPages
    yield commitPoint
  }
}

/** Merges all indexes in the thread of the caller. Interruptible work. */
export function* mergeIndexesInSteps(database: DatabaseSync): Work<void> {
  for (const table of indexedTables) yield* mergeIndexInSteps(database, table, true)
}

/** Merges all indexes at once. */
export const mergeIndexes = (database: DatabaseSync): void => runSync(mergeIndexesInSteps(database))

/** Merges an index for a short time. Returns true if nothing is left to merge. */
export function mergeIndexPart(database: DatabaseSync, table: IndexedTable, isFirst: boolean): boolean {
  const end = performance.now() + maxMergeMs
  const steps = mergeIndexInSteps(database, table, isFirst)
  for (let done = 0; done < minMergeSteps || performance.now() < end; done++)
    if (steps.next().done === true) return true
  return false
}
