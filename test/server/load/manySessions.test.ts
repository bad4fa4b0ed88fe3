import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { isCampaign } from '../../context/campaign.ts'
import { createTempFolder } from '../../fault/tempFolder.ts'
import { verifies } from '../../requirements/verifies.ts'
import { startEchoModel } from './echoModel.ts'
import {
  createLoadClients,
  createLoadSessions,
  type LoadClients,
  type LoadSession,
  runConcurrently,
} from './loadClients.ts'
import { fetchAllPages, startServerProcess } from './serverProcess.ts'

const [clients, tenants, sessions] = [200, 100, isCampaign ? 10_000 : 400]

/** Every session in turn, this many times. */
function* repeatRounds(loadSessions: readonly LoadSession[], rounds: number): Iterable<LoadSession> {
  for (let round = 0; round < rounds; round++) yield* loadSessions
}

const runTurns = (loadClients: LoadClients, loadSessions: Iterable<LoadSession>): Promise<unknown> =>
  runConcurrently(clients, loadSessions, loadClients.sendTurn)

describe('many concurrent sessions', () => {
  verifies(['T-18', 'T-01'], 'are served without errors and without mixing their messages', async () => {
    await using echo = await startEchoModel()
    await using server = await startServerProcess({ upstream: echo.url, profile: 'support' })
    await using loadClients = createLoadClients(server.url, clients)
    const loadSessions = createLoadSessions(sessions, tenants)
    await runTurns(loadClients, repeatRounds(loadSessions, isCampaign ? 10 : 3))
    expect([(await server.measure()).faults, echo.mixedTags]).toEqual([[], []])
    expect(echo.requests).toBe(loadSessions.reduce((sum, { turns }) => sum + turns, 0))
    // All sessions are still alive.
    expect(await fetchAllPages(`${server.url}/api/sessions?limit=500`)).toHaveLength(sessions)
  })

  if (isCampaign) {
    it('once warm › memory does not grow with the number of turns', async () => {
      using folder = createTempFolder()
      await using echo = await startEchoModel()
      // SQLite, because a RAM store grows with its messages.
      await using server = await startServerProcess({
        upstream: echo.url,
        profile: 'thread',
        store: `sqlite:${join(folder.path, 'load.db')}`,
      })
      await using loadClients = createLoadClients(server.url, clients)
      const loadSessions = createLoadSessions(sessions, tenants)
      // Warm-up, until all code is compiled and the session cache is full: about 40,000 turns.
      await runTurns(loadClients, repeatRounds(loadSessions, 4))
      const warm = await server.measure()
      await runTurns(loadClients, repeatRounds(loadSessions, 8))
      const { rss, faults } = await server.measure()
      expect([faults, echo.mixedTags]).toEqual([[], []])
      // Cached messages of active sessions grow a little; a leak would double the memory.
      expect(rss / warm.rss).toBeLessThan(1.25)
    })
  }
})
