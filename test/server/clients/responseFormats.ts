/** Content of one reply. */
export type ScriptedReply = { readonly text?: string; readonly calls?: readonly Call[]; readonly thinking?: string }
export type Call = { readonly id: string; readonly name: string; readonly input: Readonly<Record<string, unknown>> }

type Body = Readonly<Record<string, unknown>>
type Event = { readonly type: string; readonly [field: string]: unknown }

/**
 * Response format of one protocol, as the real service writes it. `number` is the number of the request. `settings` are
 * fields that a response repeats from its request.
 */
export type ResponseFormat = {
  /** Formats a complete response. */
  formatBody(reply: ScriptedReply, number: number, settings?: Body): unknown
  /** Formats the events of a stream; text is split over several events. */
  formatEvents(reply: ScriptedReply, number: number, request: Body, settings?: Body): readonly string[]
  /** Formats an error. */
  formatError(status: number, message: string): unknown
}

const model = 'test-model'
const splitText = (text: string): readonly string[] => text.match(/[\s\S]{1,7}/gu) ?? []
const formatData = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const formatNamedEvent = (event: Event): string => `event: ${event.type}\n${formatData(event)}`

/** Formats an error of both OpenAI protocols. */
const formatOpenaiError = (status: number, message: string): unknown => ({
  error: {
    message,
    type: status >= 500 ? 'server_error' : 'invalid_request_error',
    param: null,
    code: `scripted_${status}`,
  },
})

const chatUsage = {
  prompt_tokens: 21,
  completion_tokens: 8,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 13 },
}

/** OpenAI chat completions. */
export const chatFormat: ResponseFormat = {
  formatBody: ({ text, calls }, number) => ({
    id: `chatcmpl-${number}`,
    object: 'chat.completion',
    created: 1,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text ?? null,
          refusal: null,
          ...(calls === undefined ? {} : { tool_calls: calls.map(toChatCall) }),
        },
        logprobs: null,
        finish_reason: calls === undefined ? 'stop' : 'tool_calls',
      },
    ],
    usage: chatUsage,
  }),
  formatEvents: ({ text = '', calls = [] }, number, { stream_options: options }) => {
    const header = { id: `chatcmpl-${number}`, object: 'chat.completion.chunk', created: 1, model }
    const formatChunk = (delta: unknown, reason: string | null = null): string =>
      formatData({ ...header, choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }] })
    const includeUsage = (options as { readonly include_usage?: boolean } | undefined)?.include_usage === true
    return [
      ': keep-alive\n\n',
      formatChunk({ role: 'assistant', content: '' }),
      ...splitText(text).map((content) => formatChunk({ content })),
      ...calls.map((call, index) =>
        formatChunk({ tool_calls: [{ index, ...toChatCall({ ...call, input: undefined }) }] }),
      ),
      // Arguments of parallel calls arrive interleaved.
      ...interleave(calls.map(({ input }) => splitText(JSON.stringify(input)))).map(([index, text]) =>
        formatChunk({ tool_calls: [{ index, function: { arguments: text } }] }),
      ),
      formatChunk({}, calls.length === 0 ? 'stop' : 'tool_calls'),
      ...(includeUsage ? [formatData({ ...header, choices: [], usage: chatUsage })] : []),
      'data: [DONE]\n\n',
    ]
  },
  formatError: formatOpenaiError,
}

const toChatCall = ({ id, name, input }: Omit<Call, 'input'> & { readonly input: unknown }) => ({
  id,
  type: 'function',
  function: { name, arguments: input === undefined ? '' : JSON.stringify(input) },
})

/** Takes one element of each list in turn, with the index of its list. */
function interleave(lists: readonly (readonly string[])[]): readonly (readonly [number, string])[] {
  const maxLength = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length: maxLength }, (_, position) =>
    lists.flatMap((list, index) => (position < list.length ? [[index, list[position] as string] as const] : [])),
  ).flat()
}

const responsesUsage = {
  input_tokens: 21,
  input_tokens_details: { cached_tokens: 13 },
  output_tokens: 8,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 29,
}

/** OpenAI Responses. */
export const responsesFormat: ResponseFormat = {
  formatBody: (reply, number, settings) => ({
    ...createResponse(number),
    ...settings,
    status: 'completed',
    output: toItems(reply, number),
    usage: responsesUsage,
  }),
  formatEvents: (reply, number, _request, settings) => {
    const initial = { ...createResponse(number), ...settings, status: 'in_progress' }
    const output = toItems(reply, number)
    const events: readonly Event[] = [
      { type: 'response.created', response: initial },
      { type: 'response.in_progress', response: initial },
      ...output.flatMap(createItemEvents),
      { type: 'response.completed', response: { ...initial, status: 'completed', output, usage: responsesUsage } },
    ]
    return events.map((event, sequence) => formatNamedEvent({ ...event, sequence_number: sequence }))
  },
  formatError: formatOpenaiError,
}

const createResponse = (number: number) => ({
  id: `resp_${number}`,
  object: 'response',
  created_at: 1,
  model,
  output: [] as readonly unknown[],
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  parallel_tool_calls: true,
  tool_choice: 'auto',
  tools: [],
})

type Item = Event & { readonly id: string }

const toPart = (text: string) => ({ type: 'output_text', text, annotations: [] })

