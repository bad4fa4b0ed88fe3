import { describe, expect } from 'vitest'
import { openMemory, profiles } from '../../src/index.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const { agent } = profiles
const key = 'acme:agent'

/** Messages of exactly `tokens` by the document's estimate, with their place at the beginning. */
const talk = (count: number, tokens: number) =>
  Array.from({ length: count }, (_, place) => ({
    role: place % 2 === 0 ? ('user' as const) : ('assistant' as const),
    content: `${place + 1} ${'word '.repeat(tokens)}`.slice(0, tokens * 4 - 12),
  }))

describe('the agent profile', () => {
  verifies('A-04', 'has a budget of 190,904 tokens, a window of 30 and starts compressing at 70 %', () => {
    expect(agent.budget).toBe(200_000 - 5_000 - 4_096)
    expect(agent.bands.find((band) => band.name === 'recent')?.claim).toEqual({ last: 30 })
    expect(agent.trigger).toBe(0.7)
    expect([chars4.count('a'.repeat(4)), chars4.count('a'.repeat(5)), chars4.count('')]).toEqual([1, 2, 0])
  })

  verifies('A-04', 'tells when the trigger is reached, and takes other figures', async () => {
    await using memory = await openMemory({ profile: { ...agent, budget: 1_000, trigger: 0.5 }, tokenizer: chars4 })
    await memory.append(key, talk(9, 50))
    expect((await memory.context(key)).ledger).toMatchObject({ budget: 1_000, due: false })
    await memory.append(key, talk(3, 50))
    expect((await memory.context(key)).ledger.due).toBe(true)
  })

  verifies(
    'A-05',
    'keeps the last 30 whole, older ones whole up to 85 %, digested up to 95 %, and drops the rest',
    async () => {
      await using memory = await openMemory({ profile: { ...agent, budget: 6_000 }, tokenizer: chars4 })
      await memory.append(key, talk(100, 100))
      const { ledger } = await memory.context(key)
      const fate = ledger.lines
        .filter((line) => line.entries !== null)
        .map((line) => ({ band: line.band, verdict: line.verdict, first: line.entries?.[0], last: line.entries?.[1] }))
      expect(fate.map((line) => `${line.verdict} ${line.band}`)).toEqual([
        'dropped none',
        'shortened older',
        'whole older',
        'whole recent',
        'whole recent',
        'whole recent',
      ])
      expect(fate[3]?.first).toBe('m71')
      expect(fate.at(-1)?.last).toBe('m100')
      const spent = (verdict: string) =>
        ledger.lines.filter((line) => line.verdict === verdict).reduce((sum, line) => sum + line.tokens, 0)
      expect(spent('whole')).toBeLessThanOrEqual(0.85 * 6_000)
      expect(spent('whole')).toBeGreaterThan(0.85 * 6_000 - 110)
      expect(ledger.spent).toBeLessThanOrEqual(0.95 * 6_000)
      expect(ledger.spent).toBeGreaterThan(0.95 * 6_000 - 110)
      const digested = ledger.lines.find((line) => line.verdict === 'shortened')
      expect((digested?.tokens ?? 0) / (digested?.count ?? 1)).toBeLessThan(60)
    },
  )
})
