import { describe, expect, it } from 'vitest'
import { describeDegradation } from '../../src/domain/degradation.ts'
import { verifies } from '../requirements/verifies.ts'

/** Reasons for which the verification of a summary refuses it. */
const refusals = [
  ...['empty', 'too short', 'longer', 'invented', 'misplaced', 'stale', 'negated', 'uncovered', 'no content'],
  ...['off topic', 'repetition', 'echo', 'over target', 'markup'],
]

describe('describeDegradation', () => {
  verifies('S-10', 'a refused summary › says why and what was used instead, with a stable code', () => {
    expect(describeDegradation({ step: 'summary', why: 'refused, echo' })).toEqual({
      code: 'summary-refused-echo',
      message:
        'The summary from the model was rejected because it repeated the text of its instructions; the built-in summary was used.',
    })
  })

  it('every known reason › is a sentence of its own', () => {
    const whys = [
      ...refusals.map((why) => `refused, ${why}`),
      'failed',
      'timeout',
      'empty',
      'too long',
      'not asked, no sentences',
    ]
    const messages = whys.map((why) => describeDegradation({ step: 'summary', why }).message)
    expect(new Set(messages).size).toBe(whys.length)
    for (const message of messages)
      expect(message).toMatch(/^The summary from the model [a-zA-Z ,]+; the built-in summary was used\.$/)
  })

  it('facts, knowledge, upkeep, files and prompts › are described', () => {
    const steps = [
      ['facts', 'refused, not the requested JSON'],
      ['knowledge', 'timeout'],
      ['upkeep', 'busy'],
      ['file', 'bad-message'],
      ['budget', ''],
      ['messages', ''],
      ['conversation', 'shortened'],
      ['recall', 'the embedder toy failed; older messages were found by their words only'],
      ['framing', 'the text of the silent framing would take over a quarter of the budget'],
    ] as const
    expect(steps.map(([step, why]) => describeDegradation({ step, why }).code)).toEqual([
      'facts-refused-not-the-requested-json',
      'knowledge-timeout',
      'upkeep-busy',
      'file-bad-message',
      'budget',
      'messages',
      'conversation-shortened',
      'recall-by-words',
      'framing-shortened',
    ])
    for (const [step, why] of steps) expect(describeDegradation({ step, why }).message).toMatch(/^[A-Z].{30,}\.$/)
  })

  it('an unknown reason, as from an imported file › has a bounded code of plain characters', () => {
    const { code } = describeDegradation({ step: 'summary', why: `später\r\nx-injected: ${'y'.repeat(500)}` })
    expect(code).toMatch(/^summary-sp-ter-x-injected-y+$/)
    expect(code.length).toBeLessThanOrEqual(60)
  })
})
