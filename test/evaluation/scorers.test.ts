import { describe, expect, it } from 'vitest'
import type { DatasetMessage } from '../../src/evaluation/dataset.ts'
import { createEvidenceScorer, summariseEvidence } from '../../src/evaluation/evidence.ts'
import { cutTranscript, findCutPositions, findUserPositions, scoreReuse } from '../../src/evaluation/futureReference.ts'
import { coverTurn, prepareContext } from '../../src/evaluation/grams.ts'
import { formatPercent, percentile, sampleEvenly, summariseLatency } from '../../src/evaluation/statistics.ts'
import { createUpdateProbe, scoreUpdate } from '../../src/evaluation/update.ts'

const message = (id: string, text: string, role: 'user' | 'assistant' = 'user'): DatasetMessage => ({
  id,
  at: null,
  speaker: role,
  role,
  text,
  group: 0,
})
const countWords = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length

describe('coverTurn', () => {
  const twelve = 'one two three four five six seven eight nine ten eleven twelve'
  it('with 90 % of the 5-grams › is present', () => {
    // 14 words have ten 5-grams; without the last word nine of them remain.
    const turn = `${twelve} thirteen fourteen`
    const context = prepareContext(`${twelve} thirteen`)
    expect(coverTurn(turn, context)).toEqual({ isPresent: true, foundWords: 13, words: 14 })
  })
  it('with a gap in the middle › is absent and counts the words of the 5-grams on both sides', () => {
    const context = prepareContext('One two three FOUR five? And seven, eight nine ten eleven twelve.')
    expect(coverTurn(twelve, context)).toEqual({ isPresent: false, foundWords: 11, words: 12 })
  })
  it('with fewer than five words › counts all of them or none', () => {
    expect(coverTurn('Yes, on Friday!', prepareContext('Theo: yes on friday'))).toEqual({
      isPresent: true,
      foundWords: 3,
      words: 3,
    })
    expect(coverTurn('Yes, on Friday!', prepareContext('yes on fridays')).foundWords).toBe(0)
  })
})

describe('createEvidenceScorer', () => {
  const messages = [
    message('m1', 'my cat is called Miso and sleeps all day'),
    message('m2', 'the party is on the ninth of June at the old mill near town'),
    message('m3', 'nothing else happened'),
  ]
  const score = createEvidenceScorer({ messages }, countWords)
  const question = { id: 'q', category: 'fact', query: '', answer: null, evidence: ['m1', 'm2'] }

  it('with one of two turns › weighs turns equally and words by length', () => {
    const text = 'user: my cat is called Miso and sleeps all day'
    expect(score(question, { text, budget: 20, milliseconds: 1 })).toEqual({
      category: 'fact',
      byTurn: 0.5,
      byWord: 9 / 23,
      allEvidence: 0,
      budgetShare: 0.5,
      isOverBudget: false,
      milliseconds: 1,
    })
  })
  it('over budget › scores 0', () => {
    const text = messages.map((turn) => turn.text).join(' ')
    expect(score(question, { text, budget: 25, milliseconds: 1 })).toMatchObject({
      byTurn: 0,
      byWord: 0,
      allEvidence: 0,
      isOverBudget: true,
    })
    expect(score(question, { text, budget: 26, milliseconds: 1 })).toMatchObject({
      byTurn: 1,
      byWord: 1,
      allEvidence: 1,
    })
  })
  it('with a budget over the history › measures the share of the history', () => {
    expect(score(question, { text: 'a '.repeat(13), budget: 4_000, milliseconds: 1 }).budgetShare).toBe(0.5)
  })
  it('summary › averages by category and counts contexts over budget', () => {
    const scores = [
      score(question, { text: 'nothing', budget: 20, milliseconds: 3 }),
      score(
        { ...question, category: 'other', evidence: ['m3'] },
        { text: 'nothing else happened', budget: 20, milliseconds: 1 },
      ),
      score(question, { text: 'x '.repeat(30), budget: 20, milliseconds: 2 }),
    ]
    expect(summariseEvidence(scores)).toMatchObject({
      questions: 3,
      byTurn: 1 / 3,
      overBudget: 1,
      latency: { p50: 2, p95: 3 },
      categories: [
        { category: 'fact', questions: 2, byTurn: 0 },
        { category: 'other', questions: 1, byTurn: 1 },
      ],
    })
  })
})

