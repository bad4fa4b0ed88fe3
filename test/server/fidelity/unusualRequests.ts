import { encryptedReasoning, opaqueText, type Protocol, signature } from './recorder.ts'
import { cacheMarker, citySchema, pdf, pdfUrl } from './sdkStacks.ts'

type Body = Readonly<Record<string, unknown>>
export type UnusualRequest = {
  readonly name: string
  readonly protocol: Protocol
  readonly path: string
  readonly body: Body
}

const user = (content: unknown): Body => ({ role: 'user', content })
const assistant = (content: unknown): Body => ({ role: 'assistant', content })
const text = (value: string): Body => ({ type: 'text', text: value })
const turn = [user('Is Rome warmer?'), assistant('It is.')]

const chat = (name: string, messages: readonly unknown[], fields: Body = {}): UnusualRequest => ({
  name: `chat completions, ${name}`,
  protocol: 'openai',
  path: '/chat/completions',
  body: { model: 'test-model', ...fields, messages },
})
const chatCall = (fields: Body): Body => ({ role: 'assistant', content: null, ...fields })
const chatRequests = [
  chat('system and developer messages in the middle', [
    { role: 'system', content: 'Be brief.' },
    ...turn,
    { role: 'developer', content: [text('Now be verbose.')] },
    user('Why?'),
    { role: 'system', content: 'The user is in a hurry.' },
  ]),
  chat('consecutive user messages and a reply to continue', [
    user('First'),
    user([text('Second'), text('Third')]),
    assistant('The answer is'),
  ]),
  chat('fields of other providers', [
    user([{ ...text('Where is it warmer?'), ...cacheMarker }]),
    chatCall({
      content: 'In Rome.',
      reasoning_content: 'Compare.',
      reasoning_details: [{ type: 'reasoning.encrypted', data: encryptedReasoning, id: 'rs_1', format: 'x', index: 0 }],
      refusal: null,
      annotations: [],
      audio: { id: 'audio_1' },
      extra_content: { google: { thought_signature: signature } },
    }),
    user('Why?'),
  ]),
  chat('custom calls, old function calls and an empty result', [
    user('Patch it.'),
    chatCall({ tool_calls: [{ id: 'call_1', type: 'custom', custom: { name: 'patch', input: '*** x' } }] }),
    { role: 'tool', tool_call_id: 'call_1', content: '' },
    chatCall({ function_call: { name: 'weather', arguments: '{ "city" : "Rome" }' } }),
    { role: 'function', name: 'weather', content: '21 °C' },
    user('And now?'),
  ]),
  chat('a document, an image, sound and an unknown part', [
    user([
      text('Compare these.'),
      { type: 'file', file: { filename: 'report.pdf', file_data: pdfUrl } },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
      { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
      { type: 'x_part', x: [1, null, { deep: true }] },
    ]),
    assistant([text('Done.'), { type: 'refusal', refusal: 'Not the sound.' }]),
    user('Thanks.'),
  ]),
  chat('every parameter', [...turn, user('Why?')], {
    temperature: 0.1,
    logit_bias: { '50256': -100, '7': 1 },
    prediction: { type: 'content', content: 'It is' },
    response_format: { type: 'json_schema', json_schema: { name: 'x', schema: citySchema } },
    store: true,
    user: 'user-7',
    x_unknown: { deep: [1, null] },
  }),
]

const messages = (name: string, list: readonly unknown[], fields: Body = {}): UnusualRequest => ({
  name: `messages, ${name}`,
  protocol: 'anthropic',
  path: '/v1/messages?beta=true',
  body: { model: 'test-model', max_tokens: 1_000, ...fields, messages: list },
})
const searchResult = {
  type: 'web_search_result',
  url: 'https://example.com',
  title: 'Weather',
  encrypted_content: opaqueText('result'),
  page_age: null,
}
const citation = {
  type: 'web_search_result_location',
  url: 'https://example.com',
  title: 'Weather',
  encrypted_index: opaqueText('index'),
  cited_text: '21 °C',
}
const messagesRequests = [
  messages('a prefill', [...turn, user('Answer in JSON.'), assistant('{"city":')], { system: 'Be brief.' }),
  messages('a prefill without a system prompt', [user('Answer in JSON.'), assistant([text('{')])]),
  messages(
    'a system prompt of blocks and system messages',
    [...turn, { role: 'system', content: 'Hurry.' }, user('Why?')],
    {
      system: [text('Be brief.'), { ...text('Use notes.'), cache_control: { type: 'ephemeral', ttl: '1h' } }],
    },
  ),
  messages('consecutive user messages', [user('First'), user([text('Second')]), assistant('Yes.'), user('Third')]),
  messages('tools of the server, citations and redacted thinking', [
    user('Search for the weather.'),
    assistant([
      { type: 'redacted_thinking', data: encryptedReasoning },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'weather Rome' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [searchResult] },
      { ...text('It is 21 °C.'), citations: [citation] },
      { type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'echo', server_name: 'example', input: {} },
      { type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false, content: [text('hello')] },
    ]),
    user('Why?'),
  ]),
  messages('documents in a tool result and a failed tool', [
    user('Read both files.'),
    assistant([
      { type: 'thinking', thinking: '', signature },
      {
        type: 'tool_use',
        id: 'toolu_1',
        name: 'read',
        input: { b: 1, a: { '2': 'x', '1': 'y' } },
        caller: { type: 'direct' },
      },
      { type: 'tool_use', id: 'toolu_2', name: 'read', input: {} },
    ]),
    user([
      {
        type: 'tool_result',
        tool_use_id: 'toolu_1',
        content: [
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf }, title: 'Report' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
          { type: 'search_result', source: 'notes', title: 'Notes', content: [text('Hello.')] },
        ],
        ...cacheMarker,
      },
      { type: 'tool_result', tool_use_id: 'toolu_2', is_error: true },
      { type: 'container_upload', file_id: 'file_1' },
    ]),
  ]),
]

