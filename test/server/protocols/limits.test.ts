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
    const results = repeat(10_001, { type: 'tool_result', tool_use_id: 'a', content: 'ok' })
    expect(countMessages(messagesProtocol, { messages: [{ role: 'user', content: results }] })).toBe(
      '400 too_many_messages messages: messages holds 10001 messages; one request may hold 10000. Leave the older ones to memory.',
    )
  })

  it('do not apply to a request that bypasses memory', () => {
    expect(chatProtocol.parseRequest({ model: 'm', messages: repeat(20_000, hello) }, tokenizer).model).toBe('m')
  })
})
