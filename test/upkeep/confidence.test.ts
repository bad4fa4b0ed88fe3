import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import {
  applyAging,
  type ConfidenceState,
  isFaded,
  recordMention,
  recordUse,
  restoreKnowledge,
} from '../../src/upkeep/confidence.ts'
import { verifies } from '../requirements/verifies.ts'

const day = 24 * 3_600_000
const start = 1_000 * day
const knowledge = (confidence: number): ConfidenceState => ({
  confidence,
  at: start,
  usedAt: start,
  origin: 'learned',
})
const times = (
  count: number,
  of: ConfidenceState,
  step: (knowledge: ConfidenceState, at: number) => ConfidenceState,
): ConfidenceState => Array.from({ length: count }).reduce<ConfidenceState>((before, _, at) => step(before, at), of)

describe('recordMention', () => {
  verifies('A-03', 'for new knowledge sets confidence 0.5, or the given one', () => {
    expect(recordMention(undefined, { at: start })).toEqual({ confidence: 0.5, at: start, usedAt: start })
    expect(recordMention(undefined, { at: start, session: 's1' })).toEqual({
      confidence: 0.5,
      at: start,
      usedAt: start,
      statedBy: ['s1'],
    })
    expect(recordMention(undefined, { at: start, confidence: 0.123 }).confidence).toBe(0.123)
  })

  verifies('A-03', 'for knowledge knowledge adds 0.1, up to 1', () => {
    const again = (count: number) =>
      times(count, knowledge(0.5), (before) => recordMention(before, { at: start })).confidence
    expect([0, 1, 2, 3, 4, 5, 6, 1_000].map(again)).toEqual([0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1])
  })

  verifies('A-03', 'with a repeated session counts it once', () => {
    const first = recordMention(undefined, { at: start, session: 'loop' })
    expect(times(1_000, first, (before) => recordMention(before, { at: start, session: 'loop' })).confidence).toBe(0.5)
    const second = times(1_000, first, (before) => recordMention(before, { at: start, session: 'other' }))
    expect(second).toEqual({ confidence: 0.6, at: start, usedAt: start, statedBy: ['loop', 'other'] })
  })

  it('with an explicit confidence uses it, from any session', () => {
    const before = recordMention(undefined, { at: start, session: 's1' })
    expect(recordMention(before, { at: start, session: 's1', confidence: 0.25 }).confidence).toBe(0.25)
    expect(recordMention(before, { at: start, confidence: 0 }).confidence).toBe(0)
  })

  it('keeps the last 16 sessions, so that a repeating session still counts once', () => {
    const among = times(40, recordMention(undefined, { at: start, session: 'loop', confidence: 0 }), (before, at) =>
      recordMention(recordMention(before, { at: start, session: 'loop' }), {
        at: start,
        session: `s${at}`,
        confidence: 0,
      }),
    )
    expect(among.statedBy).toEqual([...Array.from({ length: 14 }, (_, at) => `s${25 + at}`), 'loop', 's39'])
    expect(recordMention(among, { at: start, session: 'loop' }).confidence).toBe(0)
    expect(recordMention(among, { at: start, session: 's0' }).confidence).toBe(0.1)
  })

  it('keeps the sessions and the time of use', () => {
    const before = recordUse(knowledge(0.5), { session: 's1', at: start + day })
    expect(recordMention(before, { at: start + 2 * day })).toEqual({
      confidence: 0.65,
      at: start + 2 * day,
      usedAt: start + day,
      usedBy: ['s1'],
    })
  })
})

describe('recordUse', () => {
  verifies('A-03', 'adds 0.05 per session, up to 1', () => {
    const by = (count: number) =>
      times(count, knowledge(0.5), (before, at) => recordUse(before, { session: `s${at}`, at: start })).confidence
    expect([1, 2, 3, 9, 10, 11].map(by)).toEqual([0.55, 0.6, 0.65, 0.95, 1, 1])
  })

  verifies('A-03', 'with a repeated session changes only the time of the last use', () => {
    const once = recordUse(knowledge(0.5), { session: 's1', at: start + day })
    const often = times(1_000, once, (before, at) => recordUse(before, { session: 's1', at: start + day + at }))
    expect(often).toEqual({
      confidence: 0.55,
      at: start,
      usedAt: start + day + 999,
      usedBy: ['s1'],
      origin: 'learned',
    })
  })

  it('recorded out of order keeps the latest time', () => {
    expect(
      recordUse(recordUse(knowledge(0.5), { session: 's1', at: start + 9 }), { session: 's2', at: start + 3 }).usedAt,
    ).toBe(start + 9)
  })

  it('keeps all other fields, and 16 sessions', () => {
    const entry = { ...knowledge(0), key: 'theme' }
    expect(recordUse(entry, { session: 's', at: start }).key).toBe('theme')
    const sessions = times(20, entry, (before, at) => recordUse(before, { session: `s${at}`, at: start })).usedBy
    expect(sessions).toEqual(Array.from({ length: 16 }, (_, at) => `s${at + 4}`))
  })
})

