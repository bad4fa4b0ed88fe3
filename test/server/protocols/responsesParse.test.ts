import { describe, expect, it } from 'vitest'
import { chatProtocol } from '../../../src/server/protocols/chat.ts'
import type { ClientMessage, FilePart, ParsedRequest, RequestBody } from '../../../src/server/protocols/protocol.ts'
import { responsesProtocol } from '../../../src/server/protocols/responses.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { verifies } from '../../requirements/verifies.ts'

const parse = (body: RequestBody) => responsesProtocol.parseRequest(body, chars4)
const expectRequest = (body: RequestBody, expected: Partial<ParsedRequest>): void =>
  expect(parse(body)).toMatchObject(expected)
const parseMessages = (input: unknown) =>
  parse({ input }).messages.map(({ at: _at, partEnds: _partEnds, ...message }) => message)
const expectMessages = (input: unknown, expected: readonly Omit<ClientMessage, 'at' | 'partEnds'>[]): void =>
  expect(parseMessages(input)).toEqual(expected)
const call = (id: string, name = 'weather', text = '{"city":"Bern"}') => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: text,
})
const output = (id: string, text: unknown = 'sunny') => ({ type: 'function_call_output', call_id: id, output: text })
const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] }
const question = { role: 'user', content: 'How is the weather?' }
const missingInput =
  'input is missing: it must be text, or a list with at least one item such as { "role": "user", "content": "Hello" }.'