function toItems({ text, calls = [], thinking }: ScriptedReply, number: number): readonly Item[] {
  const callItems = calls.map(({ id, name, input }): Item => {
    return {
      type: 'function_call',
      id: `fc_${id}`,
      call_id: id,
      name,
      arguments: JSON.stringify(input),
      status: 'completed',
    }
  })
  return [
    ...(thinking === undefined
      ? []
      : [{ type: 'reasoning', id: `rs_${number}`, summary: [{ type: 'summary_text', text: thinking }] }]),
    ...(text === undefined
      ? []
      : [{ type: 'message', id: `msg_${number}`, role: 'assistant', status: 'completed', content: [toPart(text)] }]),
    ...callItems,
  ]
}

function createItemEvents(item: Item, output_index: number): readonly Event[] {
  const position = { output_index, item_id: item.id }
  const done: Event = { type: 'response.output_item.done', output_index, item }
  const createAdded = (fields: object): Event => ({
    type: 'response.output_item.added',
    output_index,
    item: { ...item, ...fields, status: 'in_progress' },
  })
  if (item.type === 'function_call') {
    const text = String(item.arguments)
    const deltas = splitText(text).map(
      (delta): Event => ({ type: 'response.function_call_arguments.delta', ...position, delta }),
    )
    return [
      createAdded({ arguments: '' }),
      ...deltas,
      { type: 'response.function_call_arguments.done', ...position, name: item.name, arguments: text },
      done,
    ]
  }
  if (item.type !== 'message') return [{ ...done, type: 'response.output_item.added' }, done]
  const [part] = item.content as readonly ReturnType<typeof toPart>[]
  const { text } = part as ReturnType<typeof toPart>
  const partPosition = { ...position, content_index: 0 }
  return [
    createAdded({ content: [] }),
    { type: 'response.content_part.added', ...partPosition, part: toPart('') },
    ...splitText(text).map(
      (delta): Event => ({ type: 'response.output_text.delta', ...partPosition, delta, logprobs: [] }),
    ),
    { type: 'response.output_text.done', ...partPosition, text, logprobs: [] },
    { type: 'response.content_part.done', ...partPosition, part },
    done,
  ]
}

const messagesUsage = { input_tokens: 8, cache_creation_input_tokens: 0, cache_read_input_tokens: 13, output_tokens: 8 }
const errorTypes: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
}

/** Anthropic Messages. */
export const messagesFormat: ResponseFormat = {
  formatBody: (reply, number) => ({
    ...createMessage(number),
    content: toBlocks(reply),
    stop_reason: readStopReason(reply),
    usage: messagesUsage,
  }),
  formatEvents: (reply, number) =>
    [
      { type: 'message_start', message: { ...createMessage(number), usage: { ...messagesUsage, output_tokens: 1 } } },
      { type: 'ping' },
      ...toBlocks(reply).flatMap(createBlockEvents),
      {
        type: 'message_delta',
        delta: { stop_reason: readStopReason(reply), stop_sequence: null },
        usage: { output_tokens: 8 },
      },
      { type: 'message_stop' },
    ].map(formatNamedEvent),
  formatError: (status, message) => ({
    type: 'error',
    error: { type: errorTypes[status] ?? 'api_error', message },
    request_id: 'req_scripted',
  }),
}

const readStopReason = ({ calls }: ScriptedReply): string => (calls === undefined ? 'end_turn' : 'tool_use')
const createMessage = (number: number) => ({
  id: `msg_${number}`,
  type: 'message',
  role: 'assistant',
  model,
  content: [] as readonly unknown[],
  stop_reason: null as string | null,
  stop_sequence: null,
})

type Block = Event & { readonly text?: string; readonly thinking?: string; readonly input?: unknown }

const toBlocks = ({ text, calls = [], thinking }: ScriptedReply): readonly Block[] => [
  ...(thinking === undefined ? [] : [{ type: 'thinking', thinking, signature: 'c2lnbmVk' }]),
  ...(text === undefined ? [] : [{ type: 'text', text }]),
  ...calls.map((call) => ({ type: 'tool_use', ...call })),
]

function createBlockEvents(block: Block, index: number): readonly Event[] {
  const createDelta = (fields: Event): Event => ({ type: 'content_block_delta', index, delta: fields })
  const createStart = (fields: object): Event => ({
    type: 'content_block_start',
    index,
    content_block: { ...block, ...fields },
  })
  const stop: Event = { type: 'content_block_stop', index }
  if (block.type === 'text')
    return [
      createStart({ text: '' }),
      ...splitText(block.text ?? '').map((text) => createDelta({ type: 'text_delta', text })),
      stop,
    ]
  if (block.type === 'tool_use') {
    const deltas = splitText(JSON.stringify(block.input)).map((json) =>
      createDelta({ type: 'input_json_delta', partial_json: json }),
    )
    return [createStart({ input: {} }), ...deltas, stop]
  }
  const deltas = splitText(block.thinking ?? '').map((thinking) => createDelta({ type: 'thinking_delta', thinking }))
  return [
    createStart({ thinking: '', signature: '' }),
    ...deltas,
    createDelta({ type: 'signature_delta', signature: 'c2lnbmVk' }),
    stop,
  ]
}
