import { describe, expect } from 'vitest'
import { openMemory, profiles } from '../../src/index.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const { agent } = profiles
const key = 'acme:agent'

/** Creates messages of exactly `tokens` by the document's estimate; each begins with its number. */
const createMessages = (count: number, tokens: number) =>
  Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: `${index + 1} ${'word '.repeat(tokens)}`.slice(0, tokens * 4 - 12),
  }))

describe('the agent profile', () => {
  verifies('A-04', 'has a budget of 190,904 tokens, a window of 30 and starts compressing at 70 %', () => {
    expect(agent.budget).toBe(200_000 - 5_000 - 4_096)
    expect(agent.bands.find((band) => band.name === 'recent')?.claim).toEqual({ last: 30 })
    expect(agent.upkeepAt).toBe(0.7)
    expect([chars4.count('a'.repeat(4)), chars4.count('a'.repeat(5)), chars4.count('')]).toEqual([1, 2, 0])
  })

  verifies('A-04', 'with another budget and upkeepAt reports when upkeep is due', async () => {
    await using memory = await openMemory({ profile: { ...agent, budget: 1_000, upkeepAt: 0.5 }, tokenizer: chars4 })
    await memory.append(key, createMessages(9, 50))
    expect((await memory.context(key)).ledger).toMatchObject({ budget: 1_000, due: false })
    await memory.append(key, createMessages(3, 50))
    expect((await memory.context(key)).ledger.due).toBe(true)
  })

  verifies(
    'A-05',
    'shows the last 30 in full, older ones in full up to 85 % and digested up to 95 %, and drops the rest',
    async () => {
      await using memory = await openMemory({ profile: { ...agent, budget: 6_000 }, tokenizer: chars4 })
      await memory.append(key, createMessages(100, 100))
      const { ledger } = await memory.context(key)
      const treatments = ledger.lines
        .filter((line) => line.entries !== null)
        .map((line) => ({ band: line.band, verdict: line.verdict, first: line.entries?.[0], last: line.entries?.[1] }))
      expect(treatments.map((line) => `${line.verdict} ${line.band}`)).toEqual([
        'dropped none',
        'shortened older',
        'whole older',
        'whole recent',
        'whole recent',
        'whole recent',
      ])
      expect(treatments[3]?.first).toBe('m71')
      expect(treatments.at(-1)?.last).toBe('m100')
      const sumTokens = (verdict: string) =>
        ledger.lines.filter((line) => line.verdict === verdict).reduce((sum, line) => sum + line.tokens, 0)
      expect(sumTokens('whole')).toBeLessThanOrEqual(0.85 * 6_000)
      expect(sumTokens('whole')).toBeGreaterThan(0.85 * 6_000 - 110)
      expect(ledger.spent).toBeLessThanOrEqual(0.95 * 6_000)
      expect(ledger.spent).toBeGreaterThan(0.95 * 6_000 - 110)
      const digested = ledger.lines.find((line) => line.verdict === 'shortened')
      expect((digested?.tokens ?? 0) / (digested?.count ?? 1)).toBeLessThan(60)
    },
  )
})
