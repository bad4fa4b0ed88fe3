import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Role, SequenceRange } from '../../src/domain/entry.ts'
import { isInRanges } from '../../src/domain/session.ts'
import { initialParameters } from '../../src/upkeep/optimizer/optimizer.ts'
import type { TriageMessage } from '../../src/upkeep/optimizer/triage.ts'
import { type TriageActions, type TriageMarks, triage } from '../../src/upkeep/optimizer/triage.ts'
import { addToRuns } from '../../src/upkeep/runs.ts'
import { verifies } from '../requirements/verifies.ts'

const hour = 3_600_000
const now = 1_000_000 * hour
const message = (sequence: number, content: string, role: Role = 'user', hours = 0): TriageMessage => ({
  sequence,
  content,
  role,
  at: now - hours * hour,
})
const noMarks: TriageMarks = { compressed: [], dropped: [], promoted: [] }
const noActions: TriageActions = { compress: [], drop: [], promote: [] }

describe('triage with the initial parameters', () => {
  const actions = (entries: readonly TriageMessage[], marks: Partial<TriageMarks> = {}) =>
    triage(entries, { ...noMarks, ...marks }, initialParameters, now)

  verifies('A-08', 'compresses messages of low relevance: small talk at once, other short messages after a day', () => {
    expect(
      actions([
        message(1, 'ok'),
        message(2, 'navigating...', 'assistant'),
        message(3, 'loading the page', 'assistant', 25),
      ]),
    ).toEqual({
      ...noActions,
      compress: [1, 3],
    })
  })

  verifies('A-08', 'drops messages of low relevance that were compressed before', () => {
    const entries = [message(1, 'ok'), message(2, 'thanks')]
    expect(actions(entries, { compressed: [[1, 1]] })).toEqual({ ...noActions, compress: [2], drop: [1] })
    expect(actions(entries, { compressed: [[1, 2]], dropped: [[1, 1]] })).toEqual({ ...noActions, drop: [2] })
    expect(actions(entries, { compressed: [[1, 2]], dropped: [[1, 2]] })).toEqual(noActions)
  })

  verifies(
    'A-07',
    'compresses the older of two messages that share nine tenths of their words, and not of less',
    () => {
      const steps = (count: number) =>
        `The shop order ${Array.from({ length: count }, (_, at) => `step${at}`).join(' ')}`
      expect(actions([message(1, steps(15)), message(2, steps(17))]).compress).toEqual([1])
      expect(actions([message(1, steps(14)), message(2, steps(17))]).compress).toEqual([])
    },
  )

  verifies(
    'A-08',
    'promotes highly relevant messages with key facts: a new URL or selector, a failed tool call of the day',
    () => {
      const entries = [
        message(1, 'The shop is at https://example.com/cart now.'),
        message(2, 'The selector of the form has changed again.'),
        message(3, 'Navigation failed: timeout after 30 seconds', 'tool', 5),
        message(4, 'It is important and critical to be friendly.'),
        message(5, 'The shop was at https://example.com/basket before.', 'user', 30),
      ]
      expect(actions(entries)).toEqual({ ...noActions, promote: [1, 2, 3] })
    },
  )

  verifies('A-08', 'promotes a message once', () => {
    const entries = [
      message(1, 'The shop is at https://example.com/cart now.'),
      message(2, 'The blog is at https://example.com/blog here.'),
    ]
    expect(actions(entries, { promoted: [[1, 1]] })).toEqual({ ...noActions, promote: [2] })
  })

  verifies('A-07', 'compresses the older of two similar messages once, and promotes only the newer one', () => {
    const entries = [
      message(1, 'GET https://example.com answers 200', 'tool', 3),
      message(2, 'Fine weather all day long'),
      message(3, 'get https://example.com answers 200', 'tool'),
    ]
    expect(actions(entries)).toEqual({ compress: [1], drop: [], promote: [3] })
    expect(actions(entries, { compressed: [[1, 1]], promoted: [[3, 3]] })).toEqual(noActions)
  })

  it('ignores hidden messages when looking for duplicates', () => {
    const entries = [message(1, 'Fine weather all day long'), message(2, 'fine weather all day long')]
    expect(actions(entries)).toEqual({ ...noActions, compress: [1] })
    expect(actions(entries, { compressed: [[2, 2]], dropped: [[2, 2]] })).toEqual(noActions)
  })

  it('orders by sequence number, not by input order', () => {
    const entries = [message(9, 'fine weather all day long'), message(4, 'ok'), message(2, 'Fine weather all day long')]
    expect(actions(entries)).toEqual({ ...noActions, compress: [2, 4] })
    expect(entries.map(({ sequence }) => sequence)).toEqual([9, 4, 2])
  })

  it('without messages returns no actions', () => expect(actions([])).toEqual(noActions))
})

