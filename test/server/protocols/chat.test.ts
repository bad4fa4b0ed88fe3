import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../../src/domain/ledger.ts'
import { chatProtocol } from '../../../src/server/protocols/chat.ts'
import type { ClientMessage, RequestBody } from '../../../src/server/protocols/protocol.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { verifies } from '../../requirements/verifies.ts'
import { parseStream } from './replyFixtures.ts'

const parse = (body: RequestBody) => chatProtocol.parseRequest(body, chars4)
const expectMessages = (messages: unknown, expected: readonly Omit<ClientMessage, 'at'>[]): void =>
  expect(parse({ messages }).messages.map(({ at: _at, ...message }) => message)).toEqual(expected)
const build = (body: RequestBody, memory: readonly ChatMessage[]) =>
  chatProtocol.buildRequest(parse(body), memory).messages
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: string) => ({ role: 'assistant', content })
const toolCall = (id: string, name: string, text: string): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: text } }],
})

/** Call of a custom tool, which takes text, and a deprecated function call. */
const customCall = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'code', input: 'print("1")' } }],
}
const functionCall = { role: 'assistant', content: null, function_call: { name: 'now', arguments: '{"zone":"UTC"}' } }
const result = { role: 'tool', tool_call_id: 'c1', content: '1' }
const functionResult = { role: 'function', name: 'now', content: '12:00' }

verifies('T-09', 'a data: URL in an image part › is a file unless its type is image, audio or video', () => {
  const filesOf = (type: string) =>
    parse({
      messages: [user([{ type: 'image_url', image_url: { url: `data:${type};base64,aGVsbG8=` } }])],
    }).files.map(({ mediaType }) => mediaType)
  const conversation = ['image/png', 'image/svg+xml', 'audio/wav', 'video/mp4']
  const files = ['application/pdf', 'application/octet-stream', 'application/image', 'text/plain', 'x-image/png']
  expect(conversation.flatMap(filesOf)).toEqual([])
  expect(files.flatMap(filesOf)).toEqual(files)
})

describe('chat completion request', () => {
  it('converts custom tool calls and deprecated function calls', () => {
    expectMessages(
      [user('Go on'), customCall, result, functionCall, functionResult],
      [
        { role: 'user', content: 'Go on', index: 0 },
        {
          role: 'assistant',
          content: '',
          toolCalls: [{ id: 'c1', name: 'code', arguments: '{"input":"print(\\"1\\")"}' }],
          index: 1,
        },
        { role: 'tool', content: '1', toolCallId: 'c1', index: 2 },
        {
          role: 'assistant',
          content: '',
          toolCalls: [{ id: 'now', name: 'now', arguments: '{"zone":"UTC"}' }],
          index: 3,
        },
        { role: 'tool', content: '12:00', toolCallId: 'now', index: 4 },
      ],
    )
  })

  it('restores calls of custom tools that the client declares', () => {
    const memory: ChatMessage[] = [
      toolCall('c1', 'code', '{"input":"print(\\"1\\")"}'),
      { role: 'tool', tool_call_id: 'c1', content: '1' },
      toolCall('c2', 'now', '{}'),
      { role: 'tool', tool_call_id: 'c2', content: '12:00' },
      assistant('One.') as ChatMessage,
    ]
    expect(build({ messages: [user('Why?')], tools: [{ type: 'custom', custom: { name: 'code' } }] }, memory)).toEqual([
      customCall,
      ...memory.slice(1),
      user('Why?'),
    ])
    expect(build({ messages: [user('Why?')] }, memory)).toEqual([...memory, user('Why?')])
  })

  it('restores deprecated function calls for a client without tools', () => {
    const memory: ChatMessage[] = [
      toolCall('now', 'now', '{"zone":"UTC"}'),
      { role: 'tool', tool_call_id: 'now', content: '12:00' },
      toolCall('c2', 'now', '{}'),
      { role: 'tool', tool_call_id: 'c2', content: '12:00' },
    ]
    const functions = [{ name: 'now', parameters: {} }]
    expect(build({ messages: [user('Why?')], functions }, memory)).toEqual([
      functionCall,
      functionResult,
      ...memory.slice(2),
      user('Why?'),
    ])
    expect(build({ messages: [user('Why?')], functions, tools: [] }, memory)).toEqual([...memory, user('Why?')])
  })

  it('starts the turn with the last run of user messages, except at the start of the list', () => {
    const findTurn = (...messages: unknown[]) => parse({ messages }).turnStart
    expect(
      findTurn(user('Old'), assistant('Yes'), { role: 'system', content: 'Hm' }, user('Look:'), user('What is it?')),
    ).toBe(3)
    expect(findTurn(user('Old'), assistant('Yes'), user('Look:'), user('What is it?'), customCall, result)).toBe(2)
    expect(findTurn(user('Look:'), user('What is it?'))).toBe(1)
    expect(findTurn({ role: 'system', content: 'Hm' }, result)).toBe(1)
    expect(findTurn({ role: 'system', content: 'Hm' })).toBe(1)
  })

  it('replaces media placeholders with media that the client sends again', () => {
    const imageMessage = {
      role: 'user',
      name: 'ann',
      content: [{ type: 'image_url', image_url: { url: 'https://example.com/cat.png', detail: 'low' } }],
    }
    const textMessage = user([{ type: 'text', text: 'Hello', extra: true }])
    const memory: ChatMessage[] = [
      { role: 'user', content: '[image https://example.com/cat.png]', name: 'ann' },
      { role: 'assistant', content: '[image https://example.com/cat.png]' },
      { role: 'user', content: 'Hello' },
      { role: 'user', content: 'Before that: [image https://example.com/cat.png]' },
    ]
    const messages = [imageMessage, assistant('A cat.'), textMessage, assistant('Hi.'), user('And now?')]
    expect(build({ messages }, memory)).toEqual([imageMessage, ...memory.slice(1), user('And now?')])
    expect(build({ messages: [user('And now?')] }, memory)).toEqual([...memory, user('And now?')])
  })

  it('is not validated until its conversation is read', () => {
    const { model, isStreaming, maxTokens, sessionHint } = parse({
      model: 'gpt-5',
      stream: true,
      max_tokens: 9,
      user: 'ann',
      messages: 'Hello',
    })
    expect([model, isStreaming, maxTokens, sessionHint]).toEqual(['gpt-5', true, 9, 'ann'])
  })
})

