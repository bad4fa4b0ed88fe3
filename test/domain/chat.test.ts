import { describe, expect, it } from 'vitest'
import { parseMessage } from '../../src/domain/chat.ts'

describe('parseMessage', () => {
  it('accepts every role of OpenAI messages', () => {
    expect(parseMessage({ role: 'user', content: 'Hello' }, 0, 7)).toEqual({ role: 'user', content: 'Hello', at: 7 })
    expect(parseMessage({ role: 'developer', content: 'Be brief', at: 3 }, 0, 7)).toEqual({
      role: 'system',
      content: 'Be brief',
      at: 3,
    })
    expect(
      parseMessage(
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
        },
        0,
        7,
      ),
    ).toEqual({
      role: 'assistant',
      content: '',
      at: 7,
      toolCalls: [{ id: 'c', name: 'look', arguments: '{}' }],
    })
    expect(parseMessage({ role: 'tool', content: 'found', tool_call_id: 'c' }, 0, 7)).toEqual({
      role: 'tool',
      content: 'found',
      toolCallId: 'c',
      at: 7,
    })
  })

  it('accepts any time within the range of Date', () => {
    for (const at of [-8.64e15, 0, 1_700_000_000_000.5, 8.64e15])
      expect(parseMessage({ role: 'user', content: 'x', at }, 0, 7).at).toBe(at)
  })

  it('joins text parts and replaces other media by a placeholder', () => {
    const content = [
      { type: 'text', text: 'Look:' },
      { type: 'image_url', image_url: { url: 'data:…' } },
    ]
    expect(parseMessage({ role: 'user', content }, 0, 7).content).toBe('Look:\n[image]')
  })

  it.each([
    [null, 'messages[2] must be an object such as { role: "user", content: "Hello" }.'],
    [{ role: 'robot' }, 'messages[2].role is "robot"; it must be one of system, developer, user, assistant, tool.'],
    [{ content: 'x' }, 'messages[2].role is missing; it must be one of system, developer, user, assistant, tool.'],
    [
      { role: '__proto__' },
      'messages[2].role is "__proto__"; it must be one of system, developer, user, assistant, tool.',
    ],
    [
      { role: 'user', content: 5 },
      'messages[2].content must be text, null or a list of parts such as { type: "text", text: "Hello" }.',
    ],
    [
      { role: 'tool', content: 'x' },
      'messages[2].tool_call_id must be text that is not empty; it names the call a tool message answers.',
    ],
    [
      { role: 'assistant', tool_calls: [{ id: 'c' }] },
      'messages[2].tool_calls[0] must be { id, type: "function", function: { name, arguments } }.',
    ],
    [{ role: 'user', content: 'x', at: 'noon' }, 'messages[2].at is "noon"; it must be a time in milliseconds.'],
    [
      { role: 'user', content: 'x', at: 8.64e15 + 1 },
      'messages[2].at is 8640000000000001; it must be a time in milliseconds.',
    ],
    [{ role: 'user', content: 'x', at: -1e300 }, 'messages[2].at is -1e+300; it must be a time in milliseconds.'],
  ])('rejects %j and names the field', (value, message) => {
    expect(() => parseMessage(value, 2, 7)).toThrow(expect.objectContaining({ code: 'bad-message', message }))
  })

  it('with a payload › passes its known fields through', () => {
    const payload = { protocol: 'chat', items: [{ role: 'user' }], count: 2 }
    expect(parseMessage({ role: 'user', content: 'Hello', payload: { ...payload, other: 1 } }, 0, 7)).toEqual({
      role: 'user',
      content: 'Hello',
      at: 7,
      payload,
    })
  })

  it('with an invalid payload › names the field', () => {
    const deep = JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) as unknown[]
    for (const [payload, message] of [
      [null, 'messages[3].payload must be an object such as { protocol: "chat", items: [] }.'],
      [{ protocol: '', items: [] }, 'messages[3].payload.protocol must be text that is not empty.'],
      [{ protocol: 'chat', items: {} }, 'messages[3].payload.items must be a list.'],
      [{ protocol: 'chat', items: deep }, 'messages[3].payload.items must not be nested deeper than 100 levels.'],
      [{ protocol: 'chat', items: [], count: 0 }, 'messages[3].payload.count must be a whole number, 1 or more.'],
    ] as const)
      expect(() => parseMessage({ role: 'user', content: 'Hello', payload }, 3, 7)).toThrow(message)
  })

  it('[R-03] with a name or an id of over 65,536 characters › is refused', () => {
    const [longest, tooLong] = ['n'.repeat(65_536), 'n'.repeat(65_537)]
    const call = (id: string, name: string) => ({
      role: 'assistant',
      tool_calls: [{ id, type: 'function', function: { name, arguments: '{}' } }],
    })
    for (const [create, path] of [
      [(name: string) => ({ role: 'user', name, content: 'Hello' }), 'name'],
      [(id: string) => ({ role: 'tool', tool_call_id: id, content: 'Hello' }), 'tool_call_id'],
      [(id: string) => call(id, 'f'), 'tool_calls[0].id'],
      [(name: string) => call('a', name), 'tool_calls[0].function.name'],
    ] as const) {
      expect(parseMessage(create(longest), 3, 7)).toBeTypeOf('object')
      expect(() => parseMessage(create(tooLong), 3, 7)).toThrow(
        `messages[3].${path} has 65537 characters; it may have 65536. Shorten it, or send it in several messages.`,
      )
    }
  })

  it('[R-03] with parts of over 8 million characters in all › is refused without repeating them', () => {
    const part = { type: 'text', text: 'x'.repeat(4_000_000) }
    expect(() => parseMessage({ role: 'user', content: [part, part] }, 3, 7)).toThrow(
      'messages[3].content has 8000001 characters; it may have 8000000. Shorten it, or send it in several messages.',
    )
  })
})
