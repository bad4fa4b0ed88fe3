import { describe, expect, it } from 'vitest'
import type { Tokenizer } from '../../src/domain/ports.ts'
import { countMessageTokens, countPromptOverhead, countToolTokens } from '../../src/text/cost.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { exactTokenizer } from '../../src/tokenizers/tokenizers.ts'
import { verifies } from '../requirements/verifies.ts'

const older = await exactTokenizer('cl100k_base')
const newer = await exactTokenizer('o200k_base')

const cost = (tokenizer: Tokenizer, messages: Parameters<typeof countMessageTokens>[1][]): number =>
  messages.reduce((sum, message) => sum + countMessageTokens(tokenizer, message), tokenizer.overhead.reply)

const jargon = [
  {
    role: 'system',
    content: 'You are a helpful, pattern-following assistant that translates corporate jargon into plain English.',
  },
  { role: 'system', name: 'example_user', content: 'New synergies will help drive top-line growth.' },
  { role: 'system', name: 'example_assistant', content: 'Things working well together will increase revenue.' },
  {
    role: 'system',
    name: 'example_user',
    content: "Let's circle back when we have more bandwidth to touch base on opportunities for increased leverage.",
  },
  {
    role: 'system',
    name: 'example_assistant',
    content: "Let's talk later when we're less busy about how to do better.",
  },
  { role: 'user', content: "This late pivot means we don't have time to boil the ocean for the client deliverable." },
]
const weather = {
  type: 'function',
  function: {
    name: 'get_current_weather',
    description: 'Get the current weather in a given location',
    parameters: {
      type: 'object',
      properties: {
        location: { type: 'string', description: 'The city and state, e.g. San Francisco, CA' },
        unit: { type: 'string', description: 'The unit of temperature to return', enum: ['celsius', 'fahrenheit'] },
      },
      required: ['location'],
    },
  },
}
const asked = [
  { role: 'system', content: 'You are a helpful assistant that can answer to questions about the weather.' },
  { role: 'user', content: "What's the weather like in San Francisco?" },
]

describe('countMessageTokens', () => {
  verifies('C-01', "equals the usage that OpenAI's API reported: 129 tokens for gpt-4, 124 for gpt-4o", () => {
    expect(cost(older, jargon)).toBe(129)
    expect(cost(newer, jargon)).toBe(124)
  })

  it('counts role, content, name, tool calls and tool call id separately', () => {
    const user = { role: 'user', content: 'Hello world' }
    expect(countMessageTokens(newer, user)).toBe(3 + 1 + 2)
    expect(countMessageTokens(newer, { ...user, name: 'Ann' })).toBe(3 + 1 + 2 + 1 + newer.count('Ann'))
    const calls = [
      { id: 'c1', name: 'now', arguments: '{}' },
      { id: 'c2', name: 'sum', arguments: '[1,2]' },
    ]
    const texts = ['c1', 'now', '{}', 'c2', 'sum', '[1,2]'].reduce((sum, text) => sum + newer.count(text), 0)
    expect(countMessageTokens(newer, { role: 'assistant', content: null, toolCalls: calls })).toBe(
      3 + 1 + 2 * 17 + texts,
    )
    expect(countMessageTokens(newer, { role: 'tool', content: '12:00', toolCallId: 'c1' })).toBe(
      3 + 1 + newer.count('12:00') + newer.count('c1'),
    )
  })

  it('counts a tool call with at least its cost as JSON, as a parallel call and in the harmony format', () => {
    const call = { id: 'c1', name: 'search', arguments: '{}' }
    const priced =
      countMessageTokens(newer, { role: 'assistant', content: null, toolCalls: [call, call] }) -
      countMessageTokens(newer, { role: 'assistant', content: null })
    const json = newer.count(
      JSON.stringify(Array(2).fill({ id: 'c1', type: 'function', function: { name: 'search', arguments: '{}' } })),
    )
    const parallel = newer.count(
      ` to=multi_tool_use.parallel{"tool_uses":[${Array(2).fill('{"recipient_name":"functions.search","parameters":{}}').join(',')}]}`,
    )
    const special = 5
    const harmony =
      2 *
      (special +
        newer.count('assistant') +
        newer.count('commentary to=functions.search ') +
        newer.count('json') +
        newer.count('{}'))
    expect(priced).toBeGreaterThanOrEqual(Math.max(json, parallel, harmony))
  })

  it('adds no overhead for an estimator', () => {
    expect(countMessageTokens(chars4, { role: 'user', content: 'Hello world' })).toBe(1 + 3)
  })
})

