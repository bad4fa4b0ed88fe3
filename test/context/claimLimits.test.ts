import { describe, expect, it } from 'vitest'
import { sortBySequence } from '../../src/context/allocation.ts'
import {
  type ClaimInput,
  claimLimitOf,
  findNotes,
  isFullyExcluded,
  type MutableBandCandidates,
  measurePressure,
  upToMessages,
} from '../../src/context/claimLimits.ts'
import type { Unit } from '../../src/context/render.ts'
import type { UpkeepNotes } from '../../src/domain/entry.ts'
import type { Profile, Tail } from '../../src/domain/profile.ts'
import { verifies } from '../requirements/verifies.ts'
import {
  candidatesOf,
  createBand,
  createMessage,
  createSummary,
  createUnit,
  headOf,
  noPressure,
} from './allocatorHarness.ts'

/** Ten messages of ten tokens each; their offsets are 0 to 90. */
const messages = Array.from({ length: 10 }, (_, at) => createMessage(at + 1, 10, { offset: 10 * at }))
const head = headOf(messages)
const newestFirst: readonly Unit[] = messages.map((message) => ({ messages: [message], fault: undefined })).toReversed()

const tail: Tail = {
  low: 0.3,
  high: 0.5,
  keepAll: 0.8,
  smallBudget: { budget: 60, question: 0.2, statement: 0.4, otherwise: 0.6 },
}
type Claim = Parameters<typeof claimLimitOf>[1]

/** Numbers of the messages that a claim selects, and what it sets. */
function claim(by: Claim, input: Partial<ClaimInput> = {}, renderings = [{ as: 'whole' as const }], from = head) {
  const candidates: MutableBandCandidates = candidatesOf(createBand('band', by, { renderings }), [])
  const budget = input.budget ?? 100
  const full = { derived: [], messageBudget: budget, pressure: noPressure, question: '', ...input, budget }
  const { accepts, after = 0, skips = () => false } = claimLimitOf(candidates, by, from, full)
  const taken: number[] = []
  for (const unit of newestFirst) {
    const sequence = unit.messages[0]?.sequence ?? 0
    if (sequence <= after || !accepts(unit)) break
    if (!skips(unit)) taken.push(sequence)
  }
  return { taken, candidates }
}

describe('a claim on the newest messages', () => {
  it('by number › takes that many, or as many as the optimizer has tuned', () => {
    expect(claim({ last: 3 }).taken).toEqual([10, 9, 8])
    expect(claim({ last: 3 }, { pressure: { ...noPressure, window: 2 } }).taken).toEqual([10, 9])
    const pair: Unit = { messages: messages.slice(0, 2), fault: undefined }
    const accepts = upToMessages(3)
    expect([accepts(pair), accepts(pair), accepts(pair)]).toEqual([true, true, false])
  })

  it('by tokens › takes as many as fit, and at least one', () => {
    expect(claim({ lastTokens: 30 }).taken).toEqual([10, 9, 8])
    expect(claim({ lastTokens: 39 }).taken).toEqual([10, 9, 8])
    expect(claim({ lastTokens: 5 }).taken).toEqual([10])
  })

  it('that no summary covers › ends where the summaries end', () => {
    const derived = [{ ...createSummary('s1', 1), covers: [1, 8] as const }]
    expect(claim({ last: 5, uncovered: true }, { derived }).taken).toEqual([10, 9])
    expect(claim({ last: 5 }, { derived }).taken).toEqual([10, 9, 8, 7, 6])
    expect(claim({ lastTokens: 50, uncovered: true }, { derived }).taken).toEqual([10, 9])
  })
})

