import { describe, expect, it } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import type { Context } from '../../src/domain/ledger.ts'
import { noExpiry } from '../../src/domain/session.ts'
import type { ContextOptions } from '../../src/memory/contextBuilder.ts'
import type { Memory } from '../../src/memory.ts'
import { type ProfileName, profiles } from '../../src/profiles/index.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'
import { startTime } from './cases.ts'
import { createMemory, key } from './harness.ts'

const exact = await exactTokenizer('o200k_base')
const dayMs = 24 * 3_600_000

async function memoryWith(
  profile: ProfileName,
  messages: readonly MessageInput[],
  store = ramStore(),
): Promise<Memory> {
  const memory = createMemory(store, profiles[profile], exact)
  await memory.append(key, messages)
  return memory
}

const buildContext = async (
  profile: ProfileName,
  messages: readonly MessageInput[],
  options: ContextOptions = {},
): Promise<Context> => (await memoryWith(profile, messages)).context(key, options)

const user = (content: string, at = startTime): MessageInput => ({ role: 'user', content, at })
const assistant = (content: string, at = startTime): MessageInput => ({ role: 'assistant', content, at })
const toolCall = (id: string, content: string | null = null): MessageInput => {
  return {
    role: 'assistant',
    content,
    tool_calls: [{ id, type: 'function', function: { name: 'search', arguments: '{}' } }],
  }
}
const toolResult = (id: string, content = 'found'): MessageInput => ({ role: 'tool', content, tool_call_id: id })
const verdicts = ({ ledger }: Context): string[] =>
  ledger.lines.flatMap(({ entries, verdict, why }) =>
    entries === null ? [] : [`${entries.join('–')} ${verdict}: ${why}`],
  )

describe('newest turn', () => {
  verifies(
    'X-01',
    'with a whole form that is cheaper than a cut one is whole, and the error names its cost',
    async () => {
      const memory = await memoryWith('thread', [user('ok')])
      await expect(memory.context(key, { budget: 7 })).rejects.toMatchObject({ code: 'budget-too-small', minimum: 8 })
      expect((await memory.context(key, { budget: 8 })).messages).toEqual([{ role: 'user', content: 'ok' }])
    },
  )
  verifies('X-01', 'with leading white space is cut to its words', async () => {
    const { messages } = await buildContext('thread', [user(`${' \n'.repeat(500)}hello wonderful world`)], {
      budget: 9,
    })
    expect(messages).toEqual([{ role: 'user', content: 'hello ...' }])
  })
  verifies('X-01', 'as the first message reserves nothing for itself', async () => {
    const text = 'word '.repeat(1_900).trim()
    expect((await buildContext('ephemeral', [user(text)])).messages).toEqual([{ role: 'user', content: text }])
  })
  verifies('E-08', 'with long first, asked and newest messages leaves room for all three', async () => {
    const long = (word: string) => `${word} `.repeat(5_000)
    const context = await buildContext('ephemeral', [
      user(long('first')),
      assistant('yes'),
      user(long('asked')),
      assistant(long('newest')),
    ])
    expect(verdicts(context)).toEqual([
      'm1–m1 shortened: start of the conversation; middle left out',
      'm2–m2 dropped: budget used up',
      'm3–m3 shortened: the newest turn; middle left out',
      'm4–m4 shortened: after the newest turn; middle left out',
    ])
    const { text } = context
    expect(text.indexOf('first')).toBeLessThan(text.indexOf('asked'))
    expect(text.indexOf('asked')).toBeLessThan(text.indexOf('newest'))
  })
})

