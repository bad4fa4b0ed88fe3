import { describe, expect, it } from 'vitest'
import type { AnthropicMessage, ChatMessage } from '../../src/domain/ledger.ts'
import { anthropicFaults, openaiFaults } from './validity.ts'

const call = (id: string, name = 'search') => ({ id, type: 'function' as const, function: { name, arguments: '{}' } })
const user: ChatMessage = { role: 'user', content: 'Hello' }
const calls = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => call(id)),
})
const result = (id: string): ChatMessage => ({ role: 'tool', content: 'done', tool_call_id: id })

describe('by the rules of OpenAI', () => {
  const refused = (...messages: ChatMessage[]) => openaiFaults(messages)

  it('a conversation with parallel calls is taken', () =>
    expect(refused(user, calls('a', 'b'), result('b'), result('a'), user)).toEqual([]))
  it('nothing is blank', () => {
    expect(refused({ role: 'user', content: ' \n' })).toEqual(['messages[0] has no content'])
    expect(refused({ role: 'assistant', content: null })).toEqual(['messages[0] has no content'])
    expect(refused({ role: 'assistant', content: '', tool_calls: [call('a')] }, result('a'))).toEqual([
      'messages[0] has no content',
    ])
  })
  it('every call is answered at once, and once', () => {
    expect(refused(calls('a'))).toEqual(['nothing answers "a"'])
    expect(refused(calls('a'), user, result('a'))).toEqual([
      'messages[1] stands before the answer to "a"',
      'messages[2] answers "a", which is no open call',
    ])
    expect(refused(calls('a'), result('a'), result('a'))).toEqual(['messages[2] answers "a", which is no open call'])
  })
  it('calls have ids of their own and proper names', () => {
    expect(refused(calls('a', 'a'), result('a'))).toEqual(['messages[0] has calls of the same id: a, a'])
    expect(refused(calls(''), result(''))).toEqual(['messages[0] has a call without an id'])
    expect(refused({ role: 'assistant', content: 'x', tool_calls: [] })).toEqual([
      'messages[0] has an empty list of tool calls',
    ])
    expect(refused({ role: 'assistant', content: 'x', tool_calls: [call('a', 'no spaces')] }, result('a'))).toEqual([
      'messages[0] calls "no spaces"',
    ])
  })
  it('names hold no white space and no brackets', () =>
    expect(
      refused({ role: 'user', content: 'x', name: 'Bob Smith' }, { role: 'user', content: 'x', name: 'n'.repeat(65) }),
    ).toHaveLength(2))
  it('no text holds half a character', () =>
    expect(refused({ role: 'user', content: 'a\ud83d' })).toEqual(['messages[0] holds half a surrogate pair']))
})

describe('by the rules of Anthropic', () => {
  const refused = (...messages: AnthropicMessage[]) => anthropicFaults({ system: '', messages })
  const use = (id: string) => ({ type: 'tool_use' as const, id, name: 'search', input: {} })
  const answer = (id: string) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'done' })
  const words = (text: string) => ({ type: 'text' as const, text })
  const hello: AnthropicMessage = { role: 'user', content: 'Hello' }

  it('a conversation with parallel tool uses is taken', () => {
    const asked: AnthropicMessage = { role: 'assistant', content: [words('Let me see.'), use('a'), use('b')] }
    expect(
      refused(
        hello,
        asked,
        { role: 'user', content: [answer('b'), answer('a'), words('And?')] },
        { role: 'assistant', content: 'So.' },
      ),
    ).toEqual([])
  })
  it('the user begins and roles take turns', () => {
    expect(refused({ role: 'assistant', content: 'Hi' })).toEqual(['messages[0] is a turn of the assistant'])
    expect(refused(hello, hello)).toEqual(['messages[1] is a turn of the user'])
  })
  it('nothing is blank, and the last word ends without white space', () => {
    expect(refused({ role: 'user', content: [] })).toEqual(['messages[0] is empty'])
    expect(refused({ role: 'user', content: [words(' ')] })).toEqual(['messages[0] has a blank text'])
    expect(refused(hello, { role: 'assistant', content: 'So. ' })).toEqual(['the last text ends with white space'])
  })
  it('every tool use is answered first thing in the next turn', () => {
    const asked: AnthropicMessage = { role: 'assistant', content: [use('a')] }
    expect(refused(hello, asked)).toEqual(['nothing answers a'])
    expect(refused(hello, asked, hello)).toEqual(['messages[2] lacks the result of a'])
    expect(refused(hello, asked, { role: 'user', content: [words('Wait'), answer('a')] })).toEqual([
      'messages[2] has a result behind other content',
    ])
    expect(refused({ role: 'user', content: [answer('a')] })).toEqual([
      'messages[0] has a result of a, which is no open tool use of the turn before',
    ])
  })
  it('ids are unique in the conversation and hold only letters, digits, _ and -', () => {
    const round = (id: string): AnthropicMessage[] => [
      { role: 'assistant', content: [use(id)] },
      { role: 'user', content: [answer(id)] },
    ]
    expect(refused(hello, ...round('a'), ...round('a'))).toEqual(['messages[3] uses the id a again'])
    expect(refused(hello, ...round('a|b'))).toEqual(['messages[1] uses a tool with the id "a|b"'])
  })
  it('no text holds half a character', () => {
    expect(anthropicFaults({ system: '\udc00', messages: [] })).toEqual(['system holds half a surrogate pair'])
    expect(refused({ role: 'user', content: '\udc00' })).toEqual(['messages[0] holds half a surrogate pair in text'])
  })
})
