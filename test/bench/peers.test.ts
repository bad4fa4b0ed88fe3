import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { countTokens } from '../../bench/peers/passages.ts'
import { loadPeers } from '../../bench/peers/systems.ts'

const isInstalled = existsSync(new URL('../../bench/node_modules', import.meta.url))
const topics = ['the garden', 'a train ride', 'cooking rice', 'old films', 'the choir']
const messages = Array.from({ length: 30 }, (_, order) => ({
  id: `m${order}`,
  at: Date.UTC(2024, 4, 8) + order * 3_600_000,
  speaker: order % 2 === 0 ? 'Ada' : 'Ben',
  role: order % 2 === 0 ? ('user' as const) : ('assistant' as const),
  text:
    order === 4
      ? 'My sister Clara adopted a puppy called Biscuit.'
      : `We talked about ${topics[order % topics.length]} for an hour on evening ${order}.`,
  group: null,
}))

describe.runIf(isInstalled)('memory peers', () => {
  it('with a question › answer within the budget, and with the evidence if they search', async () => {
    const systems = await loadPeers({ recentShare: 0 })
    expect(systems).toHaveLength(6)
    for (const system of systems) {
      const memory = await system.open({ id: 'one', messages })
      for (const budget of [40, 150, 400]) {
        const text = await memory.context('Which dog does Clara have?', budget)
        expect(countTokens(text), system.name).toBeLessThanOrEqual(budget)
        if (budget === 150 && !system.name.includes('trimMessages')) expect(text, system.name).toContain('Biscuit')
      }
      await memory.close()
    }
  }, 120_000)

  it('with a share for recent messages › show the newest', async () => {
    for (const system of await loadPeers({ recentShare: 0.5 })) {
      if (!/mastra|llamaindex|trim/.test(system.name)) continue
      const memory = await system.open({ id: 'one', messages })
      expect(await memory.context('Which dog does Clara have?', 200), system.name).toContain('evening 29')
      await memory.close()
    }
  }, 120_000)
})
