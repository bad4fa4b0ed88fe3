import { beforeAll, describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { runCounts, testTimeoutMs } from './config.ts'
import { countCalls, killAndCheck, pickKillPoints } from './killWriter.ts'
import { mapConcurrently } from './mapConcurrently.ts'
import { ensureStrace } from './strace.ts'

describe('a killed writer', () => {
  beforeAll(ensureStrace, testTimeoutMs)

  verifies(
    'X-07',
    `at ${runCounts.crashes} writes and syncs loses no acknowledged data, stores nothing twice or partially, and leaves no erased bytes`,
    async () => {
      const onNewFiles = Math.ceil(runCounts.crashes / 8)
      const points = [
        ...pickKillPoints(await countCalls(true), onNewFiles, true),
        ...pickKillPoints(await countCalls(false), runCounts.crashes - onNewFiles, false),
      ]
      expect(points.length).toBeGreaterThanOrEqual(runCounts.crashes)
      expect((await mapConcurrently(points, killAndCheck)).flat()).toEqual([])
    },
    testTimeoutMs,
  )
})