describe('a tail', () => {
  verifies('X-11', 'takes everything while the history stays within its share', () => {
    const { taken, candidates } = claim({ tail }, { budget: 125 })
    expect([taken.length, candidates.limit]).toEqual([10, 125])
    expect(claim({ tail }, { budget: 124 }).taken).toHaveLength(5)
    expect(claim({ tail }, { budget: 200, messageBudget: 124 }).taken).toHaveLength(5)
    expect(claim({ tail }, {}, undefined, headOf([])).candidates.limit).toBe(100)
  })

  verifies('X-11', 'starts at a multiple of a fixed step, so that it moves rarely', () => {
    // Low 30, step 20: a history of 100 tokens starts at 60, one of 90 at 60, one of 80 at 40.
    const starts = [100, 90, 80, 70].map((total) => {
      const newest = createMessage(99, 10, { offset: total - 10 })
      const { taken } = claim({ tail: { ...tail, keepAll: 0 } }, {}, undefined, headOf([newest]))
      return taken.at(-1)
    })
    expect(starts).toEqual([7, 7, 5, 5])
    const short = headOf([createMessage(99, 10, { offset: 10 })])
    expect(claim({ tail: { ...tail, keepAll: 0 } }, {}, undefined, short).taken).toHaveLength(10)
    const equal = { ...tail, keepAll: 0, low: 0.3, high: 0.3 }
    expect(claim({ tail: equal }, {}).taken).toEqual([10, 9, 8])
  })

  verifies('K-02', 'of a small budget › is a share that depends on what the newest turn asks', () => {
    const limitFor = (question: string, budget = 60) => claim({ tail }, { budget, question }).candidates.limit
    expect(limitFor('What is my cat called?')).toBe(12)
    expect(limitFor('My cat Miso likes grilled salmon')).toBe(24)
    expect(limitFor('cat Miso likes salmon')).toBe(24)
    expect(limitFor('Go on please.')).toBe(36)
    expect(limitFor('What is my cat called?', 61)).toBe(61)
  })

  verifies('K-02', 'of a small budget › includes the message at its start, which can be shortened', () => {
    const share = (question: number) => ({ tail: { ...tail, smallBudget: { ...tail.smallBudget, question } } })
    expect(claim(share(0.25), { budget: 60, question: 'Who?' }).taken).toEqual([10, 9])
    expect(claim(share(1 / 3), { budget: 60, question: 'Who?' }).taken).toEqual([10, 9])
    expect(claim(share(0.35), { budget: 60, question: 'Who?' }).taken).toEqual([10, 9, 8])
  })
})

describe('a claim on the rest', () => {
  const taken = (renderings: Parameters<typeof claim>[2], input: Partial<ClaimInput> = {}) =>
    claim({ rest: true }, { budget: 36, ...input }, renderings).taken.length

  verifies('A-05', 'takes as many messages as could fit in their shortest form', () => {
    const as = <T extends object>(...steps: readonly T[]) => steps as unknown as { as: 'whole' }[]
    expect(taken(as({ as: 'whole' }))).toBe(4)
    expect(taken(as({ as: 'squeeze' }))).toBe(8)
    expect(taken(as({ as: 'whole' }, { as: 'squeeze' }))).toBe(8)
    expect(taken(as({ as: 'clip', characters: 64 }))).toBe(5)
    expect(taken(as({ as: 'clip', characters: 800 }))).toBe(4)
    expect(taken(as({ as: 'clip', characters: 8 }))).toBe(10)
    for (const name of ['fit', 'digest', 'sections']) expect(taken(as({ as: name }))).toBe(4)
    const long = newestFirst[0] as Unit
    const { accepts } = claimLimitOf(
      candidatesOf(createBand('rest', { rest: true }, { renderings: [{ as: 'fit' }] }), []),
      { rest: true },
      head,
      { derived: [], budget: 76, messageBudget: 76, pressure: noPressure, question: '' },
    )
    const large = { ...long, messages: [createMessage(1, 500)] }
    expect([accepts(large), accepts(large), accepts(large)]).toEqual([true, true, false])
  })

  verifies('A-08', 'passes over dropped messages and remembers the compressed ones', () => {
    const pressure = { ...noPressure, dropped: [[9, 10]] as const, compressed: [[3, 4]] as const }
    const { taken: numbers, candidates } = claim({ rest: true }, { budget: 36, pressure })
    expect([numbers, candidates.shortenedRuns]).toEqual([[8, 7, 6, 5], [[3, 4]]])
  })
})

