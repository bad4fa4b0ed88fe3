import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { isCampaign } from '../../context/campaign.ts'
import { createTempFolder } from '../../fault/tempFolder.ts'
import { verifies } from '../../requirements/verifies.ts'
import { replyTo, startEchoModel } from './echoModel.ts'
import { createLoadClients } from './loadClients.ts'
import { fetchTranscript, startServerProcess } from './serverProcess.ts'

const turnCount = isCampaign ? 1_000 : 120

describe('one session with hundreds of concurrent turns', () => {
  verifies('X-07', 'stores every turn once, in order and without gaps, and reports no error', async () => {
    using folder = createTempFolder()
    await using echo = await startEchoModel()
    await using server = await startServerProcess({
      upstream: echo.url,
      profile: 'thread',
      store: `sqlite:${join(folder.path, 'hot.db')}`,
    })
    await using loadClients = createLoadClients(server.url, turnCount)
    const loadSession = { key: 'acme:hot', tag: 'tag1', turns: 0 }
    const said = await Promise.all(Array.from({ length: turnCount }, () => loadClients.sendTurn(loadSession)))
    const stored = await fetchTranscript(server.url, loadSession.key)
    expect(stored.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 2 * turnCount }, (_, at) => at + 1))
    const placeOf = new Map(stored.map(({ role, content }, place) => [`${role}: ${content}`, place]))
    // As many different messages as positions: no duplicates.
    expect(placeOf.size).toBe(2 * turnCount)
    for (const question of said) {
      const [asked = Number.NaN, answered = Number.NaN] = [
        placeOf.get(`user: ${question}`),
        placeOf.get(`assistant: ${replyTo(question)}`),
      ]
      expect(answered).toBeGreaterThan(asked)
    }
    expect([(await server.measure()).faults, echo.mixedTags, echo.requests]).toEqual([[], [], turnCount])
  })
})