describe('triage', () => {
  verifies(['A-08', 'A-10'], 'uses the minimum relevance of the optimizer', () => {
    const entries = [
      message(1, 'no'),
      message(2, 'We looked at the draft together.'),
      message(3, 'We looked at the list together.', 'user', 30),
    ]
    const below = (minRelevance: number) => triage(entries, noMarks, { minRelevance }, now).compress
    expect([0.15, 0.3, 0.4, 0.45, 0.7].map(below)).toEqual([[], [1], [1], [1, 3], [1, 3]])
  })

  verifies('A-08', 'leaves promoted messages unchanged, regardless of age and minimum relevance', () => {
    const old = message(1, 'The shop is at https://example.com/cart now.', 'user', 9_000)
    expect(triage([old], noMarks, { minRelevance: 0.7 }, now)).toEqual({ ...noActions, compress: [1] })
    expect(triage([old], { ...noMarks, promoted: [[1, 1]] }, { minRelevance: 0.7 }, now)).toEqual(noActions)
  })

  it('returns each message at most once, and noActions after three runs', () => {
    const contents = fc.constantFrom(
      'ok',
      'no',
      'Fine weather all day long',
      'see https://example.com/a',
      'see https://example.com/b',
      'an error',
      '',
      'password',
    )
    const given = fc.array(fc.tuple(contents, fc.nat(50)), { maxLength: 30 })
    fc.assert(
      fc.property(given, fc.double({ min: 0.15, max: 0.7, noNaN: true }), (all, minRelevance) => {
        const entries = all.map(([content, hours], at) => message(at + 1, content, 'user', hours))
        let marks = noMarks
        for (let run = 0; run < 4; run++) {
          const { compress, drop, promote } = triage(entries, marks, { minRelevance }, now)
          const named = [...compress, ...drop, ...promote]
          expect(new Set(named).size).toBe(named.length)
          if (run === 3) expect(named).toEqual([])
          marks = {
            compressed: addToRuns(marks.compressed, compress),
            dropped: addToRuns(marks.dropped, drop),
            promoted: addToRuns(marks.promoted, promote),
          }
        }
      }),
    )
  })
})

describe('addToRuns', () => {
  it('joins adjacent runs in order, also with numbers already included', () => {
    expect(addToRuns([], [])).toEqual([])
    expect(addToRuns([], [5, 3, 4, 9])).toEqual([
      [3, 5],
      [9, 9],
    ])
    const runs: readonly SequenceRange[] = [
      [2, 3],
      [5, 8],
    ]
    expect(addToRuns(runs, [4])).toEqual([[2, 8]])
    expect(addToRuns(runs, [6, 3])).toEqual(runs)
    expect(runs).toEqual([
      [2, 3],
      [5, 8],
    ])
  })

  it('contains the same numbers as a set', () => {
    const numbers = fc.array(fc.integer({ min: 1, max: 40 }))
    fc.assert(
      fc.property(numbers, numbers, (first, second) => {
        const runs = addToRuns(addToRuns([], first), second)
        const marked = new Set([...first, ...second])
        for (let sequence = 0; sequence <= 41; sequence++) expect(isInRanges(runs, sequence)).toBe(marked.has(sequence))
        for (const [at, [from]] of runs.entries())
          if (at > 0) expect(from).toBeGreaterThan((runs[at - 1] as SequenceRange)[1] + 1)
      }),
    )
  })
})
