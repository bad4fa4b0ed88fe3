import { describe, expect, it } from 'vitest'
import { HttpError } from '../../../src/server/http/httpError.ts'
import { chatProtocol } from '../../../src/server/protocols/chat.ts'
import { messagesProtocol } from '../../../src/server/protocols/messages.ts'
import type { Protocol, RequestBody } from '../../../src/server/protocols/protocol.ts'
import { responsesProtocol } from '../../../src/server/protocols/responses.ts'
import { exactTokenizer } from '../../../src/tokenizers/tokenizers.ts'

const tokenizer = await exactTokenizer('o200k_base')
const hello = { role: 'user', content: 'Hello' }
const repeat = <T>(count: number, value: T): readonly T[] => Array.from({ length: count }, () => value)
const tool = { type: 'function', name: 'now', function: { name: 'now' }, input_schema: {} }

/** Returns the number of parsed messages, or the error. */
function countMessages(protocol: Protocol, body: RequestBody): number | string {
  try {
    return protocol.parseRequest(body, tokenizer).messages.length
  } catch (error) {
    return error instanceof HttpError ? `${error.status} ${error.code} ${error.param}: ${error.message}` : String(error)
  }
}

describe('the limit of a reply', () => {
  const tooLong = 'x'.repeat(8_000_001)
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: tooLong } }
  const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: tooLong }] }]
  it.each([
    [chatProtocol, { choices: [{ message: { role: 'assistant', content: tooLong } }] }],
    [chatProtocol, { choices: [{ message: { role: 'assistant', content: null, tool_calls: [call] } }] }],
    [messagesProtocol, { content: [{ type: 'text', text: tooLong }] }],
    [messagesProtocol, { content: [{ type: 'tool_use', id: 'a', name: 'f', input: { text: tooLong } }] }],
    [responsesProtocol, { output }],
    [responsesProtocol, { output: [{ type: 'function_call', call_id: 'a', name: 'f', arguments: tooLong }] }],
  ] as const)(
    '[R-03] with over 8,000,000 characters at once › is an error of the upstream: $path',
    (protocol, reply) => {
      expect(() => protocol.parseReply(JSON.stringify(reply), 'upstream')).toThrow(
        expect.objectContaining({ code: 'upstream', message: expect.stringContaining('more than 8000000 characters') }),
      )
    },
  )
})

describe('request limits', () => {
  it.each([
    [chatProtocol, 'messages'],
    [messagesProtocol, 'messages'],
    [responsesProtocol, 'input'],
  ] as const)('allow 10,000 messages and 2,000 tools: $path', (protocol, field) => {
    expect(countMessages(protocol, { [field]: repeat(10_000, hello), tools: repeat(2_000, tool) })).toBe(10_000)
    expect(countMessages(protocol, { [field]: repeat(10_001, hello) })).toBe(
      `400 too_many_messages ${field}: ${field} holds 10001 messages; one request may hold 10000. Leave the older ones to memory.`,
    )
    expect(countMessages(protocol, { [field]: [hello], tools: repeat(2_001, tool) })).toBe(
      '400 too_many_tools tools: tools holds 2001 tools; one request may hold 2000. Send those that are needed now.',
    )
  })

  it('count each tool result as a message', () => {
    const results = repeat(3_400, { type: 'tool_result', tool_use_id: 'a', content: 'ok' })
    expect(countMessages(messagesProtocol, { messages: repeat(3, { role: 'user', content: results }) })).toBe(
      '400 too_many_messages messages: messages holds 10200 messages; one request may hold 10000. Leave the older ones to memory.',
    )
  })

  it.each([
    [chatProtocol, 'messages', 'text'],
    [messagesProtocol, 'messages', 'text'],
    [responsesProtocol, 'input', 'input_text'],
  ] as const)('allow 4,000 parts in a message: $path', (protocol, field, type) => {
    const count = (parts: number) =>
      countMessages(protocol, { [field]: [{ role: 'user', content: repeat(parts, { type, text: 'a' }) }] })
    expect(count(4_000)).toBe(1)
    expect(count(4_001)).toMatch(
      /^400 too_many_parts .*content: .*content holds 4001 parts; one message may hold 4000\. Join the texts of adjacent parts\.$/,
    )
  })

  it('allow 4,000 tool calls in a message', () => {
    const calls = (count: number) => ({
      role: 'assistant',
      tool_calls: repeat(count, { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }),
    })
    expect(countMessages(chatProtocol, { messages: [hello, calls(4_000), hello] })).toBe(3)
    expect(countMessages(chatProtocol, { messages: [hello, calls(4_001), hello] })).toBe(
      '400 too_many_tool_calls tool_calls: tool_calls holds 4001 tool calls; one message may hold 4000. Divide them among several messages.',
    )
  })

  it.each([
    [chatProtocol, (text: string) => ({ messages: [{ role: 'user', content: text }] })],
    [chatProtocol, (text: string) => ({ messages: [{ role: 'system', content: text }, hello] })],
    [chatProtocol, (text: string) => ({ messages: [{ role: 'tool', tool_call_id: 'a', content: text }] })],
    [
      chatProtocol,
      (text: string) => ({
        messages: [
          { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: text } }] },
        ],
      }),
    ],
    [messagesProtocol, (text: string) => ({ system: text, messages: [hello] })],
    [
      messagesProtocol,
      (text: string) => ({
        system: [text.slice(0, 5_000_000), text.slice(5_000_000)].map((part) => ({ type: 'text', text: part })),
        messages: [hello],
      }),
    ],
    [
      messagesProtocol,
      (text: string) => ({
        messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: text }] }],
      }),
    ],
    [responsesProtocol, (text: string) => ({ instructions: text, input: 'Hello' })],
    [responsesProtocol, (text: string) => ({ input: text })],
  ] as const)('[R-03] allow 8,000,000 characters in a text: $path, $1', (protocol, create) => {
    expect(countMessages(protocol, create('x'.repeat(8_000_000)))).toBeTypeOf('number')
    expect(countMessages(protocol, create('x'.repeat(8_000_001)))).toMatch(
      /^MemoryError: [\w[\].]+ has 8000001 characters; it may have 8000000\./,
    )
  })

  it('do not apply to a request that bypasses memory', () => {
    expect(chatProtocol.parseRequest({ model: 'm', messages: repeat(20_000, hello) }, tokenizer).model).toBe('m')
  })
})
