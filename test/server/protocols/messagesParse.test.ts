import { describe, expect, it } from 'vitest'
import { messagesProtocol } from '../../../src/server/protocols/messages.ts'
import type { ClientMessage, FilePart, ParsedRequest, RequestBody } from '../../../src/server/protocols/protocol.ts'
import { chars4 } from '../../../src/text/estimators.ts'

const parse = (body: RequestBody) => messagesProtocol.parseRequest(body, chars4)
const expectRequest = (body: RequestBody, expected: Partial<ParsedRequest>): void =>
  expect(parse(body)).toMatchObject(expected)
const parseMessages = (list: unknown) =>
  parse({ messages: list }).messages.map(({ at: _at, partEnds: _partEnds, ...message }) => message)
const expectMessages = (list: unknown, expected: readonly Omit<ClientMessage, 'at' | 'partEnds'>[]): void =>
  expect(parseMessages(list)).toEqual(expected)
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: unknown) => ({ role: 'assistant', content })
const text = (value: string) => ({ type: 'text', text: value })
const toolUse = (id: string) => ({ type: 'tool_use', id, name: 'weather', input: { city: 'Bern' } })
const toolResult = (id: string, content: unknown = 'sunny') => ({ type: 'tool_result', tool_use_id: id, content })

describe('Anthropic request', () => {
  it('yields the fields that memory needs', () => {
    const tools = [{ name: 'weather', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } }]
    const body = { model: 'claude-sonnet-5', max_tokens: 64, stream: true, tools, messages: [user('Hello')] }
    const request = parse(body)
    expectRequest(body, {
      model: 'claude-sonnet-5',
      maxTokens: 64,
      isStreaming: true,
      turnStart: 0,
      hasTools: true,
      files: [],
      sessionHint: undefined,
    })
    const expected: readonly ClientMessage[] = [{ role: 'user', content: 'Hello', at: 0, index: 0 }]
    expect(request.messages).toEqual(expected)
    expect(request.promptOverheadTokens).toBe(
      parse({ messages: [user('Hello')], tools: [{ name: 'weather', input_schema: { type: 'object' } }] })
        .promptOverheadTokens,
    )
    expect(request.promptOverheadTokens).toBeGreaterThan(0)
  })

  it('separates instructions from the conversation', () => {
    const list = [user('Hello'), { role: 'system', content: [text('Hurry.')] }]
    expectRequest(
      { system: 'Be brief.', messages: list },
      {
        instructions: ['Be brief.', 'Hurry.'],
        promptOverheadTokens: 2 + 3 + (2 + 2),
        turnStart: 0,
      },
    )
    expect(
      parse({
        system: [text('Be brief.'), { ...text('Be kind.'), cache_control: { type: 'ephemeral' } }],
        messages: list,
      }).instructions,
    ).toEqual(['Be brief.', 'Be kind.', 'Hurry.'])
    expectMessages(list, [{ role: 'user', content: 'Hello', index: 0 }])
  })

  it.each([
    ['ann', 'ann'],
    ['user_ab12_account__session_5b1b9fd0-8b3e-4d2c-9e55-0d7c4a4c8a11', '5b1b9fd0-8b3e-4d2c-9e55-0d7c4a4c8a11'],
    ['{"device_id":"d","account_uuid":"","session_id":"5b1b9fd0"}', '5b1b9fd0'],
    ['{"device_id":"d"}', '{"device_id":"d"}'],
    ['', undefined],
  ])('reads the session from metadata.user_id: %s', (userId, session) => {
    expect(parse({ messages: [user('Hello')], metadata: { user_id: userId } }).sessionHint).toBe(session)
  })

  it('splits tool results and text into messages with the index of their source', () => {
    const thinking = { type: 'thinking', thinking: 'Hm.', signature: 's' }
    const list = [
      user('How is the weather?'),
      assistant([thinking, text('I '), text('look.'), toolUse('t1'), toolUse('t2')]),
      user([toolResult('t1'), { ...toolResult('t2', [text('no'), text('net')]), is_error: true }, text('Well?')]),
      assistant([{ type: 'redacted_thinking', data: 'x' }]),
      assistant('Sunny.'),
    ]
    const calls = ['t1', 't2'].map((id) => ({ id, name: 'weather', arguments: '{"city":"Bern"}' }))
    expectMessages(list, [
      { role: 'user', content: 'How is the weather?', index: 0 },
      { role: 'assistant', content: 'I look.', toolCalls: calls, index: 1 },
      { role: 'tool', content: 'sunny', toolCallId: 't1', index: 2 },
      { role: 'tool', content: '[error]\nno\nnet', toolCallId: 't2', index: 2 },
      { role: 'user', content: 'Well?', index: 2 },
      { role: 'assistant', content: 'Sunny.', index: 4 },
    ])
  })

  it('converts media and server tools to placeholders', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const searchResult = {
      type: 'search_result',
      source: 'https://example.com',
      title: 'Cats',
      content: [text('Cats purr.')],
    }
    const list = [
      user([
        text('Look:'),
        image,
        { type: 'image', source: { type: 'url', url: 'https://example.com/cat.png' } },
        searchResult,
      ]),
      assistant([
        text('Let me see.'),
        { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'cats' } },
        { type: 'web_search_tool_result', tool_use_id: 's1', content: [] },
        text('Cats '),
        { ...text('purr.'), citations: [] },
      ]),
      user([
        { type: 'tool_result', tool_use_id: 't1', content: [image] },
        { type: 'tool_result', tool_use_id: 't2' },
      ]),
    ]
    expect(parseMessages(list).map(({ content }) => content)).toEqual([
      'Look:\n[image, 3 bytes, sha256 709e80c88487a241]\n[image https://example.com/cat.png]\n[search result https://example.com]\nCats purr.',
      'Let me see.\n[web_search]\n[web_search_tool_result]\nCats purr.',
      '[image, 3 bytes, sha256 709e80c88487a241]',
      '',
    ])
  })

  it('collects files', () => {
    const document = (source: unknown, title?: string) => ({ type: 'document', source, title })
    const content = [
      document({ type: 'base64', media_type: 'application/pdf', data: 'JVBERg==' }, 'a.pdf'),
      document({ type: 'text', media_type: 'text/plain', data: 'Hello, wörld' }),
      document({ type: 'content', content: [text('One'), text('Two')] }),
      document({ type: 'url', url: 'https://example.com/b.pdf' }),
      { type: 'container_upload', file_id: 'file_1' },
      { type: 'image', source: { type: 'base64', media_type: 'application/zip', data: 'AAAA' } },
    ]
    const expected: readonly FilePart[] = [
      { name: 'a.pdf', mediaType: 'application/pdf', bytes: Buffer.from('%PDF') },
      { name: 'file', mediaType: 'text/plain', bytes: Buffer.from('Hello, wörld') },
      { name: 'file', mediaType: 'text/plain', bytes: Buffer.from('One\nTwo') },
      { name: 'file', mediaType: '', bytes: undefined },
      { name: 'file', mediaType: '', bytes: undefined },
      { name: 'file', mediaType: 'application/zip', bytes: Buffer.alloc(3) },
    ]
    expect(parse({ messages: [user(content)] }).files).toEqual(expected)
  })

  it('starts the turn with a user message without tool results', () => {
    const toolRound = [assistant([toolUse('t1')]), user([toolResult('t1')])]
    const findTurn = (list: unknown) => parse({ messages: list }).turnStart
    expect(findTurn([user('Old'), assistant('Yes'), user('New'), ...toolRound])).toBe(2)
    expect(
      findTurn([
        user('Old'),
        assistant('Yes'),
        user('New'),
        assistant([toolUse('t1')]),
        user([toolResult('t1'), text('Hurry.')]),
        ...toolRound,
      ]),
    ).toBe(2)
    expect(
      findTurn([
        { role: 'system', content: 'Hm' },
        assistant([toolUse('t1')]),
        user([toolResult('t1'), text('Hurry.')]),
      ]),
    ).toBe(1)
    expect(findTurn([user([toolResult('t1')]), user([toolResult('t2')])])).toBe(0)
    expect(findTurn([{ role: 'system', content: 'Hm' }])).toBe(1)
  })

  it('starts the turn with the last run of user messages, except at the start of the list', () => {
    const findTurn = (list: unknown) => parse({ messages: list }).turnStart
    expect(
      findTurn([user('Old'), assistant('Yes'), { role: 'system', content: 'Hm' }, user('Look:'), user('What is it?')]),
    ).toBe(3)
    expect(
      findTurn([user('Old'), assistant([toolUse('t1')]), user([toolResult('t1')]), user('Look:'), user('What is it?')]),
    ).toBe(3)
    expect(findTurn([user('Look:'), user('What is it?'), assistant('It is')])).toBe(1)
    expect(findTurn([user('Look:'), user('What is it?')])).toBe(1)
  })

  it('is not validated until its conversation is read', () => {
    const { model, isStreaming, maxTokens } = parse({
      model: 'claude-sonnet-5',
      max_tokens: 9,
      messages: 'Hello',
      system: 7,
    })
    expect([model, isStreaming, maxTokens]).toEqual(['claude-sonnet-5', false, 9])
  })

  it.each([
    [
      {},
      'messages is missing: it must be a list with at least one message such as { "role": "user", "content": "Hello" }.',
    ],
    [{ messages: ['Hello'] }, 'messages[0] must be an object such as { "role": "user", "content": "Hello" }.'],
    [
      { messages: [{ role: 'tool', content: 'x' }] },
      'messages[0].role is "tool"; it must be one of user, assistant, system.',
    ],
    [{ messages: [{ role: 'user' }] }, 'messages[0].content must be text or a list.'],
    [
      { messages: [user(['x'])] },
      'messages[0].content[0] must be an object such as { "type": "text", "text": "Hello" }.',
    ],
    [{ messages: [user([{ type: 'text' }])] }, 'messages[0].content[0].text must be text.'],
    [
      { messages: [user([{ type: 'tool_result' }])] },
      'messages[0].content[0].tool_use_id must be text that is not empty; it names the call a result answers.',
    ],
    [{ messages: [user([toolResult('t1', 7)])] }, 'messages[0].content[0].content must be text or a list.'],
    [
      { messages: [assistant([{ ...toolUse('t1'), id: '' }])] },
      'messages[0].content[0].id must be text that is not empty; it names the call.',
    ],
    [
      { messages: [assistant([{ ...toolUse('t1'), name: 7 }])] },
      'messages[0].content[0].name must be text that is not empty; it names the tool.',
    ],
    [{ messages: [user('Hello')], system: 7 }, 'system must be text or a list.'],
  ])('with invalid fields is rejected: %j', (body, message) => {
    expect(() => parse(body).messages).toThrow(message)
  })
})