describe('isFullyExcluded', () => {
  verifies('A-08', 'ignores tool calls without text, which mean nothing without their results', () => {
    const [call, result] = [createMessage(1, 1, { content: ' ' }), createMessage(2, 5)]
    const excludes = (unit: readonly (typeof call)[], ...sequences: readonly number[]) =>
      isFullyExcluded({ messages: unit, fault: undefined }, ({ sequence }) => sequences.includes(sequence))
    expect([excludes([call, result], 2), excludes([call, result], 1), excludes([call], 1)]).toEqual([
      true,
      false,
      false,
    ])
    expect(excludes([result, createMessage(3, 5)], 2)).toBe(false)
  })
})

describe('measurePressure', () => {
  const profile = (more: Partial<Profile> = {}): Profile =>
    ({ upkeep: [{ when: { usage: 1 }, do: { optimise: 'session' } }], upkeepAt: 0.5, ...more }) as Profile
  const triage = { compressed: [[1, 1]], dropped: [[2, 2]], promoted: [[3, 3]] } as const
  const notes = (trigger: number): UpkeepNotes =>
    ({
      kind: 'notes',
      id: 'notes',
      at: 1,
      sources: [],
      triage,
      tuning: { parameters: { trigger, window: 7 } },
    }) as unknown as UpkeepNotes
  const measure = (budget: number, with_: readonly UpkeepNotes[], used = profile()) =>
    measurePressure({ ...head, derived: [createSummary('s1', 1), ...with_] }, used, budget)

  verifies('A-08', 'applies the marks of the optimizer once the history reaches the trigger', () => {
    expect(measure(125, [notes(0.8)])).toEqual({ window: 7, history: 100, due: true, ...triage })
    expect(measure(126, [notes(0.8)])).toEqual({ ...noPressure, window: 7, history: 100 })
    expect(measure(200, [])).toEqual({ ...noPressure, history: 100, due: true })
    expect(measure(201, [])).toEqual({ ...noPressure, history: 100 })
    expect(measure(1, [], profile({ upkeepAt: undefined as never })).due).toBe(false)
  })

  verifies('A-08', 'uses the trigger of the profile until the optimizer has tuned one, beside any other rules', () => {
    const { tuning: _, ...untuned } = notes(0.8)
    const [rule] = profile().upkeep
    const both = profile({ upkeep: [{ when: { usage: 1 }, do: { age: 'knowledge' } }, ...(rule ? [rule] : [])] })
    expect(measure(200, [untuned], both)).toEqual({ window: undefined, history: 100, due: true, ...triage })
    expect(measure(201, [untuned], both)).toEqual({ ...noPressure, history: 100 })
  })

  verifies('A-08', 'ignores the marks in a profile without an optimizer', () => {
    const other = profile({ upkeep: [{ when: { usage: 1 }, do: { age: 'knowledge' } }] })
    expect(measure(125, [notes(0.8)], other)).toEqual({ ...noPressure, history: 100, due: true })
    expect(measurePressure(headOf([]), profile(), 100)).toEqual(noPressure)
    expect([findNotes([createSummary('s1', 1)]), findNotes([createSummary('s1', 1), notes(1)])?.id]).toEqual([
      undefined,
      'notes',
    ])
  })
})

describe('sortBySequence', () => {
  verifies('X-01', 'puts pieces into conversation order, however they were added', () => {
    const sorted = (...sequences: readonly number[]) =>
      sortBySequence(sequences.map((sequence) => ({ unit: createUnit(sequence, 1) })) as never).map(
        ({ unit }) => unit.messages[0]?.sequence,
      )
    expect([sorted(3, 2, 1), sorted(1, 2, 3), sorted(2, 3, 1), sorted(5), sorted()]).toEqual([
      [1, 2, 3],
      [1, 2, 3],
      [1, 2, 3],
      [5],
      [],
    ])
  })
})
