import { beforeAll, describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { runCounts, testTimeoutMs } from './config.ts'
import { pickCallWindows, runWithFailingCalls } from './failingCalls.ts'
import { mapConcurrently } from './mapConcurrently.ts'
import { ensureStrace } from './strace.ts'

describe('a disk with failing syncs', () => {
  beforeAll(ensureStrace, testTimeoutMs)

  verifies(
    'X-07',
    'fails appends with code not-durable, keeps acknowledged data, and stores retried appends once',
    async () => {
      const outcomes = await mapConcurrently(pickCallWindows(runCounts.syncErrors, 30, 8), (window) =>
        runWithFailingCalls('fsync,fdatasync', 'EIO', window),
      )
      expect(outcomes.flatMap(({ violations }) => violations)).toEqual([])
      for (const { codes } of outcomes) expect(codes).toEqual(['not-durable'])
    },
    testTimeoutMs,
  )
})
