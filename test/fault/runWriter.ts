import { type Journal, parseJournal } from './journal.ts'
import { openStoreFile } from './runOperation.ts'
import { type ProcessResult, runTraced } from './strace.ts'
import type { Scenario } from './writerProcess.ts'

/** Creates an empty store, so that a run contains only the calls of its own writes. */
export async function createStoreFile(file: string): Promise<void> {
  await (await openStoreFile(file)).memory.close()
}

/** Short scenario with all kinds of operations: three callers, shared and own sessions, batches, facts, erasures, replacements, rows, imports. */
export const standardScenario = (file: string, seed: number): Scenario => ({
  file,
  seed,
  callers: ['ann', 'bob', 'cy'],
  steps: 14,
  withErasure: true,
  withOthers: true,
  maxAttempts: 1,
  repeatsOperations: false,
})

/** Longer scenario without erasures, in which the log grows until SQLite checkpoints it by itself. */
export const longScenario = (file: string, seed: number): Scenario => ({
  ...standardScenario(file, seed),
  steps: 100,
  withErasure: false,
})

/** strace options that select calls on the database files only; the journal on stdout must get through. */
export const onlyDatabaseFiles = (file: string): readonly string[] =>
  [file, `${file}-wal`, `${file}-journal`].flatMap((path) => ['-P', path])

/** Runs the writer process under strace. */
export async function runWriter(
  scenario: Scenario,
  options: readonly string[],
): Promise<{ readonly journal: Journal; readonly result: ProcessResult }> {
  const result = await runTraced(options, ['test/fault/writerProcess.ts', JSON.stringify(scenario)]).result
  return { journal: parseJournal(result.stdout), result }
}
