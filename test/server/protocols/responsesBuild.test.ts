import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../../src/domain/ledger.ts'
import type { RequestBody } from '../../../src/server/protocols/protocol.ts'
import { responsesProtocol } from '../../../src/server/protocols/responses.ts'
import { chars4 } from '../../../src/text/estimators.ts'

const build = (body: RequestBody, memory: readonly ChatMessage[] = [], from?: number) =>
  responsesProtocol.buildRequest(responsesProtocol.parseRequest(body, chars4), memory, from)
const assistantCall = (id: string, name: string, text: string): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: text } }],
})
const question = { role: 'user', content: 'And now?' }

describe('Responses upstream request', () => {
  it('without memory equals the client request, whatever it says about storing', () => {
    const body = {
      model: 'gpt-5',
      instructions: 'Be brief.',
      input: [
        { role: 'developer', content: 'Be kind.' },
        { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'abc' },
        { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'now', arguments: '{}', status: 'completed' },
        { type: 'function_call_output', call_id: 'c1', output: '12:00' },
        { type: 'something_new', of: 'tomorrow' },
      ],
      include: ['reasoning.encrypted_content'],
      tools: [{ type: 'function', name: 'now', parameters: {} }],
      text: { format: { type: 'json_object' } },
      reasoning: { effort: 'low' },
      prompt_cache_key: 'k',
      of_tomorrow: { a: 1 },
    }
    for (const store of [{}, { store: true }, { store: false }, { store: true, background: true }])
      expect(build({ ...body, ...store }, [], 0)).toEqual({ ...body, ...store })
    expect(build({ input: 'Hello', store: true }, [], 0)).toEqual({ input: 'Hello', store: true })
    expect(build({ prompt: { id: 'p' } })).toEqual({ prompt: { id: 'p' } })
  })

  it('removes ids that only memory can resolve', () => {
    expect(build({ input: 'Hi', previous_response_id: 'resp_1', conversation: 'conv_1', store: true })).toEqual({
      input: 'Hi',
      store: true,
    })
  })

  it('places instructions first, then memory, then the unchanged newest turn', () => {
    const input = [
      { role: 'developer', content: 'Be kind.' },
      { type: 'configuration_update', reasoning: { effort: 'low' } },
      { role: 'user', content: 'Old' },
      { role: 'assistant', content: 'Older' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'And now?', extra: true }] },
      { role: 'developer', content: 'Hurry.' },
    ]
    const memory: ChatMessage[] = [
      { role: 'system', content: 'Use memory.' },
      { role: 'user', content: 'My name is Ann.', name: 'ann' },
      {
        role: 'assistant',
        content: 'I look.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'now', arguments: '{}' } }],
      },
      { role: 'tool', content: '12:00', tool_call_id: 'c1' },
      { role: 'assistant', content: ' ' },
    ]
    expect(build({ input }, memory).input).toEqual([
      input[0],
      input[1],
      { role: 'system', content: 'Use memory.' },
      { role: 'user', content: 'My name is Ann.' },
      { role: 'assistant', content: 'I look.' },
      { type: 'function_call', call_id: 'c1', name: 'now', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c1', output: '12:00' },
      input[4],
      input[5],
    ])
    expect(build({ input }, [], 3).input).toEqual([input[0], input[1], ...input.slice(3)])
  })

  it('gives calls in memory the type that their outputs require', () => {
    const outputs = [
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
      { type: 'apply_patch_call_output', call_id: 'c2', status: 'completed' },
      { type: 'function_call_output', call_id: 'c3', output: '12:00' },
      { type: 'local_shell_call_output', id: 'c4', output: 'a b' },
    ]
    const memory = [
      assistantCall('c1', 'patch', '{"input":"*** Begin"}'),
      assistantCall('c2', 'apply_patch', '{"operation":{"type":"delete_file","path":"a"}}'),
      assistantCall('c3', 'now', '{}'),
      assistantCall('c4', 'local_shell', '{"action":{"type":"exec","command":["ls"],"env":{}}}'),
    ]
    expect(build({ input: outputs, previous_response_id: 'resp_1' }, memory).input).toEqual([
      { type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: '*** Begin' },
      { type: 'apply_patch_call', call_id: 'c2', status: 'completed', operation: { type: 'delete_file', path: 'a' } },
      { type: 'function_call', call_id: 'c3', name: 'now', arguments: '{}' },
      {
        type: 'local_shell_call',
        call_id: 'c4',
        status: 'completed',
        action: { type: 'exec', command: ['ls'], env: {} },
      },
      ...outputs,
    ])
  })

  it('replaces media placeholders with media that the client sends again', () => {
    const imageMessage = {
      role: 'user',
      content: [{ type: 'input_image', image_url: 'https://example.com/cat.png', detail: 'auto' }],
    }
    const textMessage = { role: 'user', content: [{ type: 'input_text', text: 'Hello', extra: true }] }
    const reply = { role: 'assistant', content: 'A cat.' }
    const memory: ChatMessage[] = [
      { role: 'user', content: '[image https://example.com/cat.png]' },
      { role: 'assistant', content: '[image https://example.com/cat.png]' },
      { role: 'user', content: 'Hello' },
      { role: 'user', content: 'Before that: [image https://example.com/cat.png]' },
    ]
    expect(build({ input: [imageMessage, reply, textMessage, reply, question] }, memory).input).toEqual([
      imageMessage,
      ...memory.slice(1),
      question,
    ])
    expect(build({ input: [question] }, memory).input).toEqual([...memory, question])
  })

  it('keeps the reasoning of the client in the newest turn', () => {
    const input = [
      question,
      { type: 'reasoning', id: 'rs_1', summary: [] },
      { role: 'assistant', content: 'Yes.' },
      { type: 'reasoning', id: 'rs_2', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] },
    ]
    expect(build({ input }).input).toEqual(input)
    expect(build({ input, include: ['reasoning.encrypted_content'] }).input).toEqual(input)
  })

  it('with items that the upstream holds keeps the ids of the client and appends memory', () => {
    const items = [{ type: 'item_reference', id: 'msg_1' }, { type: 'reasoning', id: 'rs_1', summary: [] }, question]
    const body = { input: items, previous_response_id: 'resp_1', store: true }
    const request = responsesProtocol.parseRequest(body, chars4)
    const held = { preamble: [], isHeldUpstream: true }
    expect(responsesProtocol.extendRequest(request, held)).toEqual(body)
    expect(responsesProtocol.extendRequest(request, { preamble: [] })).toEqual({ input: items, store: true })
    const added = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: '<memory>Hi</memory>' }] }
    expect(responsesProtocol.extendRequest(request, { ...held, memory: '<memory>Hi</memory>' })).toEqual({
      ...body,
      input: [...items, added],
    })
  })

  it('asks for encrypted reasoning only where the upstream stores nothing and may reason', () => {
    const includes = 'reasoning.encrypted_content'
    const includeOf = (fields: object) => build({ input: [question], ...fields }).include
    const reasoning = { effort: 'low' }
    expect(includeOf({ store: false, reasoning })).toEqual([includes])
    expect(includeOf({ store: false, reasoning, include: ['file_search_call.results'] })).toEqual([
      'file_search_call.results',
      includes,
    ])
    expect(includeOf({ store: false, reasoning, include: [includes] })).toEqual([includes])
    for (const fields of [{ reasoning }, { store: true, reasoning }, { store: false }])
      expect(includeOf(fields)).toBeUndefined()
  })

  it('formats errors in both shapes that clients read', () => {
    const error = { message: 'Try again.', type: 'upstream_error', param: null, code: 'upstream' }
    expect(responsesProtocol.formatError(error)).toEqual({ error })
    expect(responsesProtocol.formatErrorEvent(error)).toBe(
      'event: error\ndata: {"type":"error","code":"upstream","message":"Try again.","param":null,"sequence_number":0,' +
        '"error":{"message":"Try again.","type":"upstream_error","param":null,"code":"upstream"}}\n\n',
    )
  })
})
