import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../../src/domain/ledger.ts'
import { chat } from '../../../src/server/protocols/chat.ts'
import type { Body } from '../../../src/server/protocols/dialect.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { heardOf } from './stream.ts'

const read = (body: Body) => chat.read(body, chars4)
/** What was said, without the times nobody gave. */
const said = (messages: unknown) => read({ messages }).said.map(({ at: _at, ...message }) => message)
const write = (body: Body, memory: readonly ChatMessage[]) => chat.write(read(body), memory).messages
const user = (content: unknown) => ({ role: 'user', content })
const assistant = (content: string) => ({ role: 'assistant', content })
const calling = (id: string, name: string, text: string): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: text } }],
})

/** A call of a tool that takes text, and one of a client that knows functions but no tools. */
const custom = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'code', input: 'print("1")' } }],
}
const outdated = { role: 'assistant', content: null, function_call: { name: 'now', arguments: '{"zone":"UTC"}' } }
const result = { role: 'tool', tool_call_id: 'c1', content: '1' }
const outdatedResult = { role: 'function', name: 'now', content: '12:00' }

describe('a request for a chat completion', () => {
  it('may hold calls of tools that are no functions, and of functions that are no tools', () => {
    expect(said([user('Go on'), custom, result, outdated, outdatedResult])).toEqual([
      { role: 'user', content: 'Go on', place: 0 },
      {
        role: 'assistant',
        content: '',
        calls: [{ id: 'c1', name: 'code', arguments: '{"input":"print(\\"1\\")"}' }],
        place: 1,
      },
      { role: 'tool', content: '1', answers: 'c1', place: 2 },
      { role: 'assistant', content: '', calls: [{ id: 'now', name: 'now', arguments: '{"zone":"UTC"}' }], place: 3 },
      { role: 'tool', content: '12:00', answers: 'now', place: 4 },
    ])
  })

  it('is told of earlier calls the way its own tools are called', () => {
    const memory: ChatMessage[] = [
      calling('c1', 'code', '{"input":"print(\\"1\\")"}'),
      { role: 'tool', tool_call_id: 'c1', content: '1' },
      calling('c2', 'now', '{}'),
      { role: 'tool', tool_call_id: 'c2', content: '12:00' },
      assistant('One.') as ChatMessage,
    ]
    expect(write({ messages: [user('Why?')], tools: [{ type: 'custom', custom: { name: 'code' } }] }, memory)).toEqual([
      custom,
      ...memory.slice(1),
      user('Why?'),
    ])
    expect(write({ messages: [user('Why?')] }, memory)).toEqual([...memory, user('Why?')])
  })

  it('has no tools if its client knows none', () => {
    const memory: ChatMessage[] = [
      calling('now', 'now', '{"zone":"UTC"}'),
      { role: 'tool', tool_call_id: 'now', content: '12:00' },
      calling('c2', 'now', '{}'),
      { role: 'tool', tool_call_id: 'c2', content: '12:00' },
    ]
    const functions = [{ name: 'now', parameters: {} }]
    expect(write({ messages: [user('Why?')], functions }, memory)).toEqual([
      outdated,
      outdatedResult,
      ...memory.slice(2),
      user('Why?'),
    ])
    expect(write({ messages: [user('Why?')], functions, tools: [] }, memory)).toEqual([...memory, user('Why?')])
  })

  it('has a newest turn of all that the user said in a row, unless each may have had a reply that is left to memory', () => {
    const turn = (...messages: unknown[]) => read({ messages }).turn
    expect(
      turn(user('Old'), assistant('Yes'), { role: 'system', content: 'Hm' }, user('Look:'), user('What is it?')),
    ).toBe(3)
    expect(turn(user('Old'), assistant('Yes'), user('Look:'), user('What is it?'), custom, result)).toBe(2)
    expect(turn(user('Look:'), user('What is it?'))).toBe(1)
    expect(turn({ role: 'system', content: 'Hm' }, result)).toBe(1)
    expect(turn({ role: 'system', content: 'Hm' })).toBe(1)
  })

  it('shows pictures that the client sends again where memory has words for them', () => {
    const picture = {
      role: 'user',
      name: 'ann',
      content: [{ type: 'image_url', image_url: { url: 'https://example.com/cat.png', detail: 'low' } }],
    }
    const written = user([{ type: 'text', text: 'Hello', extra: true }])
    const memory: ChatMessage[] = [
      { role: 'user', content: '[image https://example.com/cat.png]', name: 'ann' },
      { role: 'assistant', content: '[image https://example.com/cat.png]' },
      { role: 'user', content: 'Hello' },
      { role: 'user', content: 'Before that: [image https://example.com/cat.png]' },
    ]
    const messages = [picture, assistant('A cat.'), written, assistant('Hi.'), user('And now?')]
    expect(write({ messages }, memory)).toEqual([picture, ...memory.slice(1), user('And now?')])
    expect(write({ messages: [user('And now?')] }, memory)).toEqual([...memory, user('And now?')])
  })

  it('is not read any closer where memory takes no part', () => {
    const { model, streams, maxTokens, session } = read({
      model: 'gpt-5',
      stream: true,
      max_tokens: 9,
      user: 'ann',
      messages: 'Hello',
    })
    expect({ model, streams, maxTokens, session }).toEqual({
      model: 'gpt-5',
      streams: true,
      maxTokens: 9,
      session: 'ann',
    })
  })
})

describe('a chat completion', () => {
  const called = (id: string, name: string, text: string) => ({
    role: 'assistant',
    content: '',
    tool_calls: [{ id, type: 'function', function: { name, arguments: text } }],
  })
  const hear = (message: unknown) => chat.hear(JSON.stringify({ choices: [{ index: 0, message }] }), 'upstream').reply
  const listen = (...deltas: unknown[]) =>
    heardOf(
      chat.listener('upstream'),
      deltas.map((delta) => `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`).join(''),
    ).reply

  it('may call tools that are no functions', () => {
    expect(hear(custom)).toEqual(called('c1', 'code', '{"input":"print(\\"1\\")"}'))
    expect(
      listen(
        { tool_calls: [{ index: 0, id: 'c1', type: 'custom', custom: { name: 'code', input: '' } }] },
        { tool_calls: [{ index: 0, custom: { input: 'print(' } }] },
        { tool_calls: [{ index: 0, custom: { input: '"1")' } }] },
      ),
    ).toEqual(called('c1', 'code', '{"input":"print(\\"1\\")"}'))
  })

  it('may call functions that are no tools', () => {
    expect(hear(outdated)).toEqual(called('now', 'now', '{"zone":"UTC"}'))
    expect(
      listen(
        { function_call: { name: 'now', arguments: '' } },
        { function_call: { arguments: '{"zone"' } },
        { function_call: { arguments: ':"UTC"}' } },
      ),
    ).toEqual(called('now', 'now', '{"zone":"UTC"}'))
  })

  it('calls once what some servers tell both ways', () => {
    const both = {
      tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'now', arguments: '{}' } }],
      function_call: { name: 'now', arguments: '{}' },
    }
    expect(hear({ role: 'assistant', content: null, ...both })).toEqual(called('c1', 'now', '{}'))
    expect(listen(both)).toEqual(called('c1', 'now', '{}'))
  })
})