describe('Responses request', () => {
  it('with plain text is one user message', () => {
    const body = { model: 'gpt-5', input: 'Hello', stream: true, max_output_tokens: 50, user: 'ann' }
    const request = parse(body)
    expectRequest(body, {
      model: 'gpt-5',
      isStreaming: true,
      turnStart: 0,
      maxTokens: 50,
      sessionHint: 'ann',
      hasTools: false,
      files: [],
      instructions: [],
      promptOverheadTokens: 0,
    })
    const expected: readonly ClientMessage[] = [{ role: 'user', content: 'Hello', at: 0, index: 0 }]
    expect(request.messages).toEqual(expected)
    expect(request.previousResponseId).toBeUndefined()
    expect(request.conversationId).toBeUndefined()
  })

  it('reads the previous response and the conversation', () => {
    expect(parse({ input: 'Hi', previous_response_id: 'resp_1' }).previousResponseId).toBe('resp_1')
    expect(parse({ input: 'Hi', conversation: 'conv_1' }).conversationId).toBe('conv_1')
    expect(parse({ input: 'Hi', conversation: { id: 'conv_2' } }).conversationId).toBe('conv_2')
    expectRequest(
      { input: 'Hi', previous_response_id: null, conversation: null },
      { previousResponseId: undefined, conversationId: undefined },
    )
  })

  it('separates instructions from the conversation', () => {
    const input = [
      { role: 'developer', content: 'Be brief.' },
      question,
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'Be kind.' }] },
    ]
    const request = parse({ instructions: 'You are a cook.', input })
    expect(request.instructions).toEqual(['You are a cook.', 'Be brief.', 'Be kind.'])
    expect(request.messages.map(({ index }) => index)).toEqual([1])
    // 'system' is 2 tokens, and a token is four characters.
    expect(request.promptOverheadTokens).toBe(2 + 4 + (2 + 3) + (2 + 2))
  })

  it('counts the tokens of its tools, including tools added by items', () => {
    const now = { type: 'function', name: 'now', description: 'The time', parameters: {}, strict: true }
    const tools = parse({ input: 'Hi', tools: [now] })
    const added = parse({ input: [{ type: 'additional_tools', role: 'developer', tools: [now] }, question] })
    const { type, ...definition } = now
    expect(tools.promptOverheadTokens).toBe(
      chatProtocol.parseRequest({ messages: [question], tools: [{ type, function: definition }] }, chars4)
        .promptOverheadTokens,
    )
    expect(tools.promptOverheadTokens).toBeGreaterThan(0)
    expect(added.promptOverheadTokens).toBe(tools.promptOverheadTokens)
    expect([tools.hasTools, added.hasTools, added.turnStart]).toEqual([true, true, 1])
  })

  it('reads messages with and without a type, with text and with parts', () => {
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
    const refusal = { role: 'assistant', content: [{ type: 'refusal', refusal: 'I cannot.' }] }
    expectMessages(
      [{ role: 'user', content: parts }, reply, { type: 'message', role: 'user', content: 'And?' }, refusal],
      [
        {
          role: 'user',
          content:
            'Look:\n[image https://example.com/cat.png]\n[image file-9]\n[audio, 3 bytes, sha256 709e80c88487a241]\n[video]',
          index: 0,
        },
        { role: 'assistant', content: 'A cat.', index: 1 },
        { role: 'user', content: 'And?', index: 2 },
        { role: 'assistant', content: 'I cannot.', index: 3 },
      ],
    )
  })

  it('collects files', () => {
    const pdf = { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERg==' }
    const reference = { type: 'input_file', file_url: 'https://example.com/b.pdf' }
    const textUrl = { type: 'input_image', image_url: 'data:text/plain,secret' }
    const request = parse({ input: [{ role: 'user', content: [pdf, reference, textUrl] }] })
    const expected: readonly FilePart[] = [
      { name: 'a.pdf', mediaType: 'application/pdf', bytes: Buffer.from('%PDF') },
      { name: 'file', mediaType: '', bytes: undefined },
      { name: 'file', mediaType: 'text/plain', bytes: Buffer.from('secret') },
    ]
    expect(request.files).toEqual(expected)
    expect(request.messages[0]?.content.split('\n')).toEqual([
      '[file a.pdf, application/pdf, 4 bytes, sha256 315d429b7714cedb]',
      '[file file https://example.com/b.pdf]',
      '[file, text/plain, 6 bytes, sha256 2bb80d537b1da3e3]',
    ])
  })

  it('joins consecutive assistant items and their reasoning into one message', () => {
    const input = [
      question,
      reasoning,
      { role: 'assistant', content: 'I look.' },
      call('c1'),
      { type: 'web_search_call', id: 'ws_1' },
      call('c2'),
      output('c1'),
      output('c2'),
    ]
    const rest = [
      reasoning,
      { role: 'assistant', content: 'Sunny.' },
      { type: 'reasoning', id: 'rs_2', summary: [] },
      question,
    ]
    expectMessages(
      [...input, ...rest],
      [
        { role: 'user', content: 'How is the weather?', index: 0 },
        {
          role: 'assistant',
          content: 'I look.',
          toolCalls: [
            { id: 'c1', name: 'weather', arguments: '{"city":"Bern"}' },
            { id: 'c2', name: 'weather', arguments: '{"city":"Bern"}' },
          ],
          index: 1,
        },
        { role: 'tool', content: 'sunny', toolCallId: 'c1', index: 6 },
        { role: 'tool', content: 'sunny', toolCallId: 'c2', index: 7 },
        { role: 'assistant', content: 'Sunny.', index: 8 },
        { role: 'user', content: 'How is the weather?', index: 11 },
      ],
    )
  })

  it('omits empty replies', () => {
    expect(
      parseMessages([question, reasoning, { role: 'assistant', content: [] }, question]).map(({ role }) => role),
    ).toEqual(['user', 'user'])
  })

  it('converts calls and outputs of all tool types', () => {
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
    expectMessages(input, [
      {
        role: 'assistant',
        content: '',
        toolCalls: [
          { id: 'c1', name: 'patch', arguments: '{"input":"*** Begin"}' },
          { id: 'c2', name: 'local_shell', arguments: '{"action":{"type":"exec","command":["ls"],"env":{}}}' },
          { id: 'c3', name: 'apply_patch', arguments: '{"operation":{"type":"delete_file","path":"a"}}' },
        ],
        index: 0,
      },
      { role: 'tool', content: 'done', toolCallId: 'c1', index: 3 },
      { role: 'tool', content: 'a b', toolCallId: 'c2', index: 4 },
      { role: 'tool', content: 'failed', toolCallId: 'c3', index: 5 },
      {
        role: 'tool',
        content: '{"stdout":"x","stderr":"","outcome":{"type":"exit","exit_code":0}}',
        toolCallId: 'c4',
        index: 6,
      },
      { role: 'tool', content: '[image https://example.com/s.png]', toolCallId: 'c5', index: 7 },
    ])
  })

  it('starts the turn with the last user message, or with tool outputs that come alone', () => {
    expect(parse({ input: [question, call('c1'), output('c1'), question, call('c2'), output('c2')] }).turnStart).toBe(3)
    expect(
      parse({
        input: [{ role: 'developer', content: 'Be brief.' }, output('c1'), output('c2')],
        previous_response_id: 'resp_1',
      }).turnStart,
    ).toBe(1)
    expect(parse({ input: [{ role: 'developer', content: 'Be brief.' }] }).turnStart).toBe(1)
    expectRequest({ prompt: { id: 'pmpt_1' } }, { turnStart: 0, messages: [] })
  })

  verifies('X-01', 'counts messages before a reference, and the schema of the output', () => {
    const overhead = (body: object): number => parse({ input: [question], ...body }).promptOverheadTokens
    const reference = { type: 'item_reference', id: 'fc_1' }
    expect(overhead({ input: [question, reference, question] })).toBe(2 + 4)
    const schema = { type: 'object', properties: { answer: { type: 'string', description: 'Only the name.' } } }
    const format = { type: 'json_schema', name: 'answer', schema }
    expect(overhead({ text: { format } })).toBeGreaterThan(30)
    expect(overhead({ text: { format: { type: 'text' } } })).toBe(0)
  })

  verifies('X-01', 'counts items that memory does not read', () => {
    const overhead = (...input: object[]): number => parse({ input }).promptOverheadTokens
    const compaction = { type: 'compaction', id: 'cmp_1', encrypted_content: 'Zm9v'.repeat(1_000) }
    expect(overhead(compaction, question)).toBeGreaterThan(1_000)
    expect(overhead({ ...compaction, encrypted_content: 'Zm9v'.repeat(100_000) }, question)).toBeGreaterThan(400_000)
    const unknown = { type: 'video', format: 'mp4', data: 'AAAA'.repeat(1_000) }
    expect(overhead(question, unknown)).toBeGreaterThan(1_000)
    expect(overhead(unknown, question)).toBeGreaterThan(1_000)
    // Items that are stored with a message are counted with it.
    expect(overhead(question, compaction, question)).toBe(0)
    // Tools are counted as such.
    const tools = [{ type: 'function', name: 'now', description: 'The time.', parameters: {} }]
    const added = { type: 'additional_tools', role: 'developer', tools }
    expect(overhead(added, question)).toBe(parse({ input: [question], tools }).promptOverheadTokens)
  })

  it('leaves referenced items and everything before them to memory', () => {
    const request = parse({ input: [question, { type: 'item_reference', id: 'fc_1' }, output('c1')] })
    expect(request.turnStart).toBe(2)
    expect(request.messages.map(({ role, index }) => [role, index])).toEqual([['tool', 2]])
    expectRequest({ input: [question, { id: 'msg_1' }] }, { messages: [], turnStart: 2 })
  })

  it('starts the turn with the last run of user messages, except at the start of the list', () => {
    const reply = { role: 'assistant', content: 'Sunny.' }
    expect(
      parse({
        input: [
          question,
          reply,
          question,
          { role: 'developer', content: 'Be brief.' },
          question,
          call('c1'),
          output('c1'),
        ],
      }).turnStart,
    ).toBe(2)
    expect(parse({ input: [question, question] }).turnStart).toBe(1)
  })

  it('may be empty with a stored prompt', () => {
    expect(parse({ prompt: { id: 'pmpt_1' }, previous_response_id: 'resp_1' }).messages).toEqual([])
    expect(parse({ prompt: { id: 'pmpt_1' }, input: [] }).messages).toEqual([])
  })

  it('is not validated until its conversation is read', () => {
    const body = { model: 'gpt-5', stream: true, input: 7 }
    const { model, isStreaming, sessionHint } = parse(body)
    expect([model, isStreaming, sessionHint]).toEqual(['gpt-5', true, undefined])
  })

  it.each([
    [{}, missingInput],
    [{ input: [] }, missingInput],
    [{ input: [], previous_response_id: 'resp_1' }, missingInput],
    [{ previous_response_id: 'resp_1' }, missingInput],
    [{ conversation: 'conv_1' }, missingInput],
    [{ input: 7, prompt: { id: 'p' } }, missingInput],
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
      { input: [question, { type: 'function_call', name: 'x', arguments: '' }] },
      'input[1].call_id must be text that is not empty; it names the call.',
    ],
    [
      { input: [question, { type: 'function_call', call_id: 'c', arguments: '' }] },
      'input[1].name must be text that is not empty; it names the tool.',
    ],
  ])('with invalid fields is rejected: %j', (body, message) => {
    expect(() => parse(body).messages).toThrow(message)
  })
})
