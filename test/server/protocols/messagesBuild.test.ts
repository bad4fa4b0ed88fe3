import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import type { ChatMessage } from '../../../src/domain/ledger.ts'
import { HttpError, toErrorResponse } from '../../../src/server/http/httpError.ts'
import { messagesProtocol } from '../../../src/server/protocols/messages.ts'
import type { RequestBody } from '../../../src/server/protocols/protocol.ts'
import { chars4 } from '../../../src/text/estimators.ts'

const build = (body: RequestBody, memory: readonly ChatMessage[] = [], from?: number) =>
  messagesProtocol.buildRequest(messagesProtocol.parseRequest(body, chars4), memory, from)
const text = (value: string) => ({ type: 'text', text: value })
const cachedText = (value: string) => ({ ...text(value), cache_control: { type: 'ephemeral' } })
const question = { role: 'user', content: 'And now?' }
const assistantCall: ChatMessage = {
  role: 'assistant',
  content: 'I look.',
  tool_calls: [{ id: 't1', type: 'function', function: { name: 'now', arguments: '{}' } }],
}

describe('Anthropic upstream request', () => {
  it('without memory equals the client request', () => {
    const body = {
      model: 'claude-sonnet-5',
      max_tokens: 64,
      system: [cachedText('Be brief.')],
      messages: [
        { role: 'user', content: [cachedText('Hello')] },
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm.', signature: 's' }, text('Hi')] },
        { role: 'system', content: 'Hurry.' },
        { role: 'user', content: [{ type: 'of_tomorrow', a: 1 }, text('Well?')] },
      ],
      thinking: { type: 'enabled', budget_tokens: 1_024 },
      of_tomorrow: true,
    }
    expect(build(body, [], 0)).toEqual(body)
    expect(build({ system: 'Be brief.', messages: [question] })).toEqual({ system: 'Be brief.', messages: [question] })
  })

  it('places memory before the unchanged newest turn', () => {
    const own = { role: 'user', content: [cachedText('And now?')] }
    const list = [{ role: 'user', content: [cachedText('Old')] }, { role: 'assistant', content: 'Older' }, own]
    const memory: ChatMessage[] = [
      { role: 'user', content: 'My name is Ann.' },
      assistantCall,
      { role: 'tool', tool_call_id: 't1', content: '12:00' },
      { role: 'assistant', content: 'Noon.' },
    ]
    expect(build({ messages: list }, memory)).toEqual({
      messages: [
        { role: 'user', content: 'My name is Ann.' },
        { role: 'assistant', content: [text('I look.'), { type: 'tool_use', id: 't1', name: 'now', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: '12:00' }] },
        { role: 'assistant', content: 'Noon.' },
        own,
      ],
    })
    expect(build({ messages: list }, [], 1).messages).toEqual(list.slice(1))
  })

  it('appends memory instructions to the system prompt of the client', () => {
    const memory: ChatMessage[] = [{ role: 'system', content: 'Use memory.' }]
    expect(build({ system: [cachedText('Be brief.')], messages: [question] }, memory).system).toEqual([
      cachedText('Be brief.'),
      text('Use memory.'),
    ])
    expect(build({ system: 'Be brief.', messages: [question] }, memory).system).toEqual([
      text('Be brief.'),
      text('Use memory.'),
    ])
    expect(build({ system: '', messages: [question] }, memory).system).toEqual([text('Use memory.')])
    expect(build({ messages: [question] }, memory).system).toEqual([text('Use memory.')])
  })

  it('keeps instructions among replaced messages', () => {
    const list = [{ role: 'user', content: 'Old' }, { role: 'system', content: [cachedText('Hurry.')] }, question]
    expect(build({ system: 'Be brief.', messages: list }, [{ role: 'system', content: 'Use memory.' }])).toEqual({
      system: [text('Be brief.'), cachedText('Hurry.'), text('Use memory.')],
      messages: [question],
    })
  })

  it('merges recalled memory and the question into one user message', () => {
    const memory: ChatMessage[] = [{ role: 'user', content: 'Recalled.' }]
    expect(build({ messages: [question] }, memory).messages).toEqual([
      { role: 'user', content: [text('Recalled.'), text('And now?')] },
    ])
    expect(
      build(
        {
          messages: [
            { role: 'user', content: [cachedText('And now?')] },
            { role: 'assistant', content: 'So' },
          ],
        },
        memory,
      ).messages,
    ).toEqual([
      { role: 'user', content: [text('Recalled.'), cachedText('And now?')] },
      { role: 'assistant', content: 'So' },
    ])
  })

  it('replaces media placeholders with media that the client sends again', () => {
    const image = {
      type: 'image',
      source: { type: 'url', url: 'https://example.com/cat.png' },
      cache_control: { type: 'ephemeral' },
    }
    const imageMessage = { role: 'user', content: [image, text('Look!')] }
    const reply = { role: 'assistant', content: 'A cat.' }
    const placeholder = '[image https://example.com/cat.png]\nLook!'
    const memory: ChatMessage[] = [
      { role: 'user', content: placeholder },
      { role: 'assistant', content: 'A cat.' },
    ]
    expect(build({ messages: [imageMessage, reply, question] }, memory).messages).toEqual([
      imageMessage,
      reply,
      question,
    ])
    expect(
      build({ messages: [imageMessage, reply, question] }, [{ role: 'user', content: 'Recalled.' }, ...memory])
        .messages,
    ).toEqual([{ role: 'user', content: [text('Recalled.'), image, text('Look!')] }, reply, question])
    expect(build({ messages: [question] }, memory).messages).toEqual([
      { role: 'user', content: placeholder },
      reply,
      question,
    ])
  })

  it('keeps the placeholder of media that was sent beside tool results', () => {
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
    expect(build({ messages: [...list, { role: 'assistant', content: 'A cat.' }, question] }, memory).messages).toEqual(
      [...memory, question],
    )
  })

  it('places tool results directly after their calls in memory', () => {
    const own = { type: 'tool_result', tool_use_id: 't1', content: '12:00' }
    const recalled: ChatMessage = { role: 'user', content: 'Recalled.' }
    expect(
      build({ messages: [{ role: 'user', content: [own] }] }, [
        { role: 'user', content: 'What time is it?' },
        assistantCall,
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
    [new HttpError(400, 'missing_messages', 'm'), 'invalid_request_error'],
    [new HttpError(401, 'invalid_api_key', 'm'), 'authentication_error'],
    [new HttpError(403, 'origin_not_allowed', 'm'), 'permission_error'],
    [new HttpError(404, 'unknown_url', 'm'), 'not_found_error'],
    [new HttpError(413, 'body_too_large', 'm'), 'request_too_large'],
    [new HttpError(429, 'rate_limit_exceeded', 'm'), 'rate_limit_error'],
  ])('formats errors with Anthropic error types: %s is %s', (error, type) => {
    const { error: problem } = toErrorResponse(error)
    const { message } = problem
    expect(messagesProtocol.formatError(problem)).toEqual({ type: 'error', error: { type, message } })
    expect(messagesProtocol.formatErrorEvent(problem)).toBe(
      `event: error\ndata: {"type":"error","error":{"type":"${type}","message":${JSON.stringify(message)}}}\n\n`,
    )
  })

  it('with 4,000 tool results in one message › their payloads are created in linear time', () => {
    const content = Array.from({ length: 4_000 }, (_, index) => ({
      type: 'tool_result',
      tool_use_id: `call_${index}`,
      content: Array.from({ length: 20 }, () => ({ type: 'text', text: 'x' })),
    }))
    const message = { role: 'user', content }
    const request = messagesProtocol.parseRequest({ model: 'm', messages: [message] }, chars4)
    const payloads = request.messages.map((_, position) => messagesProtocol.payloadOf(request, position))
    expect(payloads[0]).toEqual({ protocol: 'messages', items: [message], count: 4_000 })
    expect(payloads.slice(1).every((payload) => payload?.items.length === 0)).toBe(true)
  })
})
