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
import type { Finding, Part, RunOptions } from './part.ts'
import { Random, seedOf } from './random.ts'

/** A run of a writer whose calls are recorded. */
type RecordedInput = { readonly isEncrypted: boolean; readonly isLong: boolean; readonly seed: number }
/** A process that is killed after a call of a recorded run: the files are those that the calls before it have left. */
type ReplayedKill = RecordedInput & {
  /** Position in the run, from 0 to 1. */
  readonly at: number
}
/** A process that is killed by a signal at a call. */
type SignalKill = { readonly kill: KillPoint }

/** Stores take turns, so that a run that ends early has tried all of them equally often. */
const stores = [
  { name: 'SQLite', isEncrypted: false },
  { name: 'encrypted SQLite', isEncrypted: true },
] as const

/** Replayed kills of a store per recorded run. */
const killsPerRecording = 120
/** Kills of a store per one with a real signal. */
const killsPerSignal = 8
/** Resuming takes a thread and syncs, so only some stores do. */
const killsPerResume = 6

/** Calls that every run of the writer makes on its database, with their weight and about as often as they occur. */
const calls: readonly (readonly [weight: number, call: readonly [name: string, count: number]])[] = [
  [4, ['pwrite64', 1_000]],
  [3, ['fsync', 230]],
  [2, ['ftruncate', 80]],
  [1, ['unlink', 2]],
]

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
async function recordChanges({ isLong, seed, isEncrypted }: RecordedInput): Promise<RecordedRun> {
  const run = await recordRun(isLong ? longScenario : standardScenario, seed, isEncrypted)
  const scratch = new SimulatedDisk(run.folder)
  return { ...run, calls: run.calls.filter((call) => scratch.apply(call)) }
}

function createSignalKill(random: Random, isEncrypted: boolean): SignalKill {
  const [call, count] = random.weighted(calls)
  return {
    kill: { call, when: random.int(1, count), isNew: random.chance(0.2), isEncrypted, seed: random.int(1, 2 ** 31) },
  }
}

/** Names the class of a violation: numbers, ids and the kill point are left out. */
const kindOf = (violation: string): string =>
  violation
    .replace(/^\{[^}]*\}(?: THREADKEEP_SEED=\d+)?: /, '')
    .replaceAll(/[\w-]*#?\d+/g, 'n')
    .slice(0, 80)

/** Recorded runs of each store. */
class Recordings {
  private readonly current = new Map<boolean, { readonly input: RecordedInput; readonly run: RecordedRun }>()

  /** Returns the run of a store for one of its kills; records a new one from time to time, every second one is long. */
  async get(seed: number, isEncrypted: boolean, index: number) {
    const number = Math.floor(index / killsPerRecording)
    const input = { isEncrypted, isLong: number % 2 === 1, seed: seedOf(seed, number) }
    const known = this.current.get(isEncrypted)
    if (known?.input.seed === input.seed) return known
    const recorded = { input, run: await recordChanges(input) }
    this.current.set(isEncrypted, recorded)
    return recorded
  }
}

async function run({ seed, inputs, isOver, counter, onProgress, onFinding }: RunOptions): Promise<number> {
  ensureStrace()
  const recordings = new Recordings()
  let done = 0
  for (; done < inputs && !isOver(); done++) {
    const random = new Random(seedOf(seed, done))
    const { name, isEncrypted } = stores[done % stores.length] as (typeof stores)[number]
    const index = Math.floor(done / stores.length)
    const report = (input: ReplayedKill | SignalKill, violations: readonly string[]): void => {
      for (const violation of violations)
        onFinding({ kind: kindOf(violation), detail: violation.slice(0, 400), input: input as unknown as Json })
    }
    if (index % killsPerSignal === 1) {
      const input = createSignalKill(random, isEncrypted)
      report(input, await killAndCheck(input.kill))
      counter.add(`${name}: killed by a signal`)
    } else {
      const { input, run } = await recordings.get(seed, isEncrypted, index)
      const at = random.next()
      report({ ...input, at }, await checkReplayedKill(run, at, random.int(1, killsPerResume) === 1))
      counter.add(`${name}: replayed state`)
    }
    counter.add(`${name}: kills`)
    onProgress(done + 1)
  }
  return done
}

async function replay(input: Json): Promise<readonly Finding[]> {
  const { kill, isLong, seed, isEncrypted, at } = input as unknown as ReplayedKill & Partial<SignalKill>
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
  sliceCount: 2,
  maxWorkers: 16,
  maxShrinkTries: 0,
  run,
  openReplayer: async () => ({ replay, [Symbol.asyncDispose]: async () => undefined }),
}
