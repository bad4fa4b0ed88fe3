import { describe, expect } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { expectEndsOnce } from './sessionEnds.ts'

const fresh = createTempPaths()

describe('session end events of a SQLite store', () => {
  verifies(
    'T-07',
    'are reported exactly once per id, at whichever step the process is killed',
    async () => {
      let steps: number | undefined
      for (let killAtStep = 1; steps === undefined; killAtStep++) {
        const file = fresh()
        steps = await expectEndsOnce(file, `${file}.log`, killAtStep)
      }
      expect(steps).toBeGreaterThan(30)
    },
    240_000,
  )
})
