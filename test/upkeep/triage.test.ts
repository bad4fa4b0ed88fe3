import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Role, Run } from '../../src/domain/entry.ts'
import { isWithin } from '../../src/domain/session.ts'
import type { Judged } from '../../src/upkeep/relevance.ts'
import { type Actions, type Marks, triage, withMarks } from '../../src/upkeep/triage.ts'
import { initial } from '../../src/upkeep/tune.ts'
import { verifies } from '../requirements/verifies.ts'

const hour = 3_600_000
const now = 1_000_000 * hour
const entry = (sequence: number, content: string, role: Role = 'user', hours = 0): Judged => ({
  sequence,
  content,
  role,
  at: now - hours * hour,
})
const unmarked: Marks = { compressed: [], dropped: [], promoted: [] }
const nothing: Actions = { compress: [], drop: [], promote: [] }

describe('triage with the parameters a session starts with', () => {
  const actions = (entries: readonly Judged[], marks: Partial<Marks> = {}) =>
    triage(entries, { ...unmarked, ...marks }, initial, now)

  verifies('A-08', 'compresses what is of little relevance: small talk at once, other short words after a day', () => {
    expect(
      actions([entry(1, 'ok'), entry(2, 'navigating...', 'assistant'), entry(3, 'loading the page', 'assistant', 25)]),
    ).toEqual({
      ...nothing,
      compress: [1, 3],
    })
  })

  verifies('A-08', 'drops what is of little relevance once an earlier run has compressed it', () => {
    const entries = [entry(1, 'ok'), entry(2, 'thanks')]
    expect(actions(entries, { compressed: [[1, 1]] })).toEqual({ ...nothing, compress: [2], drop: [1] })
    expect(actions(entries, { compressed: [[1, 2]], dropped: [[1, 1]] })).toEqual({ ...nothing, drop: [2] })
    expect(actions(entries, { compressed: [[1, 2]], dropped: [[1, 2]] })).toEqual(nothing)
  })

  verifies(
    'A-08',
    'promotes what is highly relevant and holds key facts: a URL or a selector that is new, a failed tool call of the day',
    () => {
      const entries = [
        entry(1, 'The shop is at https://example.com/cart now.'),
        entry(2, 'The selector of the form has changed again.'),
        entry(3, 'Navigation failed: timeout after 30 seconds', 'tool', 5),
        entry(4, 'It is important and critical to be friendly.'),
        entry(5, 'The shop was at https://example.com/basket before.', 'user', 30),
      ]
      expect(actions(entries)).toEqual({ ...nothing, promote: [1, 2, 3] })
    },
  )

  verifies('A-08', 'promotes an entry once', () => {
    const entries = [
      entry(1, 'The shop is at https://example.com/cart now.'),
      entry(2, 'The blog is at https://example.com/blog here.'),
    ]
    expect(actions(entries, { promoted: [[1, 1]] })).toEqual({ ...nothing, promote: [2] })
  })

  verifies(
    'A-07',
    'compresses the older of two entries that say the same, once, and promotes the newer one only',
    () => {
      const entries = [
        entry(1, 'GET https://example.com answers 200', 'tool', 3),
        entry(2, 'Fine weather all day long'),
        entry(3, 'get https://example.com answers 200', 'tool'),
      ]
      expect(actions(entries)).toEqual({ compress: [1], drop: [], promote: [3] })
      expect(actions(entries, { compressed: [[1, 1]], promoted: [[3, 3]] })).toEqual(nothing)
    },
  )

  it('takes nothing for redundant because of an entry that is not shown', () => {
    const entries = [entry(1, 'Fine weather all day long'), entry(2, 'fine weather all day long')]
    expect(actions(entries)).toEqual({ ...nothing, compress: [1] })
    expect(actions(entries, { compressed: [[2, 2]], dropped: [[2, 2]] })).toEqual(nothing)
  })

  it('goes by sequence numbers, in whichever order the entries are given', () => {
    const entries = [entry(9, 'fine weather all day long'), entry(4, 'ok'), entry(2, 'Fine weather all day long')]
    expect(actions(entries)).toEqual({ ...nothing, compress: [2, 4] })
    expect(entries.map(({ sequence }) => sequence)).toEqual([9, 4, 2])
  })

  it('has nothing to do about nothing', () => expect(actions([])).toEqual(nothing))
})

describe('triage', () => {
  verifies(['A-08', 'A-10'], 'goes by the relevance the optimizer asks for', () => {
    const entries = [
      entry(1, 'no'),
      entry(2, 'We looked at the draft together.'),
      entry(3, 'We looked at the list together.', 'user', 30),
    ]
    const below = (minRelevance: number) => triage(entries, unmarked, { minRelevance }, now).compress
    expect([0.15, 0.3, 0.4, 0.45, 0.7].map(below)).toEqual([[], [1], [1], [1, 3], [1, 3]])
  })

  verifies('A-08', 'leaves what was promoted as it is, however old it gets and strict the optimizer', () => {
    const old = entry(1, 'The shop is at https://example.com/cart now.', 'user', 9_000)
    expect(triage([old], unmarked, { minRelevance: 0.7 }, now)).toEqual({ ...nothing, compress: [1] })
    expect(triage([old], { ...unmarked, promoted: [[1, 1]] }, { minRelevance: 0.7 }, now)).toEqual(nothing)
  })

  it('names each entry once at most, and has nothing left to do after three runs', () => {
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
        const entries = all.map(([content, hours], at) => entry(at + 1, content, 'user', hours))
        let marks = unmarked
        for (let run = 0; run < 4; run++) {
          const { compress, drop, promote } = triage(entries, marks, { minRelevance }, now)
          const named = [...compress, ...drop, ...promote]
          expect(new Set(named).size).toBe(named.length)
          if (run === 3) expect(named).toEqual([])
          marks = {
            compressed: withMarks(marks.compressed, compress),
            dropped: withMarks(marks.dropped, drop),
            promoted: withMarks(marks.promoted, promote),
          }
        }
      }),
    )
  })
})

describe('marks', () => {
  it('join with their neighbours, in order, and may be there already', () => {
    expect(withMarks([], [])).toEqual([])
    expect(withMarks([], [5, 3, 4, 9])).toEqual([
      [3, 5],
      [9, 9],
    ])
    const runs: readonly Run[] = [
      [2, 3],
      [5, 8],
    ]
    expect(withMarks(runs, [4])).toEqual([[2, 8]])
    expect(withMarks(runs, [6, 3])).toEqual(runs)
    expect(runs).toEqual([
      [2, 3],
      [5, 8],
    ])
  })

  it('hold what a set of numbers would', () => {
    const numbers = fc.array(fc.integer({ min: 1, max: 40 }))
    fc.assert(
      fc.property(numbers, numbers, (first, second) => {
        const runs = withMarks(withMarks([], first), second)
        const marked = new Set([...first, ...second])
        for (let sequence = 0; sequence <= 41; sequence++) expect(isWithin(runs, sequence)).toBe(marked.has(sequence))
        for (const [at, [from]] of runs.entries())
          if (at > 0) expect(from).toBeGreaterThan((runs[at - 1] as Run)[1] + 1)
      }),
    )
  })
})
