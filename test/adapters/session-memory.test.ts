import { describe, expect, it } from 'vitest'
import {
  defaultConfig,
  type ExtensionEvents,
  popupPortName,
  SessionMemory,
  sessionMemory,
} from '../../src/adapters/session-memory.ts'
import { ascii35 } from '../../src/text/estimators.ts'
import { verifies } from '../requirements/verifies.ts'

const tab = 'example.com:42'
const hourMs = 3_600_000

/** Adds `count` messages, the first one by the user. */
function addMessages(
  memory: SessionMemory,
  count: number,
  text: (number: number) => string = (number) => `message ${number}`,
): void {
  for (let number = 1; number <= count; number++) {
    if (number % 2 === 1) memory.addUserMessageForKey(tab, text(number))
    else memory.addAssistantMessageForKey(tab, text(number))
  }
}

/** An event as browsers offer it to extensions. */
class FakeEvent<Arguments extends readonly unknown[]> {
  private readonly listeners = new Set<(...args: Arguments) => void>()
  addListener = (listener: (...args: Arguments) => void): void => void this.listeners.add(listener)
  removeListener = (listener: (...args: Arguments) => void): void => void this.listeners.delete(listener)
  emit(...args: Arguments): void {
    for (const listener of this.listeners) listener(...args)
  }
}

/** The events of a browser with one open popup. */
function createExtensionEvents() {
  const [onRemoved, onDisconnect] = [new FakeEvent<[number]>(), new FakeEvent<[]>()]
  const onUpdated = new FakeEvent<[number, { status?: string; title?: string }]>()
  const onConnect = new FakeEvent<[{ name: string; onDisconnect: FakeEvent<[]> }]>()
  const api: ExtensionEvents = { tabs: { onRemoved, onUpdated }, runtime: { onConnect } }
  return {
    api,
    removeTab: (tabId: number) => onRemoved.emit(tabId),
    updateTab: (tabId: number, change: { status?: string; title?: string }) => onUpdated.emit(tabId, change),
    openPopup: (name: string) => onConnect.emit({ name, onDisconnect }),
    closePopup: () => onDisconnect.emit(),
  }
}

/** A memory with two sites in tab 42 and one in tab 7, bound to the events. */
function openBoundMemory() {
  const memory = new SessionMemory()
  const events = createExtensionEvents()
  const unbind = memory.bindToTabs(events.api)
  for (const key of [tab, 'example.org:42', 'example.com:7', 'example.com:421'])
    memory.addUserMessageForKey(key, `hello ${key}`)
  const listKeys = (): string[] =>
    [tab, 'example.org:42', 'example.com:7', 'example.com:421'].filter(
      (key) => memory.getContextStringForKey(key) !== '',
    )
  return { memory, events, unbind, listKeys }
}

const otherTabs = ['example.com:7', 'example.com:421']

