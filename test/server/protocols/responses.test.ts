import { describe, expect, it } from 'vitest'
import { chat } from '../../../src/server/protocols/chat.ts'
import type { Body } from '../../../src/server/protocols/dialect.ts'
import { responses } from '../../../src/server/protocols/responses.ts'
import { chars4 } from '../../../src/text/estimators.ts'

const read = (body: Body) => responses.read(body, chars4)
/** What was said, without the times nobody gave. */
const said = (input: unknown) => read({ input }).said.map(({ at: _at, ...message }) => message)
const call = (id: string, name = 'weather', text = '{"city":"Bern"}') => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: text,
})
const output = (id: string, text: unknown = 'sunny') => ({ type: 'function_call_output', call_id: id, output: text })
const thought = { type: 'reasoning', id: 'rs_1', summary: [] }
const asked = { role: 'user', content: 'How is the weather?' }
const missing =
  'input is missing: it must be text, or a list with at least one item such as { "role": "user", "content": "Hello" }.'

describe('a request for a response', () => {
  it('may be plain text', () => {
    const ask = read({ model: 'gpt-5', input: 'Hello', stream: true, max_output_tokens: 50, user: 'ann' })
    expect(ask).toMatchObject({
      model: 'gpt-5',
      streams: true,
      turn: 0,
      maxTokens: 50,
      session: 'ann',
      hasTools: false,
      files: [],
      instructions: [],
      owed: 0,
    })
    expect(ask.said).toEqual([{ role: 'user', content: 'Hello', at: 0, place: 0 }])
    expect(ask.previous).toBeUndefined()
    expect(ask.conversation).toBeUndefined()
  })

  it('names what it goes on from, and the conversation it belongs to', () => {
    expect(read({ input: 'Hi', previous_response_id: 'resp_1' }).previous).toBe('resp_1')
    expect(read({ input: 'Hi', conversation: 'conv_1' }).conversation).toBe('conv_1')
    expect(read({ input: 'Hi', conversation: { id: 'conv_2' } }).conversation).toBe('conv_2')
    expect(read({ input: 'Hi', previous_response_id: null, conversation: null })).toMatchObject({
      previous: undefined,
      conversation: undefined,
    })
  })

  it('has its instructions beside the conversation, wherever they stand', () => {
    const input = [
      { role: 'developer', content: 'Be brief.' },
      asked,
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Be kind.' }] },
    ]
    const ask = read({ instructions: 'You are a cook.', input })
    expect(ask.instructions).toEqual(['You are a cook.', 'Be brief.', 'Be kind.'])
    expect(ask.said.map(({ place }) => place)).toEqual([1])
    // 'system' is 2 tokens here, and a token is four characters
    expect(ask.owed).toBe(2 + 4 + (2 + 3) + (2 + 2))
  })

  it('pays for its tools, also those that are added on the way', () => {
    const now = { type: 'function', name: 'now', description: 'The time', parameters: {}, strict: true }
    const tools = read({ input: 'Hi', tools: [now] })
    const added = read({ input: [{ type: 'additional_tools', role: 'developer', tools: [now] }, asked] })
    const { type, ...definition } = now
    expect(tools.owed).toBe(chat.read({ messages: [asked], tools: [{ type, function: definition }] }, chars4).owed)
    expect(tools.owed).toBeGreaterThan(0)
    expect(added.owed).toBe(tools.owed)
    expect([tools.hasTools, added.hasTools, added.turn]).toEqual([true, true, 1])
  })

  it('reads messages with and without a type, of text and of parts', () => {
    const parts = [
      { type: 'input_text', text: 'Look:' },
      { type: 'input_image', image_url: 'https://example.com/cat.png', detail: 'auto' },
      { type: 'input_image', file_id: 'file-9' },
      { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } },
      { type: 'input_video', url: 'x' },
    ]
    const reply = {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'A cat.', annotations: [] }],
    }
    const refused = { role: 'assistant', content: [{ type: 'refusal', refusal: 'I cannot.' }] }
    expect(
      said([{ role: 'user', content: parts }, reply, { type: 'message', role: 'user', content: 'And?' }, refused]),
    ).toEqual([
      {
        role: 'user',
        content:
          'Look:\n[image https://example.com/cat.png]\n[image file-9]\n[audio, 3 bytes, sha256 709e80c88487a241]\n[video]',
        place: 0,
      },
      { role: 'assistant', content: 'A cat.', place: 1 },
      { role: 'user', content: 'And?', place: 2 },
      { role: 'assistant', content: 'I cannot.', place: 3 },
    ])
  })

  it('finds the files in it', () => {
    const pdf = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' }
    const there = { type: 'input_file', file_url: 'https://example.com/b.pdf' }
    const hidden = { type: 'input_image', image_url: 'data:text/plain,secret' }
    const ask = read({ input: [{ role: 'user', content: [pdf, there, hidden] }] })
    expect(ask.files).toEqual([
      { name: 'a.pdf', type: 'application/pdf', bytes: Buffer.from('%PDF') },
      { name: 'file', type: '', bytes: undefined },
      { name: 'file', type: 'text/plain', bytes: Buffer.from('secret') },
    ])
    expect(ask.said[0]?.content).toMatch(
      /^\[file a\.pdf, 4 bytes, sha256 [0-9a-f]{16}\]\n\[file file https:\/\/example\.com\/b\.pdf\]\n\[file, 6 bytes/,
    )
  })

  it('takes all that the assistant says and calls in a row as one message, with what it thought', () => {
    const input = [
      asked,
      thought,
      { role: 'assistant', content: 'I look.' },
      call('c1'),
      { type: 'web_search_call', id: 'ws_1' },
      call('c2'),
      output('c1'),
      output('c2'),
    ]
    expect(
      said([
        ...input,
        thought,
        { role: 'assistant', content: 'Sunny.' },
        { type: 'reasoning', id: 'rs_2', summary: [] },
        asked,
      ]),
    ).toEqual([
      { role: 'user', content: 'How is the weather?', place: 0 },
      {
        role: 'assistant',
        content: 'I look.',
        calls: [
          { id: 'c1', name: 'weather', arguments: '{"city":"Bern"}' },
          { id: 'c2', name: 'weather', arguments: '{"city":"Bern"}' },
        ],
        place: 1,
      },
      { role: 'tool', content: 'sunny', answers: 'c1', place: 6 },
      { role: 'tool', content: 'sunny', answers: 'c2', place: 7 },
      { role: 'assistant', content: 'Sunny.', place: 8 },
      { role: 'user', content: 'How is the weather?', place: 11 },
    ])
  })

  it('leaves out replies in which nothing was said', () => {
    expect(said([asked, thought, { role: 'assistant', content: [] }, asked]).map(({ role }) => role)).toEqual([
      'user',
      'user',
    ])
  })

  it('knows the calls of other tools, and their results', () => {
    const input = [
      { type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: '*** Begin' },
      {
        type: 'local_shell_call',
        id: 'ls_2',
        call_id: 'c2',
        status: 'completed',
        action: { type: 'exec', command: ['ls'], env: {} },
      },
      { type: 'apply_patch_call', call_id: 'c3', status: 'completed', operation: { type: 'delete_file', path: 'a' } },
      { type: 'custom_tool_call_output', call_id: 'c1', output: [{ type: 'input_text', text: 'done' }] },
      { type: 'local_shell_call_output', id: 'c2', output: 'a b' },
      { type: 'apply_patch_call_output', call_id: 'c3', status: 'failed' },
      {
        type: 'shell_call_output',
        call_id: 'c4',
        output: [{ stdout: 'x', stderr: '', outcome: { type: 'exit', exit_code: 0 } }],
      },
      {
        type: 'computer_call_output',
        call_id: 'c5',
        output: { type: 'computer_screenshot', image_url: 'https://example.com/s.png' },
      },
    ]
    expect(said(input)).toEqual([
      {
        role: 'assistant',
        content: '',
        calls: [
          { id: 'c1', name: 'patch', arguments: '{"input":"*** Begin"}' },
          { id: 'c2', name: 'local_shell', arguments: '{"action":{"type":"exec","command":["ls"],"env":{}}}' },
          { id: 'c3', name: 'apply_patch', arguments: '{"operation":{"type":"delete_file","path":"a"}}' },
        ],
        place: 0,
      },
      { role: 'tool', content: 'done', answers: 'c1', place: 3 },
      { role: 'tool', content: 'a b', answers: 'c2', place: 4 },
      { role: 'tool', content: 'failed', answers: 'c3', place: 5 },
      {
        role: 'tool',
        content: '{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}',
        answers: 'c4',
        place: 6,
      },
      { role: 'tool', content: '[image https://example.com/s.png]', answers: 'c5', place: 7 },
    ])
  })

  it('has a newest turn that begins with the last words of the user, or with results that come alone', () => {
    expect(read({ input: [asked, call('c1'), output('c1'), asked, call('c2'), output('c2')] }).turn).toBe(3)
    expect(
      read({
        input: [{ role: 'developer', content: 'Be brief.' }, output('c1'), output('c2')],
        previous_response_id: 'resp_1',
      }).turn,
    ).toBe(1)
    expect(read({ input: [{ role: 'developer', content: 'Be brief.' }] }).turn).toBe(1)
    expect(read({ prompt: { id: 'pmpt_1' } })).toMatchObject({ turn: 0, said: [] })
  })

  it('leaves what it only refers to to memory, and all before it', () => {
    const ask = read({ input: [asked, { type: 'item_reference', id: 'fc_1' }, output('c1')] })
    expect(ask.turn).toBe(2)
    expect(ask.said.map(({ role, place }) => [role, place])).toEqual([['tool', 2]])
    expect(read({ input: [asked, { id: 'msg_1' }] })).toMatchObject({ said: [], turn: 2 })
  })

  it('has a newest turn of all that the user said in a row, unless each may have had a reply that is left to memory', () => {
    const reply = { role: 'assistant', content: 'Sunny.' }
    expect(
      read({
        input: [asked, reply, asked, { role: 'developer', content: 'Be brief.' }, asked, call('c1'), output('c1')],
      }).turn,
    ).toBe(2)
    expect(read({ input: [asked, asked] }).turn).toBe(1)
  })

  it('may say nothing if a prompt that the service keeps does', () => {
    expect(read({ prompt: { id: 'pmpt_1' }, previous_response_id: 'resp_1' }).said).toEqual([])
    expect(read({ prompt: { id: 'pmpt_1' }, input: [] }).said).toEqual([])
  })

  it('is not read any closer where memory takes no part', () => {
    const body = { model: 'gpt-5', stream: true, input: 7 }
    const { model, streams, session } = read(body)
    expect({ model, streams, session }).toEqual({ model: 'gpt-5', streams: true, session: undefined })
  })

  it.each([
    [{}, missing],
    [{ input: [] }, missing],
    [{ input: [], previous_response_id: 'resp_1' }, missing],
    [{ previous_response_id: 'resp_1' }, missing],
    [{ conversation: 'conv_1' }, missing],
    [{ input: 7, prompt: { id: 'p' } }, missing],
    [{ input: ['Hello'] }, 'input[0] must be an object such as { "role": "user", "content": "Hello" }.'],
    [{ input: [{}] }, 'input[0].type must be text that is not empty; it says what the item is.'],
    [
      { input: [{ role: 'tool', content: 'x' }] },
      'input[0].role is "tool"; it must be one of user, assistant, system, developer.',
    ],
    [{ input: [{ role: 'user', content: 7 }] }, 'input[0].content must be text or a list.'],
    [{ input: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input[0].content[0].text must be text.'],
    [
      { input: [{ role: 'user', content: [{ text: 'x' }] }] },
      'input[0].content[0].type must be text that is not empty; it says what the part is.',
    ],
    [
      { input: [asked, { type: 'function_call', name: 'x', arguments: '' }] },
      'input[1].call_id must be text that is not empty; it names the call.',
    ],
    [
      { input: [asked, { type: 'function_call', call_id: 'c', arguments: '' }] },
      'input[1].name must be text that is not empty; it names the tool.',
    ],
  ])('is refused if memory cannot read it: %j', (body, message) => {
    expect(() => read(body).said).toThrow(message)
  })
})
