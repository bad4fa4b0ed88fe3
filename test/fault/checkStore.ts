import type { Journal, Position } from './journal.ts'
import { findOtherViolations } from './otherViolations.ts'
import { type OpenStore, openStoreFile, runOperation } from './runOperation.ts'
import { findDamage, readStoredRows, readStoredSessions } from './storedSessions.ts'
import { findViolations } from './violations.ts'

/** Opens a file after a fault and returns everything that is wrong with it, also after resuming the work if `resumes`. */
export async function checkStore(file: string, journal: Journal, resumes = true): Promise<readonly string[]> {
  const violations: string[] = []
  try {
    const opened = await openStoreFile(file, (warning) => violations.push(warning))
    try {
      violations.push(...(await compare(opened, journal)), ...findDamage(file))
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
  return (await compare(opened, resumed)).map((violation) => `after resuming, ${violation}`)
}

async function compare(opened: OpenStore, journal: Journal): Promise<readonly string[]> {
  const sessions = await readStoredSessions(opened)
  return [...findViolations(journal, sessions), ...findOtherViolations(journal, sessions, await readStoredRows(opened))]
}
