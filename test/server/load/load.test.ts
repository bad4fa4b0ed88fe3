import { describe, expect } from 'vitest'
import { campaign } from '../../recall/campaign.ts'
import { verifies } from '../../requirements/verifies.ts'
import { abreast, crowdAt, type Talk, talksOf } from './crowd.ts'
import { startEcho } from './echo.ts'
import { everyPage, startStand } from './stand.ts'

const clients = 200
const size = campaign ? { sessions: 10_000, tenants: 100, minutes: 2 } : { sessions: 1_000, tenants: 100, rounds: 3 }

/** Every session in turn, again and again; with a time to end, or for so many rounds. */
function* rounds(talks: readonly Talk[]): Iterable<Talk> {
  const end = 'minutes' in size ? performance.now() + size.minutes * 60_000 : Number.POSITIVE_INFINITY
  for (let round = 0; 'rounds' in size ? round < size.rounds : performance.now() < end; round++) {
    for (const talk of talks) {
      yield talk
      if (performance.now() > end) return
    }
  }
}

describe('many sessions at the same time', () => {
  verifies(['T-18', 'T-01'], 'are served without an error, and nothing said in one comes up in another', async () => {
    await using echo = await startEcho()
    await using stand = await startStand({ upstream: echo.url, profile: 'support' })
    await using crowd = crowdAt(stand.url, clients)
    const talks = talksOf(size.sessions, size.tenants)
    const began = await stand.measure()
    const s = performance.now()
    await abreast(clients, rounds(talks), (talk) => crowd.say(talk))
    const { faults, ...after } = await stand.measure()
    console.log(began, after, performance.now() - s, echo.requests)
    expect([faults, echo.mixed]).toEqual([[], []])
    expect(echo.requests).toBe(talks.reduce((sum, { turns }) => sum + turns, 0))
    expect(await everyPage(`${stand.url}/api/sessions?limit=500`)).toHaveLength(size.sessions)
    console.log(await stand.rest())
  })
})
