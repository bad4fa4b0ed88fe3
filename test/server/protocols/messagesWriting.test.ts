import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import type { ChatMessage } from '../../../src/domain/ledger.ts'
import { problemOf, Refusal } from '../../../src/server/http/httpError.ts'
import type { Body } from '../../../src/server/protocols/dialect.ts'
import { messages } from '../../../src/server/protocols/messages.ts'
import { chars4 } from '../../../src/text/estimators.ts'

const write = (body: Body, memory: readonly ChatMessage[] = [], from?: number) =>
  messages.write(messages.read(body, chars4), memory, from)
const text = (words: string) => ({ type: 'text', text: words })
const marked = (words: string) => ({ ...text(words), cache_control: { type: 'ephemeral' } })
const asked = { role: 'user', content: 'And now?' }
const calling: ChatMessage = {
  role: 'assistant',
  content: 'I look.',
  tool_calls: [{ id: 't1', type: 'function', function: { name: 'now', arguments: '{}' } }],
}

describe('a request for a message, as it goes to the model', () => {
  it('is the same when memory has nothing to add', () => {
    const body = {
      model: 'claude-sonnet-5',
      max_tokens: 64,
      system: [marked('Be brief.')],
      messages: [
        { role: 'user', content: [marked('Hello')] },
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 's' }, text('Hi')] },
        { role: 'system', content: 'Hurry.' },
        { role: 'user', content: [{ type: 'of_tomorrow', a: 1 }, text('Well?')] },
      ],
      thinking: { type: 'enabled', budget_tokens: 1_024 },
      of_tomorrow: true,
    }
    expect(write(body, [], 0)).toEqual(body)
    expect(write({ system: 'Be brief.', messages: [asked] })).toEqual({ system: 'Be brief.', messages: [asked] })
  })

  it('has memory before the newest turn, which is as it was sent', () => {
    const own = { role: 'user', content: [marked('And now?')] }
    const list = [{ role: 'user', content: [marked('Old')] }, { role: 'assistant', content: 'Older' }, own]
    const memory: ChatMessage[] = [
      { role: 'user', content: 'My name is Ann.' },
      calling,
      { role: 'tool', tool_call_id: 't1', content: '12:00' },
      { role: 'assistant', content: 'Noon.' },
    ]
    expect(write({ messages: list }, memory)).toEqual({
      messages: [
        { role: 'user', content: 'My name is Ann.' },
        { role: 'assistant', content: [text('I look.'), { type: 'tool_use', id: 't1', name: 'now', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: '12:00' }] },
        { role: 'assistant', content: 'Noon.' },
        own,
      ],
    })
    expect(write({ messages: list }, [], 1).messages).toEqual(list.slice(1))
  })

  it('is told what memory says to the system after the client has been heard', () => {
    const memory: ChatMessage[] = [{ role: 'system', content: 'Use memory.' }]
    expect(write({ system: [marked('Be brief.')], messages: [asked] }, memory).system).toEqual([
      marked('Be brief.'),
      text('Use memory.'),
    ])
    expect(write({ system: 'Be brief.', messages: [asked] }, memory).system).toEqual([
      text('Be brief.'),
      text('Use memory.'),
    ])
    expect(write({ system: '', messages: [asked] }, memory).system).toEqual([text('Use memory.')])
    expect(write({ messages: [asked] }, memory).system).toEqual([text('Use memory.')])
  })

  it('keeps instructions that stand among messages which memory replaces', () => {
    const list = [{ role: 'user', content: 'Old' }, { role: 'system', content: [marked('Hurry.')] }, asked]
    expect(write({ system: 'Be brief.', messages: list }, [{ role: 'system', content: 'Use memory.' }])).toEqual({
      system: [text('Be brief.'), marked('Hurry.'), text('Use memory.')],
      messages: [asked],
    })
  })

  it('makes one turn of what memory recalls and what the user asks', () => {
    const memory: ChatMessage[] = [{ role: 'user', content: 'Recalled.' }]
    expect(write({ messages: [asked] }, memory).messages).toEqual([
      { role: 'user', content: [text('Recalled.'), text('And now?')] },
    ])
    expect(
      write(
        {
          messages: [
            { role: 'user', content: [marked('And now?')] },
            { role: 'assistant', content: 'So' },
          ],
        },
        memory,
      ).messages,
    ).toEqual([
      { role: 'user', content: [text('Recalled.'), marked('And now?')] },
      { role: 'assistant', content: 'So' },
    ])
  })

  it('shows pictures that the client sends again where memory has words for them', () => {
    const image = {
      type: 'image',
      source: { type: 'url', url: 'https://example.com/cat.png' },
      cache_control: { type: 'ephemeral' },
    }
    const picture = { role: 'user', content: [image, text('Look!')] }
    const reply = { role: 'assistant', content: 'A cat.' }
    const words = '[image https://example.com/cat.png]\nLook!'
    const memory: ChatMessage[] = [
      { role: 'user', content: words },
      { role: 'assistant', content: 'A cat.' },
    ]
    expect(write({ messages: [picture, reply, asked] }, memory).messages).toEqual([picture, reply, asked])
    expect(
      write({ messages: [picture, reply, asked] }, [{ role: 'user', content: 'Recalled.' }, ...memory]).messages,
    ).toEqual([{ role: 'user', content: [text('Recalled.'), image, text('Look!')] }, reply, asked])
    expect(write({ messages: [asked] }, memory).messages).toEqual([{ role: 'user', content: words }, reply, asked])
  })

  it('shows words alone where results of tools stood beside the picture', () => {
    const image = { type: 'image', source: { type: 'url', url: 'https://example.com/cat.png' } }
    const own = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: '12:00' }, image] }
    const memory: ChatMessage[] = [
      { role: 'user', content: '[image https://example.com/cat.png]' },
      { role: 'assistant', content: 'A cat.' },
    ]
    const list = [
      { role: 'user', content: 'Old' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'now', input: {} }] },
      own,
    ]
    expect(write({ messages: [...list, { role: 'assistant', content: 'A cat.' }, asked] }, memory).messages).toEqual([
      ...memory,
      asked,
    ])
  })

  it('has results right after the calls that memory knows', () => {
    const own = { type: 'tool_result', tool_use_id: 't1', content: '12:00' }
    const recalled: ChatMessage = { role: 'user', content: 'Recalled.' }
    expect(
      write({ messages: [{ role: 'user', content: [own] }] }, [
        { role: 'user', content: 'What time is it?' },
        calling,
        recalled,
      ]).messages,
    ).toEqual([
      { role: 'user', content: 'What time is it?' },
      { role: 'assistant', content: [text('I look.'), { type: 'tool_use', id: 't1', name: 'now', input: {} }] },
      { role: 'user', content: [own, text('Recalled.')] },
    ])
  })

  it.each([
    [new MemoryError('bad-key', 'm'), 'invalid_request_error'],
    [new MemoryError('conflict', 'm'), 'invalid_request_error'],
    [new MemoryError('full', 'm'), 'rate_limit_error'],
    [new MemoryError('closed', 'm'), 'overloaded_error'],
    [new MemoryError('not-durable', 'm'), 'api_error'],
    [new MemoryError('upstream', 'm'), 'api_error'],
    [new MemoryError('timeout', 'm'), 'timeout_error'],
    [new Refusal(400, 'missing_messages', 'm'), 'invalid_request_error'],
    [new Refusal(401, 'invalid_api_key', 'm'), 'authentication_error'],
    [new Refusal(403, 'origin_not_allowed', 'm'), 'permission_error'],
    [new Refusal(404, 'unknown_url', 'm'), 'not_found_error'],
    [new Refusal(413, 'body_too_large', 'm'), 'request_too_large'],
    [new Refusal(429, 'rate_limit_exceeded', 'm'), 'rate_limit_error'],
  ])('fails in the words of its protocol: %s is %s', (error, type) => {
    const { error: problem } = problemOf(error)
    expect(messages.problem(problem)).toEqual({ type: 'error', error: { type, message: 'm' } })
    expect(messages.failure(problem)).toBe(
      `event: error\ndata: {"type":"error","error":{"type":"${type}","message":"m"}}\n\n`,
    )
  })
})
