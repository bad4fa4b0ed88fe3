import type { Journal, Place } from './journal.ts'
import { damageOf, keptIn } from './kept.ts'
import { type Opened, openFile, perform } from './perform.ts'
import { faultsIn } from './verdict.ts'

/** Opens a file after a fault and tells everything that is wrong with it: as it is found, and if work goes on, after that. */
export async function examine(file: string, journal: Journal, goesOn = true): Promise<readonly string[]> {
  const faults: string[] = []
  try {
    const opened = await openFile(file, (warning) => faults.push(warning))
    try {
      faults.push(...faultsIn(journal, await keptIn(opened)), ...damageOf(file))
      if (goesOn) faults.push(...(await faultsAfterGoingOn(opened, journal)))
    } finally {
      await opened.memory.close()
    }
    return [...faults, ...damageOf(file)]
  } catch (error) {
    return [...faults, `it cannot be used: ${error instanceof Error ? error.stack : error}`]
  }
}

/** All that was not acknowledged is done again under the same id: then everything must be there, once. */
async function faultsAfterGoingOn(opened: Opened, journal: Journal): Promise<readonly string[]> {
  const done = new Map<string, readonly (readonly Place[])[]>(journal.done)
  for (const operation of journal.asked)
    if (!done.has(operation.id)) done.set(operation.id, [await perform(opened, operation)])
  return faultsIn({ ...journal, done }, await keptIn(opened)).map((fault) => `after going on, ${fault}`)
}
