import { describe, expect, it } from 'vitest'
import { type DerivedText, type Expectations, scoreMemory, splitSummary } from './score.ts'
import { parseTranscript, splitTurns } from './transcript.ts'

const nothing: Expectations = {
  facts: [],
  memory: [],
  stale: [],
  never: [],
  notFacts: [],
  reference: { facts: [], summary: [] },
}
const derive = (values: readonly string[], summary = ''): DerivedText => ({
  ...{ facts: values, mentions: [], values, summary },
})

describe('scoreMemory', () => {
  it('with listed items › needs all patterns in one fact, or in two sentences in a row', () => {
    const expected: Expectations = {
      ...nothing,
      facts: [['port', /port/i, /5433/]],
      memory: [['host', /host/i, /db-2/]],
    }
    const score = (values: readonly string[], summary = '') => {
      const { missingFacts, missingMemory } = scoreMemory(derive(values, summary), expected)
      return [missingFacts.length, missingMemory.length]
    }
    expect(score(['port: 5433', 'host: db-2'])).toEqual([0, 0])
    expect(score(['port', '5433'])).toEqual([1, 1])
    expect(score([], 'Port 5433. The host was changed. It is db-2 now.')).toEqual([1, 0])
    expect(score([], 'The host was changed. All is well. It is db-2 now.')).toEqual([1, 1])
  })

  it('with an outdated value › needs the replacement in the fact, or in the same or the next sentence', () => {
    const expected: Expectations = { ...nothing, stale: [['deadline', /14 March/, /21 March/]] }
    const count = (values: readonly string[], summary = '') =>
      scoreMemory(derive(values, summary), expected).staleValues.length
    expect(count(['deadline: 14 March', 'deadline: 21 March'])).toBe(1)
    expect(count(['moved from 14 March to 21 March'])).toBe(0)
    expect(count(['no longer due on 14 March'])).toBe(0)
    expect(count([], 'It was due on 14 March. It is due on 21 March now.')).toBe(0)
    expect(count([], 'It was due on 14 March. Ann agreed. It is due on 21 March now.')).toBe(1)
  })

  it('with text that must not occur › tells facts from summaries', () => {
    const expected: Expectations = { ...nothing, never: [['name', /Quentin/]], notFacts: [['sister', /Vim/]] }
    expect(scoreMemory(derive(['Quentin', 'Vim'], 'Quentin called. Her sister uses Vim.'), expected).faults).toEqual([
      'name in fact: Quentin',
      'sister in fact: Vim',
      'name in summary: Quentin called.',
    ])
    const mentions = ['Quentin', 'Vim']
    expect(scoreMemory({ ...derive([]), mentions, values: mentions }, expected).faults).toEqual([
      'name as name: Quentin',
    ])
  })

  it('with pleasantries, code, names of dates, long facts and repeats › reports each', () => {
    const values = ['Feb', 'miércoles', 'thanks to the index', 'x'.repeat(241)]
    const summary =
      'Thanks, Mel!\nlastTaskIndex = matchLine;\nVielen Dank dafür.\nThey met.\nThey met.\nThey left in May.'
    expect(scoreMemory(derive(values, summary), nothing).faults.map((fault) => fault.split(':')[0])).toEqual([
      'pleasantry in summary',
      'pleasantry in summary',
      'code in summary',
      'name of a date as fact',
      'name of a date as fact',
      'rambling fact',
      'repeated in summary',
    ])
  })
})

describe('splitSummary', () => {
  it('splits at line ends and sentences, but not in versions and amounts', () =>
    expect(splitSummary('Node v22.11.0 costs 46.60 euros. It works!\n- ¿Cuándo? Mañana.')).toEqual([
      'Node v22.11.0 costs 46.60 euros.',
      'It works!',
      '- ¿Cuándo?',
      'Mañana.',
    ]))
})

describe('parseTranscript', () => {
  const text =
    '@ 2026-03-02 09:14\n[user] One\n\ntwo\n[assistant] Three\n[call] run {"a": 1}\n[tool] four\n@ 2026-03-03 00:00\n[user] Five'
  it('reads roles, times, calls and continued lines', () => {
    const start = Date.parse('2026-03-02T09:14:00Z')
    expect(parseTranscript(text)).toEqual([
      { role: 'user', at: start, content: 'One\n\ntwo' },
      {
        ...{ role: 'assistant', at: start + 60_000, content: 'Three' },
        tool_calls: [{ id: 'call1', type: 'function', function: { name: 'run', arguments: '{"a": 1}' } }],
      },
      { role: 'tool', at: start + 120_000, content: 'four', tool_call_id: 'call1' },
      { role: 'user', at: Date.parse('2026-03-03T00:00:00Z'), content: 'Five' },
    ])
  })
  it('is split into turns that begin with a user message', () =>
    expect(splitTurns(parseTranscript(text)).map((turn) => turn.map(({ role }) => role))).toEqual([
      ['user', 'assistant', 'tool'],
      ['user'],
    ]))
})
