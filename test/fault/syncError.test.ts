import { beforeAll, describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { abreast } from './abreast.ts'
import { counts, patience } from './counts.ts'
import { failing, windowsOf } from './failing.ts'
import { findStrace } from './strace.ts'

describe('a disk that cannot sync', () => {
  beforeAll(findStrace, patience)

  verifies(
    'X-07',
    'makes appends fail as not durable; what was acknowledged stays, and what failed is stored once when it is tried again',
    async () => {
      const outcomes = await abreast(windowsOf(counts.syncErrors, 30, 8), (window) =>
        failing('fsync,fdatasync', 'EIO', window),
      )
      expect(outcomes.flatMap(({ faults }) => faults)).toEqual([])
      for (const { codes } of outcomes) expect(codes).toEqual(['not-durable'])
    },
    patience,
  )
})
