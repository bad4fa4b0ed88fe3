import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { DerivedEntry, Message, Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { estimateReservedTokens } from '../../src/domain/profile.ts'
import { createEmptyHead, type SessionHead } from '../../src/domain/session.ts'
import { profiles } from '../../src/profiles/index.ts'
import { nextDueOf, planUpkeep } from '../../src/upkeep/plan.ts'
import { verifies } from '../requirements/verifies.ts'

const key = parseKey('acme:ann')
const hour = 3_600_000
const start = Date.UTC(2026, 0, 1, 12)
const tokenCost = (entry: DerivedEntry): number => (entry.kind === 'summary' ? entry.text.length : 20)

/** Head of a session with messages of these weights, one minute apart. */
function headOf(weights: readonly number[], derived: readonly DerivedEntry[] = []): SessionHead {
  let offset = 0
  const messages = weights.map((weight, index): Message => {
    const message: Message = {
      kind: 'message',
      id: `m${index + 1}`,
      sequence: index + 1,
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: 'x',
      at: start + index * 60_000,
      tokens: weight,
      lineTokens: weight,
      tokenizer: 'test',
      weight,
      offset,
    }
    offset += weight
    return message
  })
  const last = messages.length
  return {
    ...createEmptyHead(key, 0),
    revision: last,
    startedAt: start,
    touchedAt: start + last * 60_000,
    messages: last,
    lastSequence: last,
    recent: messages.slice(-2),
    derived,
  }
}

const summary = (
  covers: readonly [number, number],
  reach: number,
  tier: Summary['tier'] = 'progressive',
  id = 'summary',
): Summary => ({
  kind: 'summary',
  id,
  at: start,
  tier,
  text: 'A summary.',
  covers,
  endOffset: reach,
  version: 1,
  by: 'builtin',
  sources: [],
  lossyRanges: [],
})

const planInput = (now = start, budget = 3_000) => ({ now, budget, tokenCost })
const dueFor = (head: SessionHead, name: 'summary' | 'support' | 'thread', now = start) =>
  planUpkeep(head, profiles[name], 'said', planInput(now, profiles[name].budget))

describe('planUpkeep', () => {
  verifies('C-02', 'with more than 3,000 tokens plans a compaction', () => {
    expect(dueFor(headOf([1_500, 1_500]), 'summary')).toEqual([])
    expect(dueFor(headOf([2_000, 600, 401]), 'summary')).toMatchObject([
      { kind: 'compact', previous: undefined, startOffset: 0, endOffset: 2_000, minTokens: 1_500 },
    ])
  })

  verifies('C-02', 'counts messages since the last summary only', () => {
    const since = [summary([1, 2], 3_000)]
    expect(dueFor(headOf([1_500, 1_500, 2_500, 200, 200], since), 'summary')).toEqual([])
    expect(dueFor(headOf([1_500, 1_500, 2_500, 300, 200], since), 'summary')).toMatchObject([
      { kind: 'compact', previous: { id: 'summary' }, startOffset: 3_000, endOffset: 5_500 },
    ])
  })

  verifies('T-04', 'with 20 messages before the 30 newest plans an hour summary', () => {
    const sessionOf = (count: number) => headOf(Array.from({ length: count }, () => 10))
    expect(dueFor(sessionOf(49), 'support')).toEqual([])
    expect(dueFor(sessionOf(50), 'support')).toMatchObject([{ kind: 'summariseHour', after: 0 }])
  })

  verifies('T-04', 'a day after the end of an hour plans a session summary', () => {
    const id = `hour${Math.floor(start / hour)}`
    const head = headOf([10, 10], [summary([1, 2], 20, 'hour', id)])
    const end = (Math.floor(start / hour) + 1) * hour
    expect(dueFor(head, 'support', end + 24 * hour - 1)).toEqual([])
    expect(dueFor(head, 'support', end + 24 * hour)).toMatchObject([{ kind: 'summariseSession', hours: [{ id }] }])
  })

  verifies('K-04', 'keeps the last two messages unless they exceed a portion', () => {
    expect(dueFor(headOf([1_600, 900, 600]), 'summary')).toMatchObject([{ endOffset: 1_600 }])
    expect(dueFor(headOf([1_600, 900, 601]), 'summary')).toMatchObject([{ endOffset: 2_500 }])
  })

  verifies('K-04', 'keeps only messages that fit below the low-water mark beside facts and summary', () => {
    const since = [{ ...summary([1, 1], 1_000), text: 'x'.repeat(1_200) }]
    const head = headOf([1_000, ...Array.from({ length: 20 }, () => 100)], since)
    expect(dueFor(head, 'summary')).toMatchObject([{ startOffset: 1_000, endOffset: 2_700 }])
  })

  verifies('K-04', 'with a newest message above the high-water mark plans nothing', () => {
    expect(dueFor(headOf([100, 9_000]), 'summary')).toEqual([])
    expect(dueFor(headOf([100, 9_000, 50]), 'summary')).toMatchObject([{ startOffset: 0, endOffset: 8_650 }])
  })

  verifies('K-04', 'whatever the message sizes › two compactions are (high − low) tokens of new text apart', () => {
    const sizes = fc.oneof(
      fc.integer({ min: 1, max: 120 }),
      fc.integer({ min: 500, max: 1_500 }),
      fc.integer({ min: 1, max: 20_000 }),
    )
    const cases = fc.record({
      name: fc.constantFrom('summary' as const, 'thread' as const),
      budget: fc.integer({ min: 500, max: 32_000 }),
      weights: fc.array(sizes, { minLength: 1, maxLength: 150 }),
      summaryTokens: fc.integer({ min: 1, max: 5_000 }),
    })
    fc.assert(
      fc.property(cases, ({ name, budget: given, weights, summaryTokens }) => {
        const budget = name === 'summary' ? 3_000 : given
        const high = name === 'summary' ? 3_000 : 0.9 * budget
        const portion = Math.floor(high / 2)
        const input = planInput(start, budget)
        let derived: readonly DerivedEntry[] = []
        let [covered, reach, compactions] = [0, 0, 0]
        for (let count = 1; count <= weights.length; count++) {
          const head = headOf(weights.slice(0, count), derived)
          const [step] = planUpkeep(head, profiles[name], 'said', input)
          if (step?.kind !== 'compact') continue
          while (covered < count - 1 && reach < step.endOffset) reach += weights[covered++] as number
          compactions++
          expect(reach - step.startOffset).toBeGreaterThanOrEqual(portion)
          derived = [{ ...summary([1, covered], reach), text: 'x'.repeat(summaryTokens) }]
          const after = headOf(weights.slice(0, count), derived)
          expect(planUpkeep(after, profiles[name], 'said', input)).toEqual([])
          // Facts and summary, as they were before, and the messages left are below the low-water mark.
          const reserved = estimateReservedTokens(profiles[name].bands, head.derived, budget, tokenCost)
          const left = weights.slice(covered, count).reduce((sum, weight) => sum + weight, 0)
          const exchange = weights.slice(count - 2, count).reduce((sum, weight) => sum + weight, 0)
          expect(left).toBeLessThanOrEqual(Math.max(high / 2 - reserved, exchange))
        }
        expect(compactions).toBeLessThanOrEqual(weights.reduce((sum, weight) => sum + weight, 0) / portion)
      }),
      { numRuns: 500 },
    )
  })

  it('plans nothing while nextDueOf says that nothing is due', () => {
    const cases = fc.record({
      name: fc.constantFrom('summary' as const, 'support' as const, 'thread' as const),
      weights: fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 120 }),
      covered: fc.integer({ min: 0, max: 60 }),
      later: fc.integer({ min: 0, max: 30 * hour }),
    })
    const check = ({
      name,
      weights,
      covered,
      later,
    }: {
      name: 'summary' | 'support' | 'thread'
      weights: number[]
      covered: number
      later: number
    }): void => {
      const end = Math.min(covered, weights.length)
      const reach = weights.slice(0, end).reduce((sum, weight) => sum + weight, 0)
      const tier = name === 'support' ? 'hour' : 'progressive'
      const derived =
        end === 0
          ? []
          : [summary([1, end], reach, tier, tier === 'hour' ? `hour${Math.floor(start / hour)}` : 'summary')]
      const input = planInput(start, profiles[name].budget)
      for (let count = Math.max(1, end); count <= weights.length; count++) {
        const before = headOf(weights.slice(0, count), derived)
        if (planUpkeep(before, profiles[name], 'said', input).length > 0) return
        const nextDue = nextDueOf(before, profiles[name], input)
        const after = headOf(weights.slice(0, count + 1), derived)
        const newest = after.recent.at(-1) as Message
        const now = start + later
        const isNothingDue =
          newest.offset + newest.weight <= nextDue.tokens && newest.sequence < nextDue.sequence && now < nextDue.at
        if (isNothingDue) expect(planUpkeep(after, profiles[name], 'said', { ...input, now })).toEqual([])
      }
    }
    fc.assert(fc.property(cases, check), { numRuns: 300 })
  })

  it('with missing facts plans a re-extraction', () => {
    const fact: DerivedEntry = {
      kind: 'fact',
      id: 'f1',
      at: start,
      field: 'entities',
      key: '',
      value: 'Oslo',
      importance: 3,
      sources: [],
    }
    const notes: DerivedEntry = { kind: 'notes', id: 'notes', at: start, facts: 2, sources: [] }
    expect(dueFor(headOf([10], [fact, { ...fact, id: 'f2' }, notes]), 'thread')).toEqual([])
    expect(dueFor(headOf([10], [fact, notes]), 'thread')).toEqual([{ kind: 'reextractFacts', last: 0 }])
  })
})
