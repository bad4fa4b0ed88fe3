import { describe, expect, it } from 'vitest'
import { defaultConfig, SessionMemory, sessionMemory } from '../../src/adapters/session-memory.ts'
import { ascii35 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const tab = 'example.com:42'
const hour = 3_600_000

/** A conversation of `count` messages, the user's first. */
function talk(
  memory: SessionMemory,
  count: number,
  text: (place: number) => string = (place) => `message ${place}`,
): void {
  for (let place = 1; place <= count; place++) {
    if (place % 2 === 1) memory.addUserMessageForKey(tab, text(place))
    else memory.addAssistantMessageForKey(tab, text(place))
  }
}

describe('session memory', () => {
  verifies('E-01', 'keeps the sessions of tabs apart', () => {
    const memory = new SessionMemory()
    memory.addUserMessageForKey('wikipedia.org:1', 'What is entropy?')
    memory.addUserMessageForKey('wikipedia.org:2', 'Who was Noether?')
    memory.addUserMessageForKey('github.com:1', 'What does this do?')
    expect(memory.getContextStringForKey('wikipedia.org:1')).toBe('User: What is entropy?')
    expect(memory.getContextStringForKey('wikipedia.org:2')).toBe('User: Who was Noether?')
    expect(memory.getContextStringForKey('github.com:1')).toBe('User: What does this do?')
    expect(memory.getContextStringForKey('github.com:2')).toBe('')
  })

  verifies('E-05', 'keeps 50 messages, 2,000 tokens, the seed and a tail of 3 unless told otherwise', () => {
    expect(defaultConfig).toEqual({ maxMessages: 50, maxTokens: 2_000, seedPreservation: true, tailSize: 3 })
    expect(new SessionMemory().config).toEqual(defaultConfig)
    const memory = new SessionMemory()
    talk(memory, 60)
    expect(memory.getSessionByKey(tab).messages).toHaveLength(50)
  })

  verifies('E-06', 'shows seed, middle and tail in conversation order', () => {
    const memory = new SessionMemory()
    const long = `${'The second paragraph goes on and on. '.repeat(4)}It ends.`
    const lines = [
      'What is this article about?',
      'About bees.',
      'Can you explain more?',
      long,
      'What about the second paragraph?',
      'It discusses honey.',
      'Thanks!',
    ]
    talk(memory, lines.length, (place) => lines[place - 1] as string)
    expect(memory.getContextStringForKey(tab)).toBe(
      [
        'User: What is this article about?',
        '(Past) Assistant: About bees.',
        '(Past) User: Can you explain more?',
        `(Past) Assistant: ${long.slice(0, 100)}...`,
        '--- Recent Exchange ---',
        'User: What about the second paragraph?',
        'Assistant: It discusses honey.',
        'User: Thanks!',
      ].join('\n\n'),
    )
  })

  verifies('E-06', 'repeats nothing in a conversation of three messages or fewer', () => {
    const memory = new SessionMemory()
    memory.addUserMessageForKey(tab, 'one')
    expect(memory.getContextStringForKey(tab)).toBe('User: one')
    memory.addAssistantMessageForKey(tab, 'two')
    expect(memory.getContextStringForKey(tab)).toBe('User: one\n\n--- Recent Exchange ---\n\nAssistant: two')
    memory.addUserMessageForKey(tab, 'three')
    expect(memory.getContextStringForKey(tab)).toBe(
      'User: one\n\n--- Recent Exchange ---\n\nAssistant: two\n\nUser: three',
    )
  })

  verifies('E-06', 'fills the middle from its newest message while it fits', () => {
    const memory = new SessionMemory({ maxTokens: 120 }, { tokenizer: ascii35 })
    talk(memory, 20, (place) => `message number ${place}`)
    const text = memory.getContextStringForKey(tab)
    expect(text).toContain('User: message number 1\n\n(Past) ')
    expect(text).toContain('(Past) User: message number 17')
    expect(text).not.toContain('(Past) Assistant: message number 2\n')
    const shown = [...text.matchAll(/number (\d+)/g)].map(([, place]) => Number(place))
    expect(shown).toEqual([
      1,
      ...Array.from({ length: 20 - (shown[1] as number) + 1 }, (_, at) => (shown[1] as number) + at),
    ])
  })

  verifies('E-06', 'clips without splitting a character', () => {
    const memory = new SessionMemory({}, { tokenizer: ascii35 })
    const family = '\u{1F468}‍\u{1F469}‍\u{1F467}'
    talk(memory, 6, (place) => (place === 2 ? `${'x'.repeat(97)}${family} and more` : 'ok'))
    expect(memory.getContextStringForKey(tab)).toContain(`(Past) Assistant: ${'x'.repeat(97)}...`)
  })

  verifies('E-07', 'keeps the seed when the cap of 50 evicts', () => {
    const memory = new SessionMemory()
    talk(memory, 120)
    const { messages } = memory.getSessionByKey(tab)
    expect([messages.length, messages[0]?.content, messages[1]?.content, messages.at(-1)?.content]).toEqual([
      50,
      'message 1',
      'message 72',
      'message 120',
    ])
    expect(memory.getContextStringForKey(tab)).toMatch(/^User: message 1\n\n\(Past\) /)
  })

  verifies('E-08', 'shortens a seed and a newest message that are too large, and leaves neither out', () => {
    for (const maxTokens of [60, 200, 2_000]) {
      const memory = new SessionMemory({ maxTokens }, { tokenizer: ascii35 })
      memory.addUserMessageForKey(tab, `Seed ${'a long page '.repeat(2_000)}`)
      memory.addAssistantMessageForKey(tab, 'Understood.')
      memory.addUserMessageForKey(tab, `Question ${'with a long paste '.repeat(2_000)}`)
      const text = memory.getContextStringForKey(tab)
      expect(text).toMatch(/^User: Seed /)
      expect(text).toContain('\n\nUser: Question ')
      expect(ascii35.count(text)).toBeLessThanOrEqual(maxTokens)
    }
  })

  verifies('E-03', 'forgets the current session, every session, or both at the end', () => {
    const memory = new SessionMemory()
    memory.getSession('example.com')
    memory.addUserMessage('here')
    memory.addUserMessageForKey(tab, 'there')
    memory.clearCurrentSession()
    expect([
      memory.getContextString(),
      memory.getContextStringForKey('example.com'),
      memory.getContextStringForKey(tab),
    ]).toEqual(['', '', 'User: there'])
    memory.clearAll()
    expect(memory.getContextStringForKey(tab)).toBe('')
    memory.addUserMessageForKey(tab, 'again')
    memory.destroy()
    expect(memory.getSessionByKey(tab).messages).toEqual([])
  })

  verifies('E-12', 'sweeps sessions older than a day, and the oldest beyond a hundred, when the host says so', () => {
    let now = 0
    const memory = new SessionMemory({}, { clock: () => now })
    for (let place = 0; place < 130; place++) {
      now = place * 1_000
      memory.addUserMessageForKey(`site${place}.org:1`, 'hello')
    }
    const swept = memory.sweep()
    expect(swept).toHaveLength(30)
    expect([swept.includes('site0.org:1'), swept.includes('site29.org:1'), swept.includes('site30.org:1')]).toEqual([
      true,
      true,
      false,
    ])
    now = 24 * hour + 40_001
    expect(memory.sweep()).toHaveLength(11)
    expect(memory.getContextStringForKey('site41.org:1')).toBe('User: hello')
  })

  it('does not show an old session even when the sweep is late', () => {
    let now = 0
    const memory = new SessionMemory({}, { clock: () => now })
    memory.addUserMessageForKey(tab, 'hello')
    now = 24 * hour + 1
    expect(memory.getContextStringForKey(tab)).toBe('')
    memory.addUserMessageForKey(tab, 'new')
    expect(memory.getContextStringForKey(tab)).toBe('User: new')
  })

  verifies('E-13', 'tells used and total tokens and whether anything is distilled', () => {
    const memory = new SessionMemory({}, { tokenizer: ascii35 })
    expect(memory.getMetrics()).toEqual({ usedTokens: 0, totalTokens: 2_000, isDistilled: false })
    memory.getSession('example.com')
    memory.addUserMessage('What is this article about?')
    expect(memory.getMetrics()).toEqual({
      usedTokens: ascii35.count('User: What is this article about?\n\n'),
      totalTokens: 2_000,
      isDistilled: false,
    })
    for (let place = 0; place < 6; place++) memory.addAssistantMessage('A long answer. '.repeat(20))
    expect(memory.getMetrics().isDistilled).toBe(true)
    expect(memory.getMetrics().usedTokens).toBeLessThanOrEqual(2_000)
  })

  verifies('E-14', 'has the methods of the document and a ready-made instance', () => {
    const methods = [
      'getSession',
      'getSessionByKey',
      'addUserMessage',
      'addUserMessageForKey',
      'addAssistantMessage',
      'addAssistantMessageForKey',
      'getContextString',
      'getContextStringForKey',
      'clearCurrentSession',
      'clearAll',
      'destroy',
      'getMetrics',
    ] as const
    expect(sessionMemory).toBeInstanceOf(SessionMemory)
    for (const method of methods) expect(sessionMemory[method]).toBeTypeOf('function')
    const memory = new SessionMemory({}, { clock: () => 7 })
    memory.getSession('example.com')
    memory.addUserMessage('hello')
    memory.addAssistantMessage('hi')
    expect(memory.getSession('example.com')).toEqual({
      domain: 'example.com',
      startedAt: 7,
      messages: [
        { role: 'user', content: 'hello', timestamp: 7 },
        { role: 'assistant', content: 'hi', timestamp: 7 },
      ],
    })
  })

  it('says what to do when there is no current session', () => {
    expect(() => new SessionMemory().addUserMessage('hello')).toThrow(
      'There is no current session. Call getSession(domain) first',
    )
  })
})