describe('tool calls', () => {
  verifies('X-03', 'without a result and without text hide no message before them', async () => {
    const context = await buildContext('support', [user('one'), toolCall('a'), user('two')])
    expect(context.messages.map(({ content }) => content)).toEqual(['one', 'two'])
    expect(verdicts(context)).toEqual([
      'm1–m1 whole: recent message',
      'm2–m2 dropped: tool call without its result',
      'm3–m3 whole: the newest turn',
    ])
  })
  verifies('X-03', 'at the start of the session are shown with their results', async () => {
    const later = Array.from({ length: 20 }, (_, at) =>
      at % 2 === 0 ? user(`question ${at}`) : assistant(`answer ${at}`),
    )
    const context = await buildContext('ephemeral', [toolCall('a', 'Let me see.'), toolResult('a'), ...later])
    expect(verdicts(context)[0]).toBe('m1–m2 whole: start of the conversation')
  })
  verifies(
    'E-06',
    'after the newest turn are shown after it, although a line of the block would be cheaper',
    async () => {
      const steps = [toolCall('a'), toolResult('a', 'one '.repeat(12)), toolCall('b'), toolResult('b', 'two')]
      const { text } = await buildContext('ephemeral', [user('asked'), ...steps], { budget: 60, framing: 'sections' })
      expect(text).toBe('User: asked\n\n--- Recent Exchange ---\n\nAssistant: [calls search {}]\n\nTool: two')
    },
  )
  verifies(['X-02', 'E-09'], 'with results already shown are not recalled again', async () => {
    const steps = Array.from({ length: 12 }, (_, at) => [
      toolCall(`c${at}`),
      toolResult(`c${at}`, `penguins of island ${at}`),
    ]).flat()
    const { text } = await buildContext('thread', [user('What about penguins?'), ...steps], { budget: 300 })
    const islands = [...text.matchAll(/island \d+/g)].map(([island]) => island)
    expect(islands).toEqual([...new Set(islands)])
  })
})

describe('rendered messages', () => {
  verifies('X-03', 'with lone surrogates in content or name are well-formed', async () => {
    const { messages } = await buildContext('thread', [{ ...user('a\ud83d'), name: `${'n'.repeat(63)}🙂` }])
    expect(messages).toEqual([{ role: 'user', content: 'a\ufffd', name: `${'n'.repeat(63)}\ufffd` }])
  })
  verifies('X-01', 'with a clock that goes back have one date line per day', async () => {
    const penguins = [0, -dayMs, 0, -dayMs, 0].map((offset, at) =>
      user(`penguins ${at} ${'and more '.repeat(20)}`, startTime + offset),
    )
    const messages = [...penguins, assistant('Well. '.repeat(200)), user('penguins?')]
    const { text } = await buildContext('thread', messages, { budget: 400 })
    expect([...text.matchAll(/^\d+ November 2026:$/gm)].map(([line]) => line).sort()).toEqual([
      '14 November 2026:',
      '15 November 2026:',
    ])
  })
  verifies('X-02', 'marked whole keep their newlines at the end', async () => {
    const { messages } = await buildContext(
      'thread',
      [user('Hello'), user('penguins\n\n'), assistant('Well. '.repeat(200)), user('penguins?')],
      { budget: 100 },
    )
    expect(messages.at(-2)?.content).toContain('\nUser: penguins\n\n\nAssistant: Well.')
  })
})

describe('receipt', () => {
  const fact = {
    kind: 'fact',
    id: 'f1',
    at: startTime,
    field: 'entities',
    key: '',
    value: 'x '.repeat(2_000),
    importance: 1,
    sources: [],
  } as const

  verifies('X-02', 'with dropped messages and derived entries has separate lines for them', async () => {
    const store = ramStore()
    const memory = await memoryWith('summary', [user('long '.repeat(3_000)), user('hi')], store)
    await store.commit({
      id: 'put',
      key,
      at: startTime,
      epoch: 0,
      append: [],
      put: [fact, { ...fact, id: 'f2' }],
      drop: [],
      expiresAt: noExpiry,
    })
    const context = await memory.context(key, { budget: 14 })
    expect(verdicts(context)).toEqual([
      'm1–m1 dropped: outside the range of every band',
      'm2–m2 whole: the newest turn',
      'f1–f2 dropped: budget used up',
    ])
  })
})

describe('append', () => {
  it('with more messages than the cap in one call keeps the first and the newest', async () => {
    const memory = await memoryWith(
      'ephemeral',
      Array.from({ length: 60 }, (_, at) => user(`${at}`)),
    )
    const stored = await memory.transcript(key)
    expect([stored.length, stored[0]?.content, stored[1]?.content, stored.at(-1)?.content]).toEqual([
      50,
      '0',
      '11',
      '59',
    ])
  })
})
