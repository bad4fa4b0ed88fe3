import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { abreast } from './abreast.ts'
import { chanceOf, spread } from './chance.ts'
import { counts, patience, repeatedWith, seed } from './counts.ts'
import { Disk, type Luck, watched } from './disk.ts'
import { examine } from './examine.ts'
import { newFolder } from './folder.ts'
import { journalOf } from './journal.ts'
import { remnantsIn } from './remnants.ts'
import { findStrace } from './strace.ts'
import { type Call, callsOf, recorded } from './trace.ts'
import { long, usual, write } from './writer.ts'

/** What a power failure leaves, and what had been told before it. */
type Loss = { readonly name: string; readonly files: ReadonlyMap<string, Buffer>; readonly output: string }

type Recorded = { readonly calls: readonly Call[]; readonly folder: string }

/** Every call of a run that writes a new file, from its first byte to its end, with the folder it lies in. */
async function record(scenario: typeof usual): Promise<Recorded> {
  using folder = newFolder()
  using beside = newFolder()
  const trace = join(beside.path, 'trace')
  const { ended } = await write(scenario(join(folder.path, 'a.db'), seed), recorded(trace, ...watched))
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  return { calls: callsOf(readFileSync(trace, 'utf8')), folder: folder.path }
}

/** How lucky the data that was never synced is: all of it is lost, or a part, down to single sectors. */
const fortunes: readonly ((chance: () => number) => Luck)[] = [
  () => () => false,
  (chance) => () => chance() < 0.5,
  (chance) => () => chance() < 0.9,
  (chance) => {
    let left = Math.floor(chance() * 40)
    return () => left-- > 0
  },
]

/** Cuts the power at so many places of a run. */
function* lossesIn({ calls, folder }: Recorded, count: number, disk = new Disk(folder)): Generator<Loss> {
  const chance = chanceOf(seed)
  const blank = new Disk(folder)
  const changing = calls.filter((call) => blank.apply(call))
  const points = spread(count, changing.length, chance)
  for (const [at, call] of changing.entries()) {
    disk.apply(call)
    for (const _ of points.filter((point) => point === at)) {
      const fortune = Math.floor(chance() * fortunes.length)
      const luck = (fortunes[fortune] as (typeof fortunes)[number])(chance)
      yield {
        name: `call ${at} of ${changing.length} (${call.name}), fortune ${fortune}, ${repeatedWith}`,
        files: disk.remains(luck),
        output: disk.output,
      }
    }
  }
}

/** What is wrong after the power has come back. */
async function faultsAfter({ name, files, output }: Loss, at: number): Promise<readonly string[]> {
  using folder = newFolder()
  for (const [path, content] of files) writeFileSync(join(folder.path, basename(path)), content)
  const [file, journal] = [join(folder.path, 'a.db'), journalOf(output)]
  const remnants = remnantsIn(file, journal)
  // Going on takes a thread and syncs of its own, so only some do.
  return [...remnants, ...(await examine(file, journal, at % 8 === 0))].map((fault) => `${name}: ${fault}`)
}

describe('a machine that loses its power', () => {
  beforeAll(findStrace, patience)

  for (const [what, scenario] of Object.entries({
    'forgets now and then': usual,
    'writes until its log is full': long,
  })) {
    verifies(
      'X-07',
      `while it ${what} has everything it acknowledged, once and whole, with any part of what was never synced`,
      async () => {
        const outcomes = await abreast(lossesIn(await record(scenario), counts.losses), faultsAfter)
        expect(outcomes.flat()).toEqual([])
        expect(outcomes.length).toBe(counts.losses)
      },
      patience,
    )
  }

  it(
    'is found out if its disk tells of syncs that never happened',
    async () => {
      const run = await record(usual)
      const lying = new Disk(run.folder, (path) => path.endsWith('-wal'))
      const faults = (await abreast(lossesIn(run, 20, lying), faultsAfter)).flat()
      expect(faults.join('\n')).toContain('was acknowledged and is lost')
    },
    patience,
  )
})
