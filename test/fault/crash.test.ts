import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { abreast } from './abreast.ts'
import { chanceOf, spread } from './chance.ts'
import { counts, patience, repeatedWith, seed } from './counts.ts'
import { examine } from './examine.ts'
import { newFolder } from './folder.ts'
import { remnantsIn } from './remnants.ts'
import { findStrace } from './strace.ts'
import { callsOf, recorded } from './trace.ts'
import { onFile, prepare, usual, write } from './writer.ts'

/** At which call of a thread the process is killed; the file is new, or there before it starts. */
type Point = { readonly call: string; readonly when: number; readonly isNew: boolean }

/** The calls that change a file, and which part of the kills falls on each of them. */
const shares = { pwrite64: 0.45, fsync: 0.3, fdatasync: 0.3, ftruncate: 0.2, unlink: 0.05 }

/** How often each call is made by the thread that makes it most. strace counts the calls of each thread on its own. */
async function callsMade(isNew: boolean): Promise<ReadonlyMap<string, number>> {
  using folder = newFolder()
  const [file, trace] = [join(folder.path, 'a.db'), join(folder.path, 'trace')]
  if (!isNew) await prepare(file)
  const { ended } = await write(usual(file, seed), [...recorded(trace, ...Object.keys(shares)), ...onFile(file)])
  expect(ended).toMatchObject({ code: 0, stderr: '' })
  const made = new Map<string, Map<string, number>>()
  for (const { thread, name } of callsOf(readFileSync(trace, 'utf8'))) {
    const byThread = made.get(name) ?? new Map<string, number>()
    made.set(name, byThread.set(thread, (byThread.get(thread) ?? 0) + 1))
  }
  // Of a new file, what counts is how it is made: by the first thread, before any other begins.
  return new Map(
    [...made].map(([name, byThread]) => [
      name,
      isNew ? ([...byThread.values()][0] as number) : Math.max(...byThread.values()),
    ]),
  )
}

function pointsIn(made: ReadonlyMap<string, number>, count: number, isNew: boolean): readonly Point[] {
  const chance = chanceOf(seed)
  return Object.entries(shares).flatMap(([call, share]) =>
    made.has(call)
      ? spread(Math.ceil(count * share), made.get(call) as number, chance).map((before) => ({
          call,
          when: before + 1,
          isNew,
        }))
      : [],
  )
}

/** Kills the writer at a point and tells what is wrong afterwards. A run that ends before its point is examined too, and the point is drawn nearer. */
async function crash(point: Point): Promise<readonly string[]> {
  using folder = newFolder()
  const file = join(folder.path, 'a.db')
  if (!point.isNew) await prepare(file)
  const { call, when } = point
  const kill = ['-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:signal=SIGKILL:when=${when}`]
  const { journal, ended } = await write(usual(file, seed), [...kill, ...onFile(file)])
  const faults = [
    ...journal.failed.map(({ failed, message }) => `${failed} failed: ${message}`),
    ...remnantsIn(file, journal),
    ...(await examine(file, journal)),
  ]
  const told = [...faults, ...(ended.stderr === '' ? [] : [ended.stderr])].map(
    (fault) => `${JSON.stringify(point)} ${repeatedWith}: ${fault}`,
  )
  if (ended.signal === 'SIGKILL') return told
  return when === 1
    ? [...told, `${JSON.stringify(point)}: the writer was not killed`]
    : [...told, ...(await crash({ ...point, when: Math.ceil(when / 2) }))]
}

describe('a writer that is killed', () => {
  beforeAll(findStrace, patience)

  verifies(
    'X-07',
    `loses nothing it acknowledged, keeps nothing twice, nothing by half and no byte of what was forgotten, at ${counts.crashes} writes and syncs`,
    async () => {
      const making = Math.ceil(counts.crashes / 8)
      const points = [
        ...pointsIn(await callsMade(true), making, true),
        ...pointsIn(await callsMade(false), counts.crashes - making, false),
      ]
      expect(points.length).toBeGreaterThanOrEqual(counts.crashes)
      expect((await abreast(points, crash)).flat()).toEqual([])
    },
    patience,
  )
})