const responses = (name: string, input: unknown, fields: Body = {}): UnusualRequest => ({
  name: `Responses, ${name}`,
  protocol: 'openai',
  path: '/responses',
  body: { model: 'test-model', ...fields, input },
})
const outputText = { type: 'output_text', text: 'It is.', annotations: [], logprobs: [] }
const responsesRequests = [
  responses('text as input', 'Where is it warmer?', { store: true, truncation: 'auto', previous_response_id: null }),
  responses(
    'references to items that the upstream stores',
    [user('Where?'), { type: 'item_reference', id: 'rs_1' }, { id: 'msg_1', type: 'item_reference' }, user('Why?')],
    { store: true },
  ),
  responses('reasoning without encrypted content', [
    user('Where?'),
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Compare.' }] },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      phase: 'final_answer',
      content: [outputText],
    },
    user('Why?'),
  ]),
  responses(
    'calls of built-in tools',
    [
      user([{ type: 'input_text', text: 'Search.' }]),
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'weather' } },
      { type: 'mcp_call', id: 'mcp_1', server_label: 'x', name: 'echo', arguments: '{}', output: 'hello' },
      {
        type: 'local_shell_call',
        id: 'ls_1',
        call_id: 'call_1',
        status: 'completed',
        action: { type: 'exec', command: [] },
      },
      { type: 'local_shell_call_output', id: 'lso_1', call_id: 'call_1', output: '' },
      { type: 'compaction', id: 'cmp_1', encrypted_content: encryptedReasoning },
      { type: 'message', role: 'developer', content: 'Hurry.' },
      user('Why?'),
    ],
    { include: [], service_tier: 'flex', text: { verbosity: 'low' }, max_tool_calls: 3 },
  ),
  responses('documents and images', [
    user([
      { type: 'input_file', filename: 'report.pdf', file_data: pdfUrl },
      { type: 'input_file', file_id: 'file-1' },
      { type: 'input_image', image_url: 'https://example.com/cat.png', detail: 'low' },
      { type: 'input_text', text: 'Compare these.' },
    ]),
    assistant('Done.'),
    { type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '{ "city": "Rome" }' },
    { type: 'function_call_output', call_id: 'call_1', output: [{ type: 'input_text', text: '21 °C' }] },
  ]),
]

/** Requests with everything that the protocols allow and a memory could lose. */
export const unusualRequests: readonly UnusualRequest[] = [...chatRequests, ...messagesRequests, ...responsesRequests]
