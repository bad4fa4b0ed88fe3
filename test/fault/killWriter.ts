import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkStore } from './checkStore.ts'
import { seed, seedHint } from './config.ts'
import { findErasedTexts } from './erasedTexts.ts'
import { seededRandom, stratifiedSample } from './random.ts'
import { writeStoreKey } from './runOperation.ts'
import { createStoreFile, onlyDatabaseFiles, runWriter, standardScenario } from './runWriter.ts'
import { parseTrace, traceOptions } from './straceOutput.ts'
import { createTempFolder } from './tempFolder.ts'

/** Call of a thread at which the process is killed, counted from 1; `isNew` if the process creates the file itself. */
export type KillPoint = {
  readonly call: string
  readonly when: number
  readonly isNew: boolean
  readonly isEncrypted?: boolean
  /** Seed of the operations; default: that of the test run. */
  readonly seed?: number
}

/** Calls that change a file, with their share of the kills. */
const killShares = { pwrite64: 0.45, fsync: 0.3, fdatasync: 0.3, ftruncate: 0.2, unlink: 0.05 }

/** Counts the calls of the thread that makes most of them: strace counts per thread. */
export async function countCalls(isNew: boolean): Promise<ReadonlyMap<string, number>> {
  using folder = createTempFolder()
  const [file, trace] = [join(folder.path, 'a.db'), join(folder.path, 'trace')]
  if (!isNew) await createStoreFile(file)
  const { result } = await runWriter(standardScenario(file, seed), [
    ...traceOptions(trace, ...Object.keys(killShares)),
    ...onlyDatabaseFiles(file),
  ])
  if (result.code !== 0 || result.stderr !== '') throw new Error(`The writer failed: ${result.stderr}`)
  const counts = new Map<string, Map<string, number>>()
  for (const { thread, name } of parseTrace(readFileSync(trace, 'utf8'))) {
    const byThread = counts.get(name) ?? new Map<string, number>()
    counts.set(name, byThread.set(thread, (byThread.get(thread) ?? 0) + 1))
  }
  // A new file is created by the first thread, before the others start.
  return new Map(
    [...counts].map(([name, byThread]) => [
      name,
      isNew ? ([...byThread.values()][0] as number) : Math.max(...byThread.values()),
    ]),
  )
}

export function pickKillPoints(
  counts: ReadonlyMap<string, number>,
  count: number,
  isNew: boolean,
): readonly KillPoint[] {
  const random = seededRandom(seed)
  return Object.entries(killShares).flatMap(([call, share]) =>
    counts.has(call)
      ? stratifiedSample(Math.ceil(count * share), counts.get(call) as number, random).map((before) => ({
          call,
          when: before + 1,
          isNew,
        }))
      : [],
  )
}

/** Kills the writer and returns the violations. If the run ends before the kill point, it is checked too and repeated with an earlier point. */
export async function killAndCheck(point: KillPoint): Promise<readonly string[]> {
  using folder = createTempFolder()
  const file = join(folder.path, 'a.db')
  if (point.isEncrypted === true) writeStoreKey(file)
  if (!point.isNew) await createStoreFile(file)
  const { call, when } = point
  const kill = ['-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:signal=SIGKILL:when=${when}`]
  const { journal, result } = await runWriter(standardScenario(file, point.seed ?? seed), [
    ...kill,
    ...onlyDatabaseFiles(file),
  ])
  const violations = [
    ...journal.failures.map(({ failed, message }) => `${failed} failed: ${message}`),
    ...findErasedTexts(file, journal),
    ...(await checkStore(file, journal)),
  ]
  const report = [...violations, ...(result.stderr === '' ? [] : [result.stderr])].map(
    (violation) => `${JSON.stringify(point)} ${seedHint}: ${violation}`,
  )
  if (result.signal === 'SIGKILL') return report
  return when === 1
    ? [...report, `${JSON.stringify(point)}: the writer was not killed`]
    : [...report, ...(await killAndCheck({ ...point, when: Math.ceil(when / 2) }))]
}
