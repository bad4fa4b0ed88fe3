import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { newFolder } from '../../fault/tempFolder.ts'
import { verifies } from '../../requirements/verifies.ts'
import { crowdAt } from './crowd.ts'
import { replyTo, startEcho } from './echo.ts'
import { startStand, transcriptAt } from './stand.ts'

const many = 1_000

describe('one session that everybody talks in', () => {
  verifies(
    'X-07',
    'keeps every turn of a thousand at the same time once, in order and without a gap, and tells nobody of an error',
    async () => {
      using folder = newFolder()
      await using echo = await startEcho()
      await using stand = await startStand({
        upstream: echo.url,
        profile: 'thread',
        store: `sqlite:${join(folder.path, 'hot.db')}`,
      })
      await using crowd = crowdAt(stand.url, many)
      const talk = { key: 'acme:hot', tag: 'tag1', turns: 0 }
      const said = await Promise.all(Array.from({ length: many }, () => crowd.say(talk)))
      const stored = await transcriptAt(stand.url, talk.key)
      expect(stored.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 2 * many }, (_, at) => at + 1))
      const placeOf = new Map(stored.map(({ role, content }, place) => [`${role}: ${content}`, place]))
      // Nothing twice: so many different messages in so many places.
      expect(placeOf.size).toBe(2 * many)
      for (const question of said) {
        const [asked = Number.NaN, answered = Number.NaN] = [
          placeOf.get(`user: ${question}`),
          placeOf.get(`assistant: ${replyTo(question)}`),
        ]
        expect(answered).toBeGreaterThan(asked)
      }
      expect([(await stand.measure()).faults, echo.mixed, echo.requests]).toEqual([[], [], many])
    },
  )
})