describe('countToolTokens', () => {
  verifies('C-01', "equals the usage that OpenAI's API reported: 105 tokens for gpt-4, 101 for gpt-4o", () => {
    expect(cost(older, asked) + countToolTokens(older, [weather])).toBe(105)
    expect(cost(newer, asked) + countToolTokens(newer, [weather])).toBe(101)
  })

  it('without tools is 0', () => {
    expect(countToolTokens(newer, [])).toBe(0)
  })

  it('counts nested schemas and keywords that the formula does not cover', () => {
    const nested = (properties: object) => [
      { type: 'function', function: { name: 'f', parameters: { type: 'object', properties } } },
    ]
    const flat = countToolTokens(newer, nested({ a: { type: 'object' } }))
    expect(flat).toBe(12 + 7 + newer.count('f:') + 3 + 3 + newer.count('a:object:'))
    expect(
      countToolTokens(newer, nested({ a: { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] } })),
    ).toBe(flat + 3 + 3 + newer.count('b:string:'))
    expect(countToolTokens(newer, nested({ a: { type: 'object', pattern: '^x' } }))).toBe(
      flat + newer.count('{"pattern":"^x"}'),
    )
    expect(countToolTokens(newer, nested({ a: { type: 'object', items: { type: 'string', enum: ['x', 1] } } }))).toBe(
      flat + 3 + newer.count('items:string:') - 3 + 3 + newer.count('x') + 3 + newer.count('1'),
    )
  })

  it('counts anything but a function definition as JSON text, and never throws', () => {
    const custom = { type: 'web_search', filters: { allowed_domains: ['example.com'] } }
    expect(countToolTokens(newer, [custom])).toBe(12 + 7 + newer.count(JSON.stringify(custom)))
    const loop: Record<string, unknown> = { type: 'array' }
    loop.items = loop
    loop.properties = { loop }
    const odd = [
      null,
      7,
      'tool',
      [],
      {},
      undefined,
      1n,
      { type: 'function' },
      { type: 'function', function: { name: 'f', description: 4, parameters: [1] } },
      loop,
    ]
    const looped = {
      type: 'function',
      function: {
        name: 'f',
        parameters: { type: 'object', properties: { items: { type: 'array', items: loop.items } } },
      },
    }
    for (const tool of [...odd, looped]) expect(countToolTokens(newer, [tool])).toBeGreaterThanOrEqual(19)
  })

  verifies('X-01', 'with the upper bound is never below the count of either encoding', () => {
    for (const tokenizer of [older, newer])
      expect(countToolTokens(upperBound, [weather])).toBeGreaterThanOrEqual(countToolTokens(tokenizer, [weather]))
  })
})

describe('countPromptOverhead', () => {
  it('is the sum of instructions and tools', () => {
    const brief = { role: 'system', content: 'Be brief.' }
    expect(countPromptOverhead(newer, [brief], [])).toBe(7)
    expect(countPromptOverhead(newer, [brief, brief], [weather])).toBe(14 + countToolTokens(newer, [weather]))
  })

  it('counts up to 65,536 tokens and bounds the rest by its bytes', () => {
    const counted: string[] = []
    const count = (text: string): number => {
      counted.push(text)
      return newer.count(text)
    }
    const rule = { role: 'system', content: ' hello'.repeat(1_000) }
    const rules = Array.from({ length: 100 }, () => rule)
    // Counts 65 rules and the role of the next one; each later rule costs the bytes of its role and text.
    const cost = countPromptOverhead({ ...newer, count }, rules, [])
    expect(cost).toBe(66 * 1_004 + 34 * (3 + 'system'.length + 6_000))
    expect(counted.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(400_000)
    expect(countPromptOverhead(chars4, rules, [])).toBe(100 * countMessageTokens(chars4, rule))
  })
})
