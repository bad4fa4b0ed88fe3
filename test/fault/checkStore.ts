import type { Journal, Position } from './journal.ts'
import { type OpenStore, openStoreFile, runOperation } from './runOperation.ts'
import { findDamage, readStoredSessions } from './storedSessions.ts'
import { findViolations } from './violations.ts'

/** Opens a file after a fault and returns everything that is wrong with it, also after resuming the work if `resumes`. */
export async function checkStore(file: string, journal: Journal, resumes = true): Promise<readonly string[]> {
  const violations: string[] = []
  try {
    const opened = await openStoreFile(file, (warning) => violations.push(warning))
    try {
      violations.push(...findViolations(journal, await readStoredSessions(opened)), ...findDamage(file))
      if (resumes) violations.push(...(await resumeAndCheck(opened, journal)))
    } finally {
      await opened.memory.close()
    }
    return [...violations, ...findDamage(file)]
  } catch (error) {
    return [...violations, `the store cannot be used: ${error instanceof Error ? error.stack : error}`]
  }
}

/** Repeats all unacknowledged operations under the same ids: then every operation must be stored exactly once. */
async function resumeAndCheck(opened: OpenStore, journal: Journal): Promise<readonly string[]> {
  const acknowledged = new Map<string, readonly (readonly Position[])[]>(journal.acknowledged)
  for (const operation of journal.requested)
    if (!acknowledged.has(operation.id)) acknowledged.set(operation.id, [await runOperation(opened, operation)])
  const resumed: Journal = { ...journal, acknowledged }
  return findViolations(resumed, await readStoredSessions(opened)).map((violation) => `after resuming, ${violation}`)
}
