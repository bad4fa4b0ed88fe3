import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { MemoryError } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { runCounts, testTimeoutMs } from './config.ts'
import { pickCallWindows, runWithFailingCalls } from './failingCalls.ts'
import type { Journal, Position } from './journal.ts'
import { mapConcurrently } from './mapConcurrently.ts'
import type { Operation } from './operations.ts'
import { openStoreFile, runOperation } from './runOperation.ts'
import { mountSmallDisk } from './smallDisk.ts'
import { readStoredSessions } from './storedSessions.ts'
import { ensureStrace } from './strace.ts'
import { findViolations } from './violations.ts'

const append = (step: number): Operation => ({
  kind: 'append',
  id: `dora-${step}`,
  session: `fault:full-${step % 3}`,
  messages: 4,
  withFact: false,
})

describe('a full disk', () => {
  beforeAll(ensureStrace, testTimeoutMs)

  verifies(
    'X-07',
    'fails appends with code disk-full, keeps acknowledged data readable, and stores retried appends once when there is space',
    async () => {
      const outcomes = await mapConcurrently(pickCallWindows(runCounts.fullDisks, 200, 60), (window) =>
        runWithFailingCalls('pwrite64', 'ENOSPC', window),
      )
      expect(outcomes.flatMap(({ violations }) => violations)).toEqual([])
      for (const { codes } of outcomes) expect(codes).toEqual(['disk-full'])
    },
    testTimeoutMs,
  )

  // Needs the permission to mount; the injected errors above cover the same calls everywhere.
  it(
    'on a real small file system fails with code disk-full, and works again after a file was deleted',
    async ({ skip }) => {
      using disk = mountSmallDisk(1_000_000)
      if (disk === undefined) return skip('no permission to mount a file system')
      const [file, filler] = [join(disk.path, 'a.db'), join(disk.path, 'filler')]
      writeFileSync(filler, Buffer.alloc(600_000))
      const opened = await openStoreFile(file)
      await using _ = opened.memory
      const requested: Operation[] = []
      const acknowledged = new Map<string, readonly (readonly Position[])[]>()
      const failures: unknown[] = []
      const runAll = async (operations: readonly Operation[]): Promise<void> => {
        const outcomes = await Promise.allSettled(operations.map((operation) => runOperation(opened, operation)))
        outcomes.forEach((outcome, index) => {
          if (outcome.status === 'fulfilled') acknowledged.set((operations[index] as Operation).id, [outcome.value])
          else failures.push(outcome.reason)
        })
      }
      while (failures.length === 0) {
        const next = [0, 1, 2].map((more) => append(requested.length + more))
        requested.push(...next)
        await runAll(next)
      }
      const journal: Journal = { requested, acknowledged, failures: [], readCounts: [] }
      expect(failures.map((error) => error instanceof MemoryError && error.code)).toEqual(
        failures.map(() => 'disk-full'),
      )
      expect([acknowledged.size > 0, findViolations(journal, await readStoredSessions(opened))]).toEqual([true, []])
      rmSync(filler)
      await runAll(requested)
      expect([acknowledged.size, findViolations(journal, await readStoredSessions(opened))]).toEqual([
        requested.length,
        [],
      ])
    },
    testTimeoutMs,
  )
})
