import { join } from 'node:path'
import { checkStore } from './checkStore.ts'
import { seed, seedHint } from './config.ts'
import { seededRandom, stratifiedSample } from './random.ts'
import { createStoreFile, onlyDatabaseFiles, runWriter, standardScenario } from './runWriter.ts'
import { createTempFolder } from './tempFolder.ts'

/** First and last call of a thread that fail, counted from 1. */
export type CallWindow = { readonly from: number; readonly to: number }

/** Picks windows that start among the first `calls` calls and span at most `maxLength` more. */
export function pickCallWindows(count: number, calls: number, maxLength: number): readonly CallWindow[] {
  const random = seededRandom(seed)
  return stratifiedSample(count, calls, random).map((before) => ({
    from: before + 1,
    to: before + 1 + Math.floor(random() * maxLength),
  }))
}

/** Error codes of the failed operations, and violations found afterwards. */
export type FailureOutcome = { readonly codes: readonly string[]; readonly violations: readonly string[] }

/** Runs the writer while the calls of a window fail on its database files. */
export async function runWithFailingCalls(
  calls: string,
  error: string,
  { from, to }: CallWindow,
): Promise<FailureOutcome> {
  using folder = createTempFolder()
  const file = join(folder.path, 'a.db')
  await createStoreFile(file)
  const inject = [
    '--seccomp-bpf',
    '-o',
    '/dev/null',
    '-e',
    `trace=${calls}`,
    '-e',
    `inject=${calls}:error=${error}:when=${from}..${to}`,
  ]
  const { journal, result } = await runWriter(
    { ...standardScenario(file, seed), maxAttempts: 1 + 2 * (to - from + 1) },
    [...inject, ...onlyDatabaseFiles(file)],
  )
  const { failures, readCounts } = journal
  const violations = [
    ...(result.code === 0 && result.stderr === '' ? [] : [`the writer ended with ${result.code}: ${result.stderr}`]),
    ...(readCounts.length === failures.length
      ? []
      : [`after ${failures.length} failures, ${readCounts.length} reads succeeded`]),
    ...(await checkStore(file, journal)),
  ]
  return {
    codes: [...new Set(failures.map(({ code }) => code))],
    violations: violations.map((violation) => `calls ${from}..${to}, ${seedHint}: ${violation}`),
  }
}
