import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { campaign } from '../../context/campaign.ts'
import { newFolder } from '../../fault/tempFolder.ts'
import { verifies } from '../../requirements/verifies.ts'
import { abreast, type Crowd, crowdAt, type Talk, talksOf } from './crowd.ts'
import { startEcho } from './echo.ts'
import { everyPage, startStand } from './stand.ts'

const [clients, tenants, sessions] = [200, 100, campaign ? 10_000 : 1_000]
const minute = 60_000

/** Every session in turn, so many times, or again and again for so long. */
function* rounds(
  talks: readonly Talk[],
  { times = Number.POSITIVE_INFINITY, millis = Number.POSITIVE_INFINITY },
): Iterable<Talk> {
  const end = performance.now() + millis
  for (let round = 0; round < times; round++) {
    for (const talk of talks) {
      yield talk
      if (performance.now() > end) return
    }
  }
}

const talked = (crowd: Crowd, talks: Iterable<Talk>): Promise<unknown> => abreast(clients, talks, crowd.say)

describe('many sessions at the same time', () => {
  verifies(['T-18', 'T-01'], 'are served without an error, and nothing said in one comes up in another', async () => {
    await using echo = await startEcho()
    await using stand = await startStand({ upstream: echo.url, profile: 'support' })
    await using crowd = crowdAt(stand.url, clients)
    const talks = talksOf(sessions, tenants)
    await talked(crowd, rounds(talks, { times: campaign ? 1 : 3 }))
    if (campaign) await talked(crowd, rounds(talks, { millis: 2 * minute }))
    expect([(await stand.measure()).faults, echo.mixed]).toEqual([[], []])
    expect(echo.requests).toBe(talks.reduce((sum, { turns }) => sum + turns, 0))
    // All of them are still alive.
    expect(await everyPage(`${stand.url}/api/sessions?limit=500`)).toHaveLength(sessions)
  })

  if (campaign) {
    it('take no more memory the longer it lasts, once everything is warm', async () => {
      using folder = newFolder()
      await using echo = await startEcho()
      // On a disk: in RAM what is said stays, and adds up.
      await using stand = await startStand({
        upstream: echo.url,
        profile: 'thread',
        store: `sqlite:${join(folder.path, 'load.db')}`,
      })
      await using crowd = crowdAt(stand.url, clients)
      const talks = talksOf(sessions, tenants)
      // It is warm when all is compiled and the sessions at hand are as many as there may be: that takes some forty thousand turns.
      await talked(crowd, rounds(talks, { times: 1 }))
      await talked(crowd, rounds(talks, { millis: minute }))
      const warm = await stand.measure()
      await talked(crowd, rounds(talks, { millis: 2 * minute }))
      const { rss, faults } = await stand.measure()
      expect([faults, echo.mixed]).toEqual([[], []])
      // The newest messages of sessions in use are at hand, and those grow; what is not let go of would double it.
      expect(rss / warm.rss).toBeLessThan(1.25)
    })
  }
})