describe('SessionMemory', () => {
  verifies('E-01', 'getContextStringForKey › with several tabs › keeps their sessions apart', () => {
    const memory = new SessionMemory()
    memory.addUserMessageForKey('wikipedia.org:1', 'What is entropy?')
    memory.addUserMessageForKey('wikipedia.org:2', 'Who was Noether?')
    memory.addUserMessageForKey('github.com:1', 'What does this do?')
    expect(memory.getContextStringForKey('wikipedia.org:1')).toBe('User: What is entropy?')
    expect(memory.getContextStringForKey('wikipedia.org:2')).toBe('User: Who was Noether?')
    expect(memory.getContextStringForKey('github.com:1')).toBe('User: What does this do?')
    expect(memory.getContextStringForKey('github.com:2')).toBe('')
  })

  verifies('E-05', 'config › by default › is 50 messages, 2,000 tokens, seed preservation and a tail of 3', () => {
    expect(defaultConfig).toEqual({ maxMessages: 50, maxTokens: 2_000, seedPreservation: true, tailSize: 3 })
    expect(new SessionMemory().config).toEqual(defaultConfig)
    const memory = new SessionMemory()
    addMessages(memory, 60)
    expect(memory.getSessionByKey(tab).messages).toHaveLength(50)
  })

  verifies('E-06', 'getContextStringForKey › returns seed, middle and tail in conversation order', () => {
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
    addMessages(memory, lines.length, (number) => lines[number - 1] as string)
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

  verifies('E-06', 'getContextStringForKey › with up to three messages › repeats nothing', () => {
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

  verifies('E-06', 'getContextStringForKey › with a small budget › fills the middle from its newest message', () => {
    const memory = new SessionMemory({ maxTokens: 120 }, { tokenizer: ascii35 })
    addMessages(memory, 20, (number) => `message number ${number}`)
    const text = memory.getContextStringForKey(tab)
    expect(text).toContain('User: message number 1\n\n(Past) ')
    expect(text).toContain('(Past) User: message number 17')
    expect(text).not.toContain('(Past) Assistant: message number 2\n')
    const shown = [...text.matchAll(/number (\d+)/g)].map(([, number]) => Number(number))
    expect(shown).toEqual([
      1,
      ...Array.from({ length: 20 - (shown[1] as number) + 1 }, (_, index) => (shown[1] as number) + index),
    ])
  })

  verifies(
    'E-06',
    'getContextStringForKey › with a long middle message › clips it without splitting a character',
    () => {
      const memory = new SessionMemory({}, { tokenizer: ascii35 })
      const family = '\u{1F468}‍\u{1F469}‍\u{1F467}'
      addMessages(memory, 6, (number) => (number === 2 ? `${'x'.repeat(97)}${family} and more` : 'ok'))
      expect(memory.getContextStringForKey(tab)).toContain(`(Past) Assistant: ${'x'.repeat(97)}...`)
    },
  )

  verifies('E-07', 'getSessionByKey › with more than 50 messages › keeps the seed and evicts the oldest others', () => {
    const memory = new SessionMemory()
    addMessages(memory, 120)
    const { messages } = memory.getSessionByKey(tab)
    expect([messages.length, messages[0]?.content, messages[1]?.content, messages.at(-1)?.content]).toEqual([
      50,
      'message 1',
      'message 72',
      'message 120',
    ])
    expect(memory.getContextStringForKey(tab)).toMatch(/^User: message 1\n\n\(Past\) /)
  })

  verifies(
    'E-08',
    'getContextStringForKey › with a seed and a newest message over the budget › shortens both and omits neither',
    () => {
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
    },
  )

  verifies('E-03', 'clearCurrentSession, clearAll and destroy › erase the sessions', () => {
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

  verifies('E-03', 'bindToTabs › when a tab is removed › clears the sessions of all its sites and no others', () => {
    const { events, listKeys } = openBoundMemory()
    events.removeTab(42)
    expect(listKeys()).toEqual(otherTabs)
  })

  verifies('E-03', 'bindToTabs › when a page navigates › clears the sessions of its tab', () => {
    const { events, listKeys } = openBoundMemory()
    events.updateTab(42, { title: 'Inbox (1)' })
    events.updateTab(42, { status: 'complete' })
    expect(listKeys()).toHaveLength(4)
    events.updateTab(42, { status: 'loading' })
    expect(listKeys()).toEqual(otherTabs)
  })

  verifies('E-03', 'bindToTabs › when the popup of a tab closes › clears the sessions of the tab', () => {
    const { events, listKeys } = openBoundMemory()
    events.openPopup('devtools')
    events.closePopup()
    events.openPopup(popupPortName(42))
    expect(listKeys()).toHaveLength(4)
    events.closePopup()
    expect(listKeys()).toEqual(otherTabs)
  })

  verifies('E-03', 'clearTab › while an answer is on its way › makes the answer recognisable as late', () => {
    const memory = new SessionMemory()
    memory.getSession(tab)
    memory.addUserMessage('What is this?')
    const epoch = memory.getEpochForKey(tab)
    memory.clearTab(42)
    expect(memory.getEpochForKey(tab)).not.toBe(epoch)
    expect(() => memory.addAssistantMessage('late')).toThrow('There is no current session.')
  })

  it('bindToTabs › after unbind or destroy › listens no longer', () => {
    const { memory, events, unbind, listKeys } = openBoundMemory()
    unbind()
    events.removeTab(42)
    expect(listKeys()).toHaveLength(4)
    memory.bindToTabs(events.api)
    memory.destroy()
    memory.addUserMessageForKey(tab, 'again')
    events.removeTab(42)
    expect(listKeys()).toEqual([tab])
  })

  verifies('E-12', 'sweep › ends sessions older than a day and the oldest beyond 100', () => {
    let now = 0
    const memory = new SessionMemory({}, { clock: () => now })
    for (let site = 0; site < 130; site++) {
      now = site * 1_000
      memory.addUserMessageForKey(`site${site}.org:1`, 'hello')
    }
    const swept = memory.sweep()
    expect(swept).toHaveLength(30)
    expect([swept.includes('site0.org:1'), swept.includes('site29.org:1'), swept.includes('site30.org:1')]).toEqual([
      true,
      true,
      false,
    ])
    now = 24 * hourMs + 40_001
    expect(memory.sweep()).toHaveLength(11)
    expect(memory.getContextStringForKey('site41.org:1')).toBe('User: hello')
  })

  it('getContextStringForKey › with an expired session before the sweep › returns nothing', () => {
    let now = 0
    const memory = new SessionMemory({}, { clock: () => now })
    memory.addUserMessageForKey(tab, 'hello')
    now = 24 * hourMs + 1
    expect(memory.getContextStringForKey(tab)).toBe('')
    memory.addUserMessageForKey(tab, 'new')
    expect(memory.getContextStringForKey(tab)).toBe('User: new')
  })

  verifies('E-13', 'getMetrics › returns used and total tokens and isDistilled', () => {
    const memory = new SessionMemory({}, { tokenizer: ascii35 })
    expect(memory.getMetrics()).toEqual({ usedTokens: 0, totalTokens: 2_000, isDistilled: false })
    memory.getSession('example.com')
    memory.addUserMessage('What is this article about?')
    expect(memory.getMetrics()).toEqual({
      usedTokens: ascii35.count('User: What is this article about?\n\n'),
      totalTokens: 2_000,
      isDistilled: false,
    })
    for (let count = 0; count < 6; count++) memory.addAssistantMessage('A long answer. '.repeat(20))
    expect(memory.getMetrics().isDistilled).toBe(true)
    expect(memory.getMetrics().usedTokens).toBeLessThanOrEqual(2_000)
  })

  verifies('E-13', 'getMetrics › isDistilled › is true as soon as one message is shortened, or one is left out', () => {
    const shortened = new SessionMemory()
    shortened.getSession('example.com')
    const addAll = (memory: SessionMemory, texts: readonly string[]): void => {
      for (const text of texts) memory.addUserMessage(text)
    }
    addAll(shortened, ['Seed.', 'x'.repeat(100), 'one', 'two', 'three'])
    expect(shortened.getMetrics().isDistilled).toBe(false)
    addAll(shortened, ['x'.repeat(101), 'four', 'five', 'six'])
    expect(shortened.getMetrics().isDistilled).toBe(true)
    const omitted = new SessionMemory({ maxTokens: 120 }, { tokenizer: ascii35 })
    omitted.getSession('example.com')
    for (let number = 1; number <= 40 && !omitted.getMetrics().isDistilled; number++) {
      for (let shown = 1; shown < number; shown++)
        expect(omitted.getContextString()).toContain(`User: message ${shown}`)
      omitted.addUserMessage(`message ${number}`)
    }
    expect(omitted.getMetrics().isDistilled).toBe(true)
    expect(omitted.getContextString()).not.toContain('message 2\n')
    expect(omitted.getContextString()).not.toContain('...')
  })

  verifies(
    'E-08',
    'getContextForKey › with a long seed and a long tail › gives the seed two fifths of the budget',
    () => {
      for (const maxTokens of [400, 1_000, 2_000]) {
        const memory = new SessionMemory({ maxTokens }, { tokenizer: ascii35 })
        memory.addUserMessageForKey(tab, `Seed ${'a long page '.repeat(2_000)}`)
        memory.addAssistantMessageForKey(tab, 'a long answer '.repeat(2_000))
        memory.addUserMessageForKey(tab, 'And now?')
        const { lines } = memory.getContextForKey(tab, 'sections').ledger
        const share =
          lines.filter(({ band }) => band === 'seed').reduce((sum, line) => sum + line.tokens, 0) / maxTokens
        expect(share).toBeLessThanOrEqual(0.4)
        expect(share).toBeGreaterThan(0.37)
      }
    },
  )

  verifies('E-14', 'sessionMemory › has the documented methods', () => {
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

  verifies('E-14', 'getSession › for a new site › starts a session that keeps its start time', () => {
    let now = 5
    const memory = new SessionMemory({}, { clock: () => now })
    expect(memory.getSession('example.com')).toEqual({ domain: 'example.com', startedAt: 5, messages: [] })
    now = 9
    expect(memory.getSessionByKey('example.com').startedAt).toBe(5)
    memory.addUserMessage('hello')
    expect(memory.getSession('example.com').startedAt).toBe(5)
    now = 5 + 24 * hourMs
    expect(memory.sweep()).toEqual(['example.com'])
    expect(memory.getSession('example.com')).toEqual({ domain: 'example.com', startedAt: now, messages: [] })
  })

  verifies('E-14', 'getContextString, getMetrics and getEpochForKey › of an unknown session › start none', () => {
    const memory = new SessionMemory({}, { clock: () => 5 })
    memory.getContextStringForKey(tab)
    memory.getContextForKey(tab)
    memory.getEpochForKey(tab)
    memory.getMetrics()
    expect(memory.sweep(5 + 24 * hourMs)).toEqual([])
  })

  verifies('E-14', 'seedPreservation › when false › keeps the newest messages and treats the first like others', () => {
    const memory = new SessionMemory({ seedPreservation: false })
    addMessages(memory, 120)
    const contents = memory.getSessionByKey(tab).messages.map(({ content }) => content)
    expect([contents.length, contents[0], contents.at(-1)]).toEqual([50, 'message 71', 'message 120'])
    expect(memory.getContextStringForKey(tab)).toMatch(/^\(Past\) User: message 71\n\n/)
    const long = new SessionMemory({ seedPreservation: false, maxTokens: 120 })
    addMessages(long, 5, (number) => `message ${number} ${'is long '.repeat(40)}`)
    expect(long.getContextStringForKey(tab)).not.toContain('User: message 1 ')
  })

  it('addUserMessage › without a current session › throws an error with the remedy', () => {
    expect(() => new SessionMemory().addUserMessage('hello')).toThrow(
      'There is no current session. Call getSession(domain) first',
    )
  })
})
