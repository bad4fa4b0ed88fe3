import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { abreast } from './abreast.ts'
import { counts, patience } from './counts.ts'
import { failing, windowsOf } from './failing.ts'
import type { Place } from './journal.ts'
import { keptIn } from './kept.ts'
import type { Operation } from './operations.ts'
import { openFile, perform } from './perform.ts'
import { newRoom } from './room.ts'
import { findStrace } from './strace.ts'
import { faultsIn } from './verdict.ts'

const say = (step: number): Operation => ({
  does: 'say',
  id: `dora-${step}`,
  session: `fault:full-${step % 3}`,
  messages: 4,
  learns: false,
})

describe('a full disk', () => {
  beforeAll(findStrace, patience)

  verifies(
    'X-07',
    'makes appends fail as full; what was acknowledged stays and can be read, and what failed is stored once when there is room',
    async () => {
      const outcomes = await abreast(windowsOf(counts.fullDisks, 200, 60), (window) =>
        failing('pwrite64', 'ENOSPC', window),
      )
      expect(outcomes.flatMap(({ faults }) => faults)).toEqual([])
      for (const { codes } of outcomes) expect(codes).toEqual(['full'])
    },
    patience,
  )

  // Only whoever may mount can make a disk that is really small; the calls that fail above are the same everywhere.
  it(
    'that is really full is told as such, and is written to again when a file has gone',
    async ({ skip }) => {
      using room = newRoom(1_000_000)
      if (room === undefined) return skip('nobody may mount a file system here')
      const [file, filler] = [join(room.path, 'a.db'), join(room.path, 'filler')]
      writeFileSync(filler, Buffer.alloc(600_000))
      const opened = await openFile(file)
      await using _ = opened.memory
      const asked: Operation[] = []
      const done = new Map<string, readonly (readonly Place[])[]>()
      const failures: unknown[] = []
      const round = async (operations: readonly Operation[]): Promise<void> => {
        const outcomes = await Promise.allSettled(operations.map((operation) => perform(opened, operation)))
        outcomes.forEach((outcome, at) => {
          if (outcome.status === 'fulfilled') done.set((operations[at] as Operation).id, [outcome.value])
          else failures.push(outcome.reason)
        })
      }
      while (failures.length === 0) {
        const next = [0, 1, 2].map((more) => say(asked.length + more))
        asked.push(...next)
        await round(next)
      }
      const journal = { asked, done, failed: [], reads: [] }
      expect(failures.map((error) => error instanceof MemoryError && error.code)).toEqual(failures.map(() => 'full'))
      expect([done.size > 0, faultsIn(journal, await keptIn(opened))]).toEqual([true, []])
      rmSync(filler)
      await round(asked)
      expect([done.size, faultsIn(journal, await keptIn(opened))]).toEqual([asked.length, []])
    },
    patience,
  )
})
