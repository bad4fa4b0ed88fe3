import type { ScriptedReply } from '../clients/responseFormats.ts'
import { encryptedReasoning, type Recorder, signature } from './recorder.ts'
import { type ClientAdapter, defineStack } from './scenario.ts'
import { cacheMarker, citySchema, pdf, pdfUrl, readWeather, systemText } from './sdkStacks.ts'

type Block = Readonly<Record<string, unknown>>
type Message = { readonly role: string; readonly content: readonly Block[] | string }

/** Sends a request as an agent does, reads the whole response, and returns the reply that the model was told to give. */
async function post(
  { url, exchanges }: Recorder,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): Promise<ScriptedReply> {
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer sk-client', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${response.status} ${text}`)
  const scripted = exchanges.at(-1)?.response
  if (scripted?.kind !== 'reply') throw new Error(`No reply was scripted: ${text}`)
  return scripted.reply
}

const textBlock = (text: string): Block => ({ type: 'text', text })

/** Puts the cache marker on the last block of the newest message; the marker moves with each request. */
function markNewest(messages: readonly Message[]): readonly Message[] {
  const [newest] = messages.slice(-1)
  if (newest === undefined || typeof newest.content === 'string') return messages
  const blocks = newest.content.map((block, index, all) =>
    index === all.length - 1 ? { ...block, ...cacheMarker } : block,
  )
  return [...messages.slice(0, -1), { ...newest, content: blocks }]
}

const claudeBody = {
  model: 'test-model',
  max_tokens: 32_000,
  stream: true,
  system: [
    textBlock("You are Claude Code, Anthropic's official CLI for Claude."),
    { ...textBlock(systemText), ...cacheMarker },
  ],
  tools: [{ name: 'weather', description: 'The weather', input_schema: citySchema }],
  thinking: { type: 'enabled', budget_tokens: 31_999 },
  context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  metadata: { user_id: 'user_0a1b_account_2c3d_session_4e5f' },
}
const claudeHeaders = {
  'anthropic-version': '2023-06-01',
  'anthropic-beta': 'claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27',
  'user-agent': 'claude-cli/2.0.5 (external, cli)',
  'x-app': 'cli',
}
const reminder = textBlock('<system-reminder>\nThe project notes are in notes.md.\n</system-reminder>')

const toClaudeBlocks = ({ thinking, text, calls = [] }: ScriptedReply): readonly Block[] => [
  ...(thinking === undefined ? [] : [{ type: 'thinking', thinking, signature }]),
  ...(text === undefined ? [] : [textBlock(text)]),
  ...calls.map((call) => ({ type: 'tool_use', ...call })),
]

const claudeCode = defineStack<Message>('Claude Code', 'anthropic', (recorder) => {
  const adapter: ClientAdapter<Message> = {
    createQuestion: (text) => [{ role: 'user', content: [reminder, textBlock(text)] }],
    createDocumentQuestion: (text) => [
      { role: 'system', content: 'The user has opened report.pdf.' },
      {
        role: 'user',
        content: [
          { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
          textBlock(text),
        ],
      },
    ],
    send: async (conversation) => {
      const body = { ...claudeBody, messages: markNewest(conversation) }
      const reply = await post(recorder, '/v1/messages?beta=true', body, claudeHeaders)
      const answer = { role: 'assistant', content: toClaudeBlocks(reply) }
      if (reply.calls === undefined) return [answer]
      const results = reply.calls.map(({ id, input }) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: readWeather(String(input.city)),
        is_error: false,
      }))
      const added = [answer, { role: 'user', content: [...results, reminder] }]
      return [...added, ...(await adapter.send([...conversation, ...added]))]
    },
  }
  return adapter
})

const codexBody = {
  model: 'test-model',
  instructions: 'You are Codex, a coding agent running in a terminal.',
  tools: [
    { type: 'function', name: 'weather', description: 'The weather', strict: false, parameters: citySchema },
    { type: 'custom', name: 'apply_patch', format: { type: 'grammar', syntax: 'lark', definition: 'start: "x"' } },
    { type: 'web_search', external_web_access: false },
  ],
  tool_choice: 'auto',
  parallel_tool_calls: true,
  reasoning: { effort: 'medium', summary: 'auto' },
  store: false,
  stream: true,
  include: ['reasoning.encrypted_content'],
  prompt_cache_key: '0199-aa',
}
const codexHeaders = { 'user-agent': 'codex_cli_rs/0.50.0', originator: 'codex_cli_rs', session_id: '0199-aa' }
const createItem = (role: string, ...content: readonly Block[]): Block => ({ type: 'message', role, content })
const inputText = (text: string): Block => ({ type: 'input_text', text })
const codexPrologue = [
  createItem('developer', inputText('<permissions instructions>Read only.</permissions instructions>')),
  createItem('user', inputText('<environment_context>\n  <cwd>/project</cwd>\n</environment_context>')),
]

/** Each tool turn has calls with item ids and a custom call with its output. */
function toCodexItems({ thinking, text, calls = [] }: ScriptedReply, number: number): readonly Block[] {
  const patchId = `call_patch_${number}`
  const patch = [
    { type: 'custom_tool_call', id: `ctc_${number}`, status: 'completed', call_id: patchId, name: 'apply_patch' },
    { type: 'custom_tool_call_output', call_id: patchId, output: '{"output":"Success."}' },
  ]
  return [
    ...(thinking === undefined
      ? []
      : [{ type: 'reasoning', id: `rs_${number}`, summary: [], content: null, encrypted_content: encryptedReasoning }]),
    ...(text === undefined ? [] : [{ ...createItem('assistant', { type: 'output_text', text }), id: `msg_${number}` }]),
    ...calls.map(({ id, name, input }) => ({
      type: 'function_call',
      id: `fc_${id}`,
      call_id: id,
      name,
      arguments: JSON.stringify(input),
    })),
    ...calls.map(({ id, input }) => ({
      type: 'function_call_output',
      call_id: id,
      output: readWeather(String(input.city)),
    })),
    ...(calls.length === 0 ? [] : [{ ...patch[0], input: '*** Delete File: a.ts' } as Block, patch[1] as Block]),
  ]
}

const codex = defineStack<Block>('Codex', 'openai', (recorder) => {
  const adapter: ClientAdapter<Block> = {
    createQuestion: (text) => [createItem('user', inputText(text))],
    createDocumentQuestion: (text) => [
      createItem('user', inputText(text), { type: 'input_file', filename: 'report.pdf', file_data: pdfUrl }),
    ],
    send: async (conversation) => {
      const body = { ...codexBody, input: [...codexPrologue, ...conversation] }
      const reply = await post(recorder, '/responses', body, codexHeaders)
      const added = toCodexItems(reply, recorder.exchanges.length)
      return reply.calls === undefined ? added : [...added, ...(await adapter.send([...conversation, ...added]))]
    },
  }
  return adapter
})

export const agentStacks = [claudeCode, codex]
