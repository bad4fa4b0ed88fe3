import { describe, expect, it } from 'vitest'
import { Refusal } from '../../../src/server/http/httpError.ts'
import { chat } from '../../../src/server/protocols/chat.ts'
import type { Body, Dialect } from '../../../src/server/protocols/dialect.ts'
import { messages } from '../../../src/server/protocols/messages.ts'
import { responses } from '../../../src/server/protocols/responses.ts'
import { exactTokenizer } from '../../../src/tokenizers/tokenizers.ts'

const tokenizer = await exactTokenizer('o200k_base')
const hello = { role: 'user', content: 'Hello' }
const many = <T>(count: number, one: T): readonly T[] => Array.from({ length: count }, () => one)
const tool = { type: 'function', name: 'now', function: { name: 'now' }, input_schema: {} }

/** How much of the conversation is read, or why none of it is. */
function read(dialect: Dialect, body: Body): number | string {
  try {
    return dialect.read(body, tokenizer).said.length
  } catch (error) {
    return error instanceof Refusal ? `${error.status} ${error.code} ${error.param}: ${error.message}` : String(error)
  }
}

describe('one request', () => {
  it.each([
    [chat, 'messages'],
    [messages, 'messages'],
    [responses, 'input'],
  ] as const)('may hold 10,000 messages and 2,000 tools and no more: $path', (dialect, field) => {
    expect(read(dialect, { [field]: many(10_000, hello), tools: many(2_000, tool) })).toBe(10_000)
    expect(read(dialect, { [field]: many(10_001, hello) })).toBe(
      `400 too_many_messages ${field}: ${field} holds 10001 messages; one request may hold 10000. Leave the older ones to memory.`,
    )
    expect(read(dialect, { [field]: [hello], tools: many(2_001, tool) })).toBe(
      '400 too_many_tools tools: tools holds 2001 tools; one request may hold 2000. Send those that are needed now.',
    )
  })

  it('may not hold more results of tools than messages, however few messages they stand in', () => {
    const results = many(10_001, { type: 'tool_result', tool_use_id: 'a', content: 'ok' })
    expect(read(messages, { messages: [{ role: 'user', content: results }] })).toBe(
      '400 too_many_messages messages: messages holds 10001 messages; one request may hold 10000. Leave the older ones to memory.',
    )
  })

  it('that memory takes no part in may hold whatever it likes', () => {
    expect(chat.read({ model: 'm', messages: many(20_000, hello) }, tokenizer).model).toBe('m')
  })
})
