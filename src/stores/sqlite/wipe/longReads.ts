import type { LongReads } from '../../../domain/fileMaintenance.ts'

/** Creates the list of the long reads of a file. Each side waits only for what began earlier. */
export function createLongReads(): LongReads {
  const reads = new Set<Promise<unknown>>()
  const exclusions = new Set<Promise<unknown>>()
  return {
    run: (read) => runAfter(exclusions, read, reads),
    exclude: (work) => runAfter(reads, work, exclusions),
  }
}

/** Runs work at the end of others, and lists it until its own. */
async function runAfter<T>(
  others: ReadonlySet<Promise<unknown>>,
  work: () => Promise<T>,
  list: Set<Promise<unknown>>,
): Promise<T> {
  const running = Promise.allSettled(others).then(work)
  list.add(running)
  try {
    return await running
  } finally {
    list.delete(running)
  }
}
