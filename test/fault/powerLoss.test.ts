import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { checkStore } from './checkStore.ts'
import { runCounts, seed, seedHint, testTimeoutMs } from './config.ts'
import { findErasedTexts } from './erasedTexts.ts'
import { parseJournal } from './journal.ts'
import { mapConcurrently } from './mapConcurrently.ts'
import { seededRandom, stratifiedSample } from './random.ts'
import { type RecordedRun, recordRun } from './recordRun.ts'
import { longScenario, standardScenario } from './runWriter.ts'
import { type SectorSurvival, SimulatedDisk } from './simulatedDisk.ts'
import { ensureStrace } from './strace.ts'
import { createTempFolder } from './tempFolder.ts'

/** Files after a power loss, and the journal output before it. */
type PowerLoss = { readonly name: string; readonly files: ReadonlyMap<string, Buffer>; readonly output: string }

/** Survival of unsynced data: none, a random part, or the first few sectors. */
const survivalModels: readonly ((random: () => number) => SectorSurvival)[] = [
  () => () => false,
  (random) => () => random() < 0.5,
  (random) => () => random() < 0.9,
  (random) => {
    let left = Math.floor(random() * 40)
    return () => left-- > 0
  },
]

/** Simulates power losses at `count` points of a run. */
function* simulatePowerLosses(
  { calls, folder }: RecordedRun,
  count: number,
  disk = new SimulatedDisk(folder),
): Generator<PowerLoss> {
  const random = seededRandom(seed)
  const scratch = new SimulatedDisk(folder)
  const changing = calls.filter((call) => scratch.apply(call))
  const points = stratifiedSample(count, changing.length, random)
  for (const [index, call] of changing.entries()) {
    disk.apply(call)
    for (const _ of points.filter((point) => point === index)) {
      const model = Math.floor(random() * survivalModels.length)
      const survives = (survivalModels[model] as (typeof survivalModels)[number])(random)
      yield {
        name: `call ${index} of ${changing.length} (${call.name}), survival model ${model}, ${seedHint}`,
        files: disk.filesAfterPowerLoss(survives),
        output: disk.output,
      }
    }
  }
}

/** Returns the violations after the power has come back. */
async function checkAfterPowerLoss({ name, files, output }: PowerLoss, index: number): Promise<readonly string[]> {
  using folder = createTempFolder()
  for (const [path, content] of files) writeFileSync(join(folder.path, basename(path)), content)
  const [file, journal] = [join(folder.path, 'a.db'), parseJournal(output)]
  const erasedTexts = findErasedTexts(file, journal)
  // Resuming takes a thread and syncs, so only every eighth store does.
  return [...erasedTexts, ...(await checkStore(file, journal, index % 8 === 0))].map(
    (violation) => `${name}: ${violation}`,
  )
}

describe('a power loss', () => {
  beforeAll(ensureStrace, testTimeoutMs)

  for (const [condition, scenario] of Object.entries({
    'during writes and erasures': standardScenario,
    'during writes until the log is checkpointed': longScenario,
  })) {
    verifies(
      'X-07',
      `${condition} keeps all acknowledged data complete and once, whichever unsynced data survives`,
      async () => {
        const outcomes = await mapConcurrently(
          simulatePowerLosses(await recordRun(scenario, seed), runCounts.powerLosses),
          checkAfterPowerLoss,
        )
        expect(outcomes.flat()).toEqual([])
        expect(outcomes.length).toBe(runCounts.powerLosses)
      },
      testTimeoutMs,
    )
  }

  it(
    'on a disk that ignores syncs is detected as data loss',
    async () => {
      const run = await recordRun(standardScenario, seed)
      const disk = new SimulatedDisk(run.folder, (path) => path.endsWith('-wal'))
      const violations = (await mapConcurrently(simulatePowerLosses(run, 10, disk), checkAfterPowerLoss)).flat()
      expect(violations.join('\n')).toContain('was acknowledged and is lost')
    },
    testTimeoutMs,
  )
})