describe('chat completion reply', () => {
  const replyWithCall = (id: string, name: string, text: string) => ({
    role: 'assistant',
    content: '',
    tool_calls: [{ id, type: 'function', function: { name, arguments: text } }],
  })
  const parseReply = (message: unknown) =>
    chatProtocol.parseReply(JSON.stringify({ choices: [{ index: 0, message }] }), 'upstream').message
  const parseDeltas = (...deltas: unknown[]) =>
    parseStream(
      chatProtocol.createReplyParser('upstream'),
      deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`).join(''),
    ).message

  it('with custom tool calls yields function calls', () => {
    expect(parseReply(customCall)).toEqual(replyWithCall('c1', 'code', '{"input":"print(\\"1\\")"}'))
    expect(
      parseDeltas(
        { tool_calls: [{ index: 0, id: 'c1', type: 'custom', custom: { name: 'code', input: '' } }] },
        { tool_calls: [{ index: 0, custom: { input: 'print(' } }] },
        { tool_calls: [{ index: 0, custom: { input: '"1")' } }] },
      ),
    ).toEqual(replyWithCall('c1', 'code', '{"input":"print(\\"1\\")"}'))
  })

  it('with deprecated function calls yields function calls', () => {
    expect(parseReply(functionCall)).toEqual(replyWithCall('now', 'now', '{"zone":"UTC"}'))
    expect(
      parseDeltas(
        { function_call: { name: 'now', arguments: '' } },
        { function_call: { arguments: '{"zone"' } },
        { function_call: { arguments: ':"UTC"}' } },
      ),
    ).toEqual(replyWithCall('now', 'now', '{"zone":"UTC"}'))
  })

  it('with the same call in both forms yields it once', () => {
    const both = {
      tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'now', arguments: '{}' } }],
      function_call: { name: 'now', arguments: '{}' },
    }
    expect(parseReply({ role: 'assistant', content: null, ...both })).toEqual(replyWithCall('c1', 'now', '{}'))
    expect(parseDeltas(both)).toEqual(replyWithCall('c1', 'now', '{}'))
  })
})
