import { describe, expect, it } from 'vitest'
import { isWork, measureWork, scoreWork } from '../../src/selection/isWork.ts'
import type { SelectableMessage } from '../../src/selection/selectPassages.ts'

const repeat = (...messages: readonly SelectableMessage[]): readonly SelectableMessage[] =>
  Array.from({ length: 6 }, () => messages).flat()

const codingSession = repeat(
  { role: 'user', text: 'go ahead and fix the test' },
  {
    role: 'assistant',
    text: 'Read file: src/session/start.ts\n```diff\n- const id = name\n+ const id = taskId\n  return id\n```\nThe test passes.',
  },
)
const chat = repeat(
  { role: 'user', text: 'I went to the lake with Ann and/or Bob on 1/2/2024, see https://example.org/a/b/c.html' },
  { role: 'assistant', text: 'That sounds lovely!\nDid you swim?' },
)
const answersWithCode = repeat(
  { role: 'user', text: 'How do I read a number in Python?' },
  {
    role: 'assistant',
    text: 'Use `int`:\n```python\nvalue = input()\nnumber = int(value)\nprint(number)\n```\nIt raises an error for other input.',
  },
)

describe('isWork', () => {
  it('with changes of files and their paths › is true', () => {
    expect(isWork(codingSession, 'now commit it')).toBe(true)
  })
  it('with a question about the past in a work session › is false', () => {
    expect(isWork(codingSession, 'What did I say about the database?')).toBe(false)
    expect(isWork(codingSession, 'Can you list the order in which I brought up the features?')).toBe(false)
  })
  it('with dialogue, dates and links › is false', () => {
    expect(isWork(chat)).toBe(false)
    expect(scoreWork(chat.map(measureWork))).toBe(0)
  })
  it('with answers that contain code but no files › is false', () => {
    expect(isWork(answersWithCode)).toBe(false)
    expect(scoreWork(answersWithCode.map(measureWork))).toBeGreaterThan(0)
  })
  it('with output of tools › is true', () => {
    expect(
      isWork(repeat({ role: 'user', text: 'run it' }, { role: 'tool', text: '12 passed\n1 failed\nexit code 1' })),
    ).toBe(true)
  })
  it('with a long paste in a conversation › is false', () => {
    const paste: SelectableMessage = { role: 'user', text: 'src/app/main.ts changed\n'.repeat(5_000) }
    const talk = Array.from(
      { length: 20 },
      (): SelectableMessage => ({ role: 'assistant', text: 'One line.\n'.repeat(40) }),
    )
    expect(isWork([paste, ...talk])).toBe(false)
  })
  it('without messages › is false', () => {
    expect(isWork([])).toBe(false)
    expect(scoreWork([])).toBe(0)
  })
})
