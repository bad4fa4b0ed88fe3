import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../../src/domain/ledger.ts'
import type { Body } from '../../../src/server/protocols/dialect.ts'
import { responses } from '../../../src/server/protocols/responses.ts'
import { chars4 } from '../../../src/text/estimators.ts'

const write = (body: Body, memory: readonly ChatMessage[] = [], from?: number) =>
  responses.write(responses.read(body, chars4), memory, from)
const calling = (id: string, name: string, text: string): ChatMessage => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: text } }],
})
const asked = { role: 'user', content: 'And now?' }

describe('a request for a response, as it goes to the model', () => {
  it('is the same when memory has nothing to add, but that nothing is kept elsewhere', () => {
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
    expect(write(body, [], 0)).toEqual({ ...body, store: false })
    expect(write({ input: 'Hello', store: true }, [], 0)).toEqual({
      input: [{ role: 'user', content: 'Hello' }],
      store: false,
    })
    expect(write({ prompt: { id: 'p' } })).toEqual({ prompt: { id: 'p' }, store: false })
  })

  it('goes on from memory and not from what an upstream keeps', () => {
    expect(write({ input: 'Hi', previous_response_id: 'resp_1', conversation: 'conv_1', store: true })).toEqual({
      input: [{ role: 'user', content: 'Hi' }],
      store: false,
    })
  })

  it('has instructions first, then memory, then the newest turn as it was sent', () => {
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
    expect(write({ input }, memory).input).toEqual([
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
    expect(write({ input }, [], 3).input).toEqual([input[0], input[1], ...input.slice(3)])
  })

  it('gives results the calls of their own kind, which memory has', () => {
    const outputs = [
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
      { type: 'apply_patch_call_output', call_id: 'c2', status: 'completed' },
      { type: 'function_call_output', call_id: 'c3', output: '12:00' },
      { type: 'local_shell_call_output', id: 'c4', output: 'a b' },
    ]
    const memory = [
      calling('c1', 'patch', '{"input":"*** Begin"}'),
      calling('c2', 'apply_patch', '{"operation":{"type":"delete_file","path":"a"}}'),
      calling('c3', 'now', '{}'),
      calling('c4', 'local_shell', '{"action":{"type":"exec","command":["ls"],"env":{}}}'),
    ]
    expect(write({ input: outputs, previous_response_id: 'resp_1' }, memory).input).toEqual([
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

  it('shows pictures that the client sends again where memory has words for them', () => {
    const picture = {
      role: 'user',
      content: [{ type: 'input_image', image_url: 'https://example.com/cat.png', detail: 'auto' }],
    }
    const written = { role: 'user', content: [{ type: 'input_text', text: 'Hello', extra: true }] }
    const reply = { role: 'assistant', content: 'A cat.' }
    const memory: ChatMessage[] = [
      { role: 'user', content: '[image https://example.com/cat.png]' },
      { role: 'assistant', content: '[image https://example.com/cat.png]' },
      { role: 'user', content: 'Hello' },
      { role: 'user', content: 'Before that: [image https://example.com/cat.png]' },
    ]
    expect(write({ input: [picture, reply, written, reply, asked] }, memory).input).toEqual([
      picture,
      ...memory.slice(1),
      asked,
    ])
    expect(write({ input: [asked] }, memory).input).toEqual([...memory, asked])
  })

  it('leaves out thoughts that only an upstream which keeps them could look up', () => {
    const open = { type: 'reasoning', id: 'rs_2', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] }
    const input = [asked, { type: 'reasoning', id: 'rs_1', summary: [] }, { role: 'assistant', content: 'Yes.' }, open]
    expect(write({ input }).input).toEqual([asked, { role: 'assistant', content: 'Yes.' }, open])
    expect(write({ input, include: ['reasoning.encrypted_content'] }).input).toEqual(input)
  })

  it('fails in both shapes that clients know', () => {
    const error = { message: 'Try again.', type: 'upstream_error', param: null, code: 'upstream' }
    expect(responses.problem(error)).toEqual({ error })
    expect(responses.failure(error)).toBe(
      'event: error\ndata: {"type":"error","code":"upstream","message":"Try again.","param":null,"sequence_number":0,' +
        '"error":{"message":"Try again.","type":"upstream_error","param":null,"code":"upstream"}}\n\n',
    )
  })
})
