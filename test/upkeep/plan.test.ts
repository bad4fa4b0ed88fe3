import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Derived, Message, Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { emptyHead, type Head } from '../../src/domain/session.ts'
import { profiles } from '../../src/profiles/index.ts'
import { plan, quietOf } from '../../src/upkeep/plan.ts'
import { verifies } from '../requirements/verifies.ts'

const key = parseKey('acme:ann')
const hour = 3_600_000
const start = Date.UTC(2026, 0, 1, 12)
const price = (entry: Derived): number => (entry.kind === 'summary' ? entry.text.length : 20)

/** A session after messages of these weights, a minute apart. */
function headOf(weights: readonly number[], derived: readonly Derived[] = []): Head {
  let offset = 0
  const messages = weights.map((weight, place): Message => {
    const message: Message = {
      kind: 'message',
      id: `m${place + 1}`,
      sequence: place + 1,
      role: place % 2 === 0 ? 'user' : 'assistant',
      content: 'x',
      at: start + place * 60_000,
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
    ...emptyHead(key, 0),
    revision: last,
    startedAt: start,
    touchedAt: start + last * 60_000,
    messages: last,
    last,
    recent: messages.slice(-1),
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
  reach,
  version: 1,
  by: 'builtin',
  sources: [],
  lost: [],
})

const circumstances = (now = start, budget = 3_000) => ({ now, budget, price })
const dueFor = (head: Head, name: 'summary' | 'support' | 'thread', now = start) =>
  plan(head, profiles[name], 'said', circumstances(now, profiles[name].budget))

describe('what is due', () => {
  verifies('C-02', 'is a summary once the prompt passes 3,000 tokens, and not before', () => {
    expect(dueFor(headOf([1_500, 1_500]), 'summary')).toEqual([])
    expect(dueFor(headOf([1_500, 1_501]), 'summary')).toMatchObject([
      { do: 'compact', previous: undefined, until: 2_501 },
    ])
  })

  verifies('C-02', 'counts what was said since the last summary, not the whole history', () => {
    const since = [summary([1, 2], 3_000)]
    expect(dueFor(headOf([1_500, 1_500, 2_900], since), 'summary')).toEqual([])
    expect(dueFor(headOf([1_500, 1_500, 3_000], since), 'summary')).toMatchObject([
      { do: 'compact', previous: { id: 'summary' }, until: 5_500 },
    ])
  })

  verifies('T-04', 'is a batch of 20 as soon as the 30 newest messages lie after it', () => {
    const said = (many: number) => headOf(Array.from({ length: many }, () => 10))
    expect(dueFor(said(49), 'support')).toEqual([])
    expect(dueFor(said(50), 'support')).toMatchObject([{ do: 'hour', after: 0 }])
  })

  verifies('T-04', 'are hours once a whole day has passed since their end', () => {
    const id = `hour${Math.floor(start / hour)}`
    const head = headOf([10, 10], [summary([1, 2], 20, 'hour', id)])
    const end = (Math.floor(start / hour) + 1) * hour
    expect(dueFor(head, 'support', end + 24 * hour - 1)).toEqual([])
    expect(dueFor(head, 'support', end + 24 * hour)).toMatchObject([{ do: 'session', hours: [{ id }] }])
  })

  it('is never missed because a session was thought to be quiet', () => {
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
      const terms = circumstances(start, profiles[name].budget)
      for (let many = Math.max(1, end); many <= weights.length; many++) {
        const before = headOf(weights.slice(0, many), derived)
        if (plan(before, profiles[name], 'said', terms).length > 0) return
        const quiet = quietOf(before, profiles[name], terms)
        const after = headOf(weights.slice(0, many + 1), derived)
        const [newest] = after.recent as [Message]
        const now = start + later
        const isQuiet =
          newest.offset + newest.weight <= quiet.weight && newest.sequence < quiet.sequence && now < quiet.until
        if (isQuiet) expect(plan(after, profiles[name], 'said', { ...terms, now })).toEqual([])
      }
    }
    fc.assert(fc.property(cases, check), { numRuns: 300 })
  })

  it('are facts of which some are missing', () => {
    const fact: Derived = {
      kind: 'fact',
      id: 'f1',
      at: start,
      field: 'entities',
      key: '',
      value: 'Oslo',
      importance: 3,
      sources: [],
    }
    const notes: Derived = { kind: 'notes', id: 'notes', at: start, facts: 2, sources: [] }
    expect(dueFor(headOf([10], [fact, { ...fact, id: 'f2' }, notes]), 'thread')).toEqual([])
    expect(dueFor(headOf([10], [fact, notes]), 'thread')).toEqual([{ do: 'refind', until: 0 }])
  })
})
