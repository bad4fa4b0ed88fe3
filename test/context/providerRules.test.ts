import { describe, expect, it } from 'vitest'
import type { AnthropicMessage, ChatMessage } from '../../src/domain/ledger.ts'
import { findAnthropicFaults, findOpenaiFaults } from './providerRules.ts'

const call = (id: string, name = 'search') => ({ id, type: 'function' as const, function: { name, arguments: '{}' } })
const user: ChatMessage = { role: 'user', content: 'Hello' }
const calls = (...ids: string[]): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => call(id)),
})
const result = (id: string): ChatMessage => ({ role: 'tool', content: 'done', tool_call_id: id })

describe('openaiFaults', () => {
  const faultsOf = (...messages: ChatMessage[]) => findOpenaiFaults(messages)

  it('with parallel calls and their results returns nothing', () =>
    expect(faultsOf(user, calls('a', 'b'), result('b'), result('a'), user)).toEqual([]))
  it('with a blank message reports it', () => {
    expect(faultsOf({ role: 'user', content: ' \n' })).toEqual(['messages[0] has no content'])
    expect(faultsOf({ role: 'assistant', content: null })).toEqual(['messages[0] has no content'])
    expect(faultsOf({ role: 'assistant', content: '', tool_calls: [call('a')] }, result('a'))).toEqual([
      'messages[0] has no content',
    ])
  })
  it('with missing, late or repeated results reports them', () => {
    expect(faultsOf(calls('a'))).toEqual(['call "a" has no result'])
    expect(faultsOf(calls('a'), user, result('a'))).toEqual([
      'messages[1] precedes the result of "a"',
      'messages[2] answers "a", which is not an open call',
    ])
    expect(faultsOf(calls('a'), result('a'), result('a'))).toEqual([
      'messages[2] answers "a", which is not an open call',
    ])
  })
  it('with duplicate or empty ids, or an invalid function name, reports them', () => {
    expect(faultsOf(calls('a', 'a'), result('a'))).toEqual(['messages[0] has duplicate call ids: a, a'])
    expect(faultsOf(calls(''), result(''))).toEqual(['messages[0] has a call without an id'])
    expect(faultsOf({ role: 'assistant', content: 'x', tool_calls: [] })).toEqual([
      'messages[0] has an empty list of tool calls',
    ])
    expect(faultsOf({ role: 'assistant', content: 'x', tool_calls: [call('a', 'no spaces')] }, result('a'))).toEqual([
      'messages[0] calls a function with the invalid name "no spaces"',
    ])
  })
  it('with white space in a name or a name of over 64 characters reports it', () =>
    expect(
      faultsOf({ role: 'user', content: 'x', name: 'Bob Smith' }, { role: 'user', content: 'x', name: 'n'.repeat(65) }),
    ).toHaveLength(2))
  it('with a lone surrogate reports it', () =>
    expect(faultsOf({ role: 'user', content: 'a\ud83d' })).toEqual(['messages[0] contains a lone surrogate']))
})

describe('anthropicFaults', () => {
  const faultsOf = (...messages: AnthropicMessage[]) => findAnthropicFaults({ system: '', messages })
  const use = (id: string) => ({ type: 'tool_use' as const, id, name: 'search', input: {} })
  const answer = (id: string) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'done' })
  const words = (text: string) => ({ type: 'text' as const, text })
  const hello: AnthropicMessage = { role: 'user', content: 'Hello' }

  it('with parallel tool uses and their results returns nothing', () => {
    const toolTurn: AnthropicMessage = { role: 'assistant', content: [words('Let me see.'), use('a'), use('b')] }
    expect(
      faultsOf(
        hello,
        toolTurn,
        { role: 'user', content: [answer('b'), answer('a'), words('And?')] },
        { role: 'assistant', content: 'So.' },
      ),
    ).toEqual([])
  })
  it('with an assistant turn first, or two turns of one role, reports them', () => {
    expect(faultsOf({ role: 'assistant', content: 'Hi' })).toEqual([
      'messages[0] is a turn of the assistant, which is out of order',
    ])
    expect(faultsOf(hello, hello)).toEqual(['messages[1] is a turn of the user, which is out of order'])
  })
  it('with blank text or white space at the end reports it', () => {
    expect(faultsOf({ role: 'user', content: [] })).toEqual(['messages[0] is empty'])
    expect(faultsOf({ role: 'user', content: [words(' ')] })).toEqual(['messages[0] has a blank text block'])
    expect(faultsOf(hello, { role: 'assistant', content: 'So. ' })).toEqual(['the last text ends with white space'])
  })
  it('with a tool result that is missing, late or unexpected reports it', () => {
    const toolTurn: AnthropicMessage = { role: 'assistant', content: [use('a')] }
    expect(faultsOf(hello, toolTurn)).toEqual(['tool use a has no result'])
    expect(faultsOf(hello, toolTurn, hello)).toEqual(['messages[2] lacks the result of a'])
    expect(faultsOf(hello, toolTurn, { role: 'user', content: [words('Wait'), answer('a')] })).toEqual([
      'messages[2] has a result after other content',
    ])
    expect(faultsOf({ role: 'user', content: [answer('a')] })).toEqual([
      'messages[0] has a result of a, which is not an open tool use of the previous turn',
    ])
  })
  it('with a reused or invalid id reports it', () => {
    const round = (id: string): AnthropicMessage[] => [
      { role: 'assistant', content: [use(id)] },
      { role: 'user', content: [answer(id)] },
    ]
    expect(faultsOf(hello, ...round('a'), ...round('a'))).toEqual(['messages[3] reuses the id a'])
    expect(faultsOf(hello, ...round('a|b'))).toEqual(['messages[1] has a tool use with the invalid id "a|b"'])
  })
  it('with a lone surrogate reports it', () => {
    expect(findAnthropicFaults({ system: '\udc00', messages: [] })).toEqual(['system contains a lone surrogate'])
    expect(faultsOf({ role: 'user', content: '\udc00' })).toEqual(['messages[0] contains a lone surrogate in text'])
  })
})
