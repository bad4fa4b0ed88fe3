import { describe, expect, it } from 'vitest'
import type { Body } from '../../../src/server/protocols/dialect.ts'
import { messages } from '../../../src/server/protocols/messages.ts'
import { chars4 } from '../../../src/text/estimators.ts'

const read = (body: Body) => messages.read(body, chars4)
/** What was said, without the times nobody gave. */
const said = (list: unknown) => read({ messages: list }).said.map(({ at: _at, ...message }) => message)
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: unknown) => ({ role: 'assistant', content })
const text = (words: string) => ({ type: 'text', text: words })
const use = (id: string) => ({ type: 'tool_use', id, name: 'weather', input: { city: 'Bern' } })
const result = (id: string, content: unknown = 'sunny') => ({ type: 'tool_result', tool_use_id: id, content })

describe('a request for a message', () => {
  it('is read as far as memory is concerned', () => {
    const tools = [{ name: 'weather', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } }]
    const ask = read({ model: 'claude-sonnet-5', max_tokens: 64, stream: true, tools, messages: [user('Hello')] })
    expect(ask).toMatchObject({
      model: 'claude-sonnet-5',
      maxTokens: 64,
      streams: true,
      turn: 0,
      hasTools: true,
      files: [],
      session: undefined,
    })
    expect(ask.said).toEqual([{ role: 'user', content: 'Hello', at: 0, place: 0 }])
    expect(ask.owed).toBe(
      read({ messages: [user('Hello')], tools: [{ name: 'weather', input_schema: { type: 'object' } }] }).owed,
    )
    expect(ask.owed).toBeGreaterThan(0)
  })

  it('has its instructions beside the conversation, wherever they stand', () => {
    const list = [user('Hello'), { role: 'system', content: [text('Hurry.')] }]
    expect(read({ system: 'Be brief.', messages: list })).toMatchObject({
      instructions: ['Be brief.', 'Hurry.'],
      owed: 2 + 3 + (2 + 2),
      turn: 0,
    })
    expect(
      read({
        system: [text('Be brief.'), { ...text('Be kind.'), cache_control: { type: 'ephemeral' } }],
        messages: list,
      }).instructions,
    ).toEqual(['Be brief.', 'Be kind.', 'Hurry.'])
    expect(said(list)).toEqual([{ role: 'user', content: 'Hello', place: 0 }])
  })

  it.each([
    ['ann', 'ann'],
    ['user_ab12_account__session_5b1b9fd0-8b3e-4d2c-9e55-0d7c4a4c8a11', '5b1b9fd0-8b3e-4d2c-9e55-0d7c4a4c8a11'],
    ['{"device_id":"d","account_uuid":"","session_id":"5b1b9fd0"}', '5b1b9fd0'],
    ['{"device_id":"d"}', '{"device_id":"d"}'],
    ['', undefined],
  ])('may name its session: %s', (id, session) => {
    expect(read({ messages: [user('Hello')], metadata: { user_id: id } }).session).toBe(session)
  })

  it('is told apart into results and words, each at the place of its message', () => {
    const thought = { type: 'thinking', thinking: 'Hm.', signature: 's' }
    const list = [
      user('How is the weather?'),
      assistant([thought, text('I '), text('look.'), use('t1'), use('t2')]),
      user([result('t1'), { ...result('t2', [text('no'), text('net')]), is_error: true }, text('Well?')]),
      assistant([{ type: 'redacted_thinking', data: 'x' }]),
      assistant('Sunny.'),
    ]
    const calls = ['t1', 't2'].map((id) => ({ id, name: 'weather', arguments: '{"city":"Bern"}' }))
    expect(said(list)).toEqual([
      { role: 'user', content: 'How is the weather?', place: 0 },
      { role: 'assistant', content: 'I look.', calls, place: 1 },
      { role: 'tool', content: 'sunny', answers: 't1', place: 2 },
      { role: 'tool', content: '[error]\nno\nnet', answers: 't2', place: 2 },
      { role: 'user', content: 'Well?', place: 2 },
      { role: 'assistant', content: 'Sunny.', place: 4 },
    ])
  })

  it('tells in words what is no text', () => {
    const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
    const found = { type: 'search_result', source: 'https://example.com', title: 'Cats', content: [text('Cats purr.')] }
    const list = [
      user([
        text('Look:'),
        picture,
        { type: 'image', source: { type: 'url', url: 'https://example.com/cat.png' } },
        found,
      ]),
      assistant([
        text('Let me see.'),
        { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'cats' } },
        { type: 'web_search_tool_result', tool_use_id: 's1', content: [] },
        text('Cats '),
        { ...text('purr.'), citations: [] },
      ]),
      user([
        { type: 'tool_result', tool_use_id: 't1', content: [picture] },
        { type: 'tool_result', tool_use_id: 't2' },
      ]),
    ]
    expect(said(list).map(({ content }) => content)).toEqual([
      'Look:\n[image, 3 bytes, sha256 709e80c88487a241]\n[image https://example.com/cat.png]\n[search result https://example.com]\nCats purr.',
      'Let me see.\n[web_search]\n[web_search_tool_result]\nCats purr.',
      '[image, 3 bytes, sha256 709e80c88487a241]',
      '',
    ])
  })

  it('finds the files in it', () => {
    const document = (source: unknown, title?: string) => ({ type: 'document', source, title })
    const content = [
      document({ type: 'base64', media_type: 'application/pdf', data: 'JVBERg==' }, 'a.pdf'),
      document({ type: 'text', media_type: 'text/plain', data: 'Hello, wörld' }),
      document({ type: 'content', content: [text('One'), text('Two')] }),
      document({ type: 'url', url: 'https://example.com/b.pdf' }),
      { type: 'container_upload', file_id: 'file_1' },
      { type: 'image', source: { type: 'base64', media_type: 'application/zip', data: 'AAAA' } },
    ]
    expect(read({ messages: [user(content)] }).files).toEqual([
      { name: 'a.pdf', type: 'application/pdf', bytes: Buffer.from('%PDF') },
      { name: 'file', type: 'text/plain', bytes: Buffer.from('Hello, wörld') },
      { name: 'file', type: 'text/plain', bytes: Buffer.from('One\nTwo') },
      { name: 'file', type: '', bytes: undefined },
      { name: 'file', type: '', bytes: undefined },
      { name: 'file', type: 'application/zip', bytes: Buffer.alloc(3) },
    ])
  })

  it('has a newest turn that begins with words, and with no results of an older one', () => {
    const loop = [assistant([use('t1')]), user([result('t1')])]
    const turn = (list: unknown) => read({ messages: list }).turn
    expect(turn([user('Old'), assistant('Yes'), user('New'), ...loop])).toBe(2)
    expect(
      turn([
        user('Old'),
        assistant('Yes'),
        user('New'),
        assistant([use('t1')]),
        user([result('t1'), text('Hurry.')]),
        ...loop,
      ]),
    ).toBe(2)
    expect(
      turn([{ role: 'system', content: 'Hm' }, assistant([use('t1')]), user([result('t1'), text('Hurry.')])]),
    ).toBe(1)
    expect(turn([user([result('t1')]), user([result('t2')])])).toBe(0)
    expect(turn([{ role: 'system', content: 'Hm' }])).toBe(1)
  })

  it('has a newest turn of all that the user said in a row, unless each may have had a reply that is left to memory', () => {
    const turn = (list: unknown) => read({ messages: list }).turn
    expect(
      turn([user('Old'), assistant('Yes'), { role: 'system', content: 'Hm' }, user('Look:'), user('What is it?')]),
    ).toBe(3)
    expect(turn([user('Old'), assistant([use('t1')]), user([result('t1')]), user('Look:'), user('What is it?')])).toBe(
      3,
    )
    expect(turn([user('Look:'), user('What is it?'), assistant('It is')])).toBe(1)
    expect(turn([user('Look:'), user('What is it?')])).toBe(1)
  })

  it('is not read any closer where memory takes no part', () => {
    const { model, streams, maxTokens } = read({
      model: 'claude-sonnet-5',
      max_tokens: 9,
      messages: 'Hello',
      system: 7,
    })
    expect({ model, streams, maxTokens }).toEqual({ model: 'claude-sonnet-5', streams: false, maxTokens: 9 })
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
    [{ messages: [user([result('t1', 7)])] }, 'messages[0].content[0].content must be text or a list.'],
    [
      { messages: [assistant([{ ...use('t1'), id: '' }])] },
      'messages[0].content[0].id must be text that is not empty; it names the call.',
    ],
    [
      { messages: [assistant([{ ...use('t1'), name: 7 }])] },
      'messages[0].content[0].name must be text that is not empty; it names the tool.',
    ],
    [{ messages: [user('Hello')], system: 7 }, 'system must be text or a list.'],
  ])('is refused if memory cannot read it: %j', (body, message) => {
    expect(() => read(body).said).toThrow(message)
  })
})
