import { type Journal, journalOf } from './journal.ts'
import { openFile } from './perform.ts'
import type { Scenario } from './scenario.ts'
import { type Ended, watch } from './strace.ts'

/** Makes a file with nothing in it yet, so that a run begins with what it is to write. */
export async function prepare(file: string): Promise<void> {
  await (await openFile(file)).memory.close()
}

/** Short, yet with everything in it: three callers, shared sessions and own ones, several messages at once, facts, things forgotten. */
export const usual = (file: string, seed: number): Scenario => ({
  ...{ file, seed },
  callers: ['ann', 'bob', 'cy'],
  steps: 14,
  erases: true,
  tries: 1,
  repeats: false,
})

/** Longer, and nothing is forgotten: the log grows until it is folded into the database by itself, and begins again. */
export const long = (file: string, seed: number): Scenario => ({ ...usual(file, seed), steps: 100, erases: false })

/** Only calls on the database count, by its own names: those of the journal have to go through. */
export const onFile = (file: string): readonly string[] =>
  [file, `${file}-wal`, `${file}-journal`].flatMap((path) => ['-P', path])

/** Runs the writer under strace; what it told, and how it ended. */
export async function write(
  scenario: Scenario,
  options: readonly string[],
): Promise<{ readonly journal: Journal; readonly ended: Ended }> {
  const ended = await watch(options, ['test/fault/scenario.ts', JSON.stringify(scenario)]).ended
  return { journal: journalOf(ended.stdout), ended }
}