describe('future reference', () => {
  const messages = [
    message('m1', 'look at src/app.ts and parseHeader first', 'user'),
    message('m2', 'parseHeader reads max_size from config/base.json', 'assistant'),
    message('m3', 'now fix src/app.ts please'),
    message('m4', 'I changed parseHeader in src/app.ts and max_size too', 'assistant'),
  ]
  it('cut › wants identifiers used before and after it but not in the query', () => {
    expect(findUserPositions(messages)).toEqual([2])
    expect(findCutPositions(messages)).toEqual([2])
    const cut = cutTranscript(messages, 2, countWords)
    expect(cut?.query).toBe('now fix src/app.ts please')
    expect([...(cut?.reused.keys() ?? [])].sort()).toEqual(['max_size', 'parseHeader'])
  })
  it('cut › without reuse › is undefined', () =>
    expect(cutTranscript(messages.slice(0, 3), 2, countWords)).toBeUndefined())
  it('score › counts an identifier only with both neighbour words', () => {
    const reused = cutTranscript(messages, 2, countWords)?.reused ?? new Map()
    expect(scoreReuse('reads max_size from', reused)).toBe(0.5)
    expect(scoreReuse('max_size parseHeader src/app.ts', reused)).toBe(0)
    expect(scoreReuse('x first\nparseHeader reads max_size from y', reused)).toBe(1)
  })
})

describe('update', () => {
  const messages = [
    message('m1', 'My goal is 1,200 words by March 1.'),
    message('m2', 'I raised my goal to 1,350 words by March 1.'),
    message('m3', 'Hitting 1,350 words is hard.'),
  ]
  const probe = createUpdateProbe({ messages }, { answer: '1,350 words by March 1', evidence: ['m3', 'm1', 'm2'] })
  it('with the new value in its place › is current', () => {
    expect(scoreUpdate('goal to 1350 words', probe)).toEqual({ isCurrent: true, isStaleOnly: false })
    expect(scoreUpdate('Hitting 1,350 words', probe)).toEqual({ isCurrent: true, isStaleOnly: false })
  })
  it('with the old value only › is stale', () =>
    expect(scoreUpdate('user: My goal is 1,200 words by March 1.', probe)).toEqual({
      isCurrent: false,
      isStaleOnly: true,
    }))
  it('with both values › is current', () =>
    expect(scoreUpdate(messages.map(({ text }) => text).join('\n'), probe).isCurrent).toBe(true))
  it('with the bare number › is neither', () =>
    expect(scoreUpdate('1350 1200', probe)).toEqual({ isCurrent: false, isStaleOnly: false }))
  it('with an answer without figures › compares its words', () => {
    const trip = [message('a', 'The trip goes to Bergen.'), message('b', 'The trip goes to Lisbon instead.')]
    const words = createUpdateProbe({ messages: trip }, { answer: 'Lisbon', evidence: ['a', 'b'] })
    expect(scoreUpdate('trip goes to Lisbon instead', words).isCurrent).toBe(true)
    expect(scoreUpdate('trip goes to Bergen', words).isStaleOnly).toBe(true)
  })
  it('with an answer outside the evidence › needs the newest evidence turn', () => {
    const unknown = createUpdateProbe({ messages }, { answer: '77', evidence: ['m1', 'm2'] })
    expect(scoreUpdate('I raised my goal to 1,350 words by March 1.', unknown).isCurrent).toBe(true)
    expect(scoreUpdate('I raised my goal', unknown).isCurrent).toBe(false)
  })
})

describe('statistics', () => {
  it('sampleEvenly › spreads over the list', () => {
    expect(sampleEvenly([1, 2, 3, 4, 5, 6], 3)).toEqual([1, 3, 5])
    expect(sampleEvenly([1, 2], 3)).toEqual([1, 2])
  })
  it('percentile › takes the value at the share, at most the last', () => {
    expect([0, 0.5, 0.95, 1].map((share) => percentile([1, 2, 3, 4], share))).toEqual([1, 3, 4, 4])
    expect(percentile([], 0.5)).toBeNaN()
  })
  it('without values › formats a dash', () => {
    expect(formatPercent(summariseLatency([]).p50)).toBe('–')
    expect(formatPercent(0.1234)).toBe('12.3')
  })
})