describe('applyAging', () => {
  const idleFor = (days: number, of = knowledge(0.5)) => applyAging(of, start + days * day)

  verifies('A-03', 'subtracts 0.1 per 30 idle days', () => {
    expect([29.9, 30, 59, 60, 120, 150, 3_000].map((days) => idleFor(days).confidence)).toEqual([
      0.5, 0.4, 0.4, 0.3, 0.1, 0, 0,
    ])
    expect(idleFor(65)).toEqual({ ...knowledge(0.3), agedAt: start + 60 * day })
  })

  it('without a change returns the same object', () => {
    const entry = knowledge(0.5)
    expect(idleFor(29, entry)).toBe(entry)
    expect(idleFor(-400, entry)).toBe(entry)
    const once = idleFor(31, entry)
    expect(idleFor(59, once)).toBe(once)
  })

  verifies('A-03', 'counts from the last use or mention', () => {
    const later = recordUse(idleFor(45), { session: 's1', at: start + 50 * day })
    expect(later.confidence).toBe(0.45)
    expect(idleFor(79, later).confidence).toBe(0.45)
    expect(idleFor(80, later).confidence).toBe(0.35)
    const again: ConfidenceState = {
      ...recordMention(idleFor(45), { at: start + 50 * day }),
      origin: 'learned',
    }
    expect([79, 80].map((days) => idleFor(days, again).confidence)).toEqual([0.5, 0.4])
  })

  verifies('A-03', 'knowledge below 0.1 has faded', () => {
    expect([0, 0.05, 0.09, 0.1, 0.5, 0.5 - 4 * 0.1].map((confidence) => isFaded(knowledge(confidence)))).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ])
    expect([120, 150].map((days) => isFaded(idleFor(days)))).toEqual([false, true])
  })

  verifies('K-01', "never lowers an operator's statement, also one of a version that stored no origin", () => {
    const { origin: _, ...legacy } = knowledge(0.5)
    const entries = [
      { ...legacy, origin: 'operator' as const, sources: [{ message: '', session: 'ann' }] },
      { ...legacy, sources: [{ message: '', session: '' }] },
      { ...legacy, sources: [] },
    ]
    expect(entries.map((entry) => idleFor(4_000, entry).confidence)).toEqual([0.5, 0.5, 0.5])
    expect(idleFor(4_000, { ...legacy, sources: [{ message: '', session: 'ann' }] }).confidence).toBe(0)
    expect(isFaded({ ...legacy, confidence: 0 })).toBe(false)
  })

  verifies('K-01', 'what has faded begins anew when it is mentioned again, whether it was swept or not', () => {
    const later = start + 400 * day
    const expected = { confidence: 0.5, at: later, usedAt: later, statedBy: ['s2'] }
    expect(recordMention(knowledge(0.5), { at: later, session: 's2' })).toEqual(expected)
    expect(recordMention(idleFor(400), { at: later, session: 's2' })).toEqual(expected)
  })

  verifies('A-03', 'gives the same result whether it runs daily, monthly, yearly or only when needed', () => {
    const event = fc.record({
      day: fc.nat(360),
      kind: fc.constantFrom('tell', 'use'),
      session: fc.constantFrom('s1', 's2', 's3'),
    })
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.array(event, { maxLength: 6 }),
        (confidence, events) => {
          const sweptEvery = (days: number): number => {
            let entry = knowledge(confidence)
            for (let today = 0; today <= 365; today++) {
              const at = start + today * day
              for (const { kind, session } of events.filter((some) => some.day === today))
                entry = { ...(kind === 'tell' ? recordMention : recordUse)(entry, { session, at }), origin: 'learned' }
              if (today % days === 0) entry = applyAging(entry, at)
            }
            return applyAging(entry, start + 365 * day).confidence
          }
          expect([sweptEvery(1), sweptEvery(7), sweptEvery(31), sweptEvery(365)]).toEqual(
            Array.from({ length: 4 }, () => sweptEvery(1_000)),
          )
        },
      ),
    )
  })
})

describe('restoreKnowledge', () => {
  it('returns archived knowledge with the confidence of a new statement, and other knowledge as it is', () => {
    const entry = { kind: 'knowledge', id: 'k1', category: 'domain', key: 'hours', value: 'nine', sources: [] } as const
    const known = { ...entry, ...knowledge(0), agedAt: start, sources: entry.sources }
    expect(restoreKnowledge({ ...known, archived: true }, start + day)).toEqual({
      ...entry,
      ...knowledge(0.5),
      usedAt: start + day,
    })
    expect(restoreKnowledge(known, start + day)).toBe(known)
  })
})

describe('ageKnowledge', () => {
  verifies('A-03', 'after a sweep with a clock one year ahead still ages on time', async () => {
    let now = 0
    await using memory = await openMemory({ clock: () => now })
    await memory.sweep(365 * day)
    await memory.remember('acme', { category: 'domain', key: 'hours', value: 'nine to five', session: 'ann' })
    now = 30 * day
    await memory.sweep(now)
    expect((await memory.upkeep.knowledge('acme')).map(({ confidence }) => confidence)).toEqual([0.4])
  })
})
