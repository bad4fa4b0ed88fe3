import { describe, expect } from 'vitest'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { expectEndsOnce } from './sessionEnds.ts'

const fresh = createTempPaths()

describe('session end events of a SQLite store', () => {
  verifies(
    'T-07',
    'are reported exactly once per id, whether the process is killed early or late',
    async () => {
      let steps: number | undefined
      for (let killAtStep = 1; steps === undefined; killAtStep += isCampaign ? 1 : 7) {
        const file = fresh()
        steps = await expectEndsOnce(file, `${file}.log`, killAtStep)
      }
      expect(steps).toBeGreaterThan(30)
    },
    240_000,
  )
})
