import { setTimeout as wait } from 'node:timers/promises'
import type { FileMaintenance } from '../../../domain/fileMaintenance.ts'
import type { WriteQueue } from '../writeQueue.ts'
import { indexedTables } from './mergeIndexes.ts'

/** Time in which others take the lock on the file between two parts of a merge. */
const betweenPartsMs = 20

/** Returns the work on a file that its writer thread does. */
export const createFileTasks = (queue: WriteQueue): Pick<FileMaintenance, 'truncateLog' | 'mergeIndexes'> => ({
  truncateLog: async () => void (await queue.submit({ truncateLog: true })),
  mergeIndexes: () => mergeIndexes(queue),
})

/**
 * Merges the indexes of the graph: the first statement reads the trigrams of all deleted rows, which takes 150 ms for
 * 500,000 of them. Others write between the parts; what they delete is left to a merge of their own.
 */
async function mergeIndexes(queue: WriteQueue): Promise<void> {
  for (const table of indexedTables)
    for (let isFirst = true; ; isFirst = false) {
      const result = await queue.submit({ mergeIndex: table, isFirst })
      if (!('isMerged' in result) || result.isMerged) break
      await wait(betweenPartsMs)
    }
}
