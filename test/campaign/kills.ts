import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Json } from '../../src/domain/entry.ts'
import { checkStore } from '../fault/checkStore.ts'
import { findErasedTexts } from '../fault/erasedTexts.ts'
import { parseJournal } from '../fault/journal.ts'
import { type KillPoint, killAndCheck } from '../fault/killWriter.ts'
import { type RecordedRun, recordRun } from '../fault/recordRun.ts'
import { longScenario, standardScenario } from '../fault/runWriter.ts'
import { SimulatedDisk } from '../fault/simulatedDisk.ts'
import { ensureStrace } from '../fault/strace.ts'
import { createTempFolder } from '../fault/tempFolder.ts'
import { Counter, type Finding, type Part, type RunOptions } from './part.ts'
import { Random, seedOf } from './random.ts'

/** A process that is killed after a call of a recorded run: the files are those that the calls before it have left. */
type ReplayedKill = {
  readonly isEncrypted: boolean
  readonly isLong: boolean
  readonly seed: number
  /** Position in the run, from 0 to 1. */
  readonly at: number
}
/** A process that is killed by a signal at a call. */
type RealKill = { readonly kill: KillPoint }

/** Most kills per recorded run, and kills per one with a real signal. */
const maxKillsPerRun = 120
const killsPerSignal = 25
/** Resuming takes a thread and syncs, so only some stores do. */
const killsPerResume = 6

const calls = ['pwrite64', 'fsync', 'fdatasync', 'ftruncate', 'unlink']

/** Puts the files of a killed process into a folder, opens the store, and returns its violations. */
async function checkReplayedKill(run: RecordedRun, at: number, resumes: boolean): Promise<readonly string[]> {
  const disk = new SimulatedDisk(run.folder)
  for (const call of run.calls.slice(0, Math.ceil(at * run.calls.length))) disk.apply(call)
  using folder = createTempFolder()
  // What a process has written stays in the page cache when it is killed.
  for (const [path, content] of disk.filesAfterPowerLoss(() => true))
    writeFileSync(join(folder.path, basename(path)), content)
  if (run.key !== undefined) writeFileSync(join(folder.path, 'key'), run.key, { mode: 0o600 })
  const [file, journal] = [join(folder.path, 'a.db'), parseJournal(disk.output)]
  return [...findErasedTexts(file, journal), ...(await checkStore(file, journal, resumes))]
}

/** Records a run, with only those of its calls that change something. */
async function recordChanges({ isLong, seed, isEncrypted }: Omit<ReplayedKill, 'at'>): Promise<RecordedRun> {
  const run = await recordRun(isLong ? longScenario : standardScenario, seed, isEncrypted)
  const scratch = new SimulatedDisk(run.folder)
  return { ...run, calls: run.calls.filter((call) => scratch.apply(call)) }
}

const kindOf = (violation: string): string => violation.replaceAll(/[\w-]*#?\d+/g, 'n').slice(0, 80)

async function run({ seed, inputs, deadline, onProgress, onFinding }: RunOptions) {
  ensureStrace()
  const counter = new Counter()
  let done = 0
  // At least two runs: of a plain and of an encrypted store.
  const killsPerRun = Math.min(maxKillsPerRun, Math.ceil(inputs / 2))
  let recorded: { readonly run: RecordedRun; readonly input: Omit<ReplayedKill, 'at'> } | undefined
  for (; done < inputs && Date.now() < deadline; done++) {
    const random = new Random(seedOf(seed, done))
    const report = (input: ReplayedKill | RealKill, violations: readonly string[]): void => {
      for (const violation of violations)
        onFinding({ kind: kindOf(violation), detail: violation.slice(0, 400), input: input as unknown as Json })
    }
    if (done % killsPerRun === 0 || recorded === undefined) {
      const number = Math.floor(done / killsPerRun)
      const input = { isEncrypted: number % 2 === 1, isLong: number % 4 >= 2, seed: seedOf(seed, number) }
      recorded = { input, run: await recordChanges(input) }
    }
    const { isEncrypted } = recorded.input
    const name = isEncrypted ? 'encrypted SQLite' : 'SQLite'
    if (done % killsPerSignal === killsPerSignal - 1) {
      const kill = { call: random.pick(calls), when: random.int(1, 60), isNew: random.chance(0.2), isEncrypted }
      const violations = await killAndCheck(kill)
      // A run without such a call ends by itself.
      const real = violations.filter((violation) => !violation.endsWith('the writer was not killed'))
      report({ kill }, real)
      counter.add(`${name}: ${real.length < violations.length ? 'runs without a signal' : 'signals'}`)
    } else {
      const input = { ...recorded.input, at: random.next() }
      report(input, await checkReplayedKill(recorded.run, input.at, done % killsPerResume === 0))
      counter.add(`${name}: kills at recorded calls`)
    }
    onProgress(done + 1)
  }
  return { done, figures: counter.figures }
}

async function replay(input: Json): Promise<readonly Finding[]> {
  const { kill, isLong, seed, isEncrypted, at } = input as unknown as ReplayedKill & Partial<RealKill>
  if (kill === undefined && (seed === undefined || at === undefined)) return []
  ensureStrace()
  const violations =
    kill === undefined
      ? await checkReplayedKill(await recordChanges({ isLong, seed, isEncrypted }), at, true)
      : await killAndCheck(kill)
  return violations.map((violation) => ({ kind: kindOf(violation), detail: violation, input }))
}

/** Killed writers: everything acknowledged survives. */
export const kills: Part = {
  name: 'kills',
  unit: 'kills',
  description: 'writers of plain and encrypted stores, killed at every kind of disk call',
  fullCount: 2_400,
  sliceCount: 6,
  maxWorkers: 16,
  maxShrinkTries: 0,
  run,
  openReplayer: async () => ({ replay, [Symbol.asyncDispose]: async () => undefined }),
}
