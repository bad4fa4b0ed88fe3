/** What the model says in one reply. */
export type Said = { readonly text?: string; readonly calls?: readonly Call[]; readonly thinking?: string }
export type Call = { readonly id: string; readonly name: string; readonly input: Readonly<Record<string, unknown>> }

type Body = Readonly<Record<string, unknown>>
type Event = { readonly type: string; readonly [field: string]: unknown }

/** One of the protocols, as its own service words it. */
export type Wording = {
  whole(said: Said, place: number): unknown
  /** The events of a stream, the text in several of them. */
  events(said: Said, place: number, request: Body): readonly string[]
  refusal(status: number, message: string): unknown
}

const model = 'test-model'
const piecesOf = (text: string): readonly string[] => text.match(/[\s\S]{1,7}/gu) ?? []
const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`
const named = (event: Event): string => `event: ${event.type}\n${data(event)}`

/** What both of OpenAI's protocols say with a status. */
const openaiRefusal = (status: number, message: string): unknown => ({
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

/** OpenAI's chat completions. */
export const chatWording: Wording = {
  whole: ({ text, calls }, place) => ({
    id: `chatcmpl-${place}`,
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
          ...(calls === undefined ? {} : { tool_calls: calls.map(chatCall) }),
        },
        logprobs: null,
        finish_reason: calls === undefined ? 'stop' : 'tool_calls',
      },
    ],
    usage: chatUsage,
  }),
  events: ({ text = '', calls = [] }, place, { stream_options: options }) => {
    const head = { id: `chatcmpl-${place}`, object: 'chat.completion.chunk', created: 1, model }
    const chunk = (delta: unknown, reason: string | null = null): string =>
      data({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: reason }] })
    const counted = (options as { readonly include_usage?: boolean } | undefined)?.include_usage === true
    return [
      ': keep-alive\n\n',
      chunk({ role: 'assistant', content: '' }),
      ...piecesOf(text).map((content) => chunk({ content })),
      ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...chatCall({ ...call, input: undefined }) }] })),
      // Calls made at once grow side by side.
      ...interleaved(calls.map(({ input }) => piecesOf(JSON.stringify(input)))).map(([index, piece]) =>
        chunk({ tool_calls: [{ index, function: { arguments: piece } }] }),
      ),
      chunk({}, calls.length === 0 ? 'stop' : 'tool_calls'),
      ...(counted ? [data({ ...head, choices: [], usage: chatUsage })] : []),
      'data: [DONE]\n\n',
    ]
  },
  refusal: openaiRefusal,
}

const chatCall = ({ id, name, input }: Omit<Call, 'input'> & { readonly input: unknown }) => ({
  id,
  type: 'function',
  function: { name, arguments: input === undefined ? '' : JSON.stringify(input) },
})

/** One piece of each list after the other, with the number of its list. */
function interleaved(lists: readonly (readonly string[])[]): readonly (readonly [number, string])[] {
  const longest = Math.max(0, ...lists.map((list) => list.length))
  return Array.from({ length: longest }, (_, at) =>
    lists.flatMap((list, index) => (at < list.length ? [[index, list[at] as string] as const] : [])),
  ).flat()
}

const responsesUsage = {
  input_tokens: 21,
  input_tokens_details: { cached_tokens: 13 },
  output_tokens: 8,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 29,
}

/** OpenAI's responses. */
export const responsesWording: Wording = {
  whole: (said, place) => ({
    ...responseOf(place),
    status: 'completed',
    output: itemsOf(said, place),
    usage: responsesUsage,
  }),
  events: (said, place) => {
    const begun = { ...responseOf(place), status: 'in_progress' }
    const output = itemsOf(said, place)
    const events: readonly Event[] = [
      { type: 'response.created', response: begun },
      { type: 'response.in_progress', response: begun },
      ...output.flatMap(itemEvents),
      { type: 'response.completed', response: { ...begun, status: 'completed', output, usage: responsesUsage } },
    ]
    return events.map((event, number) => named({ ...event, sequence_number: number }))
  },
  refusal: openaiRefusal,
}

const responseOf = (place: number) => ({
  id: `resp_${place}`,
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

const partOf = (text: string) => ({ type: 'output_text', text, annotations: [] })

function itemsOf({ text, calls = [], thinking }: Said, place: number): readonly Item[] {
  const made = calls.map(({ id, name, input }): Item => {
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
      : [{ type: 'reasoning', id: `rs_${place}`, summary: [{ type: 'summary_text', text: thinking }] }]),
    ...(text === undefined
      ? []
      : [{ type: 'message', id: `msg_${place}`, role: 'assistant', status: 'completed', content: [partOf(text)] }]),
    ...made,
  ]
}

function itemEvents(item: Item, output_index: number): readonly Event[] {
  const at = { output_index, item_id: item.id }
  const done: Event = { type: 'response.output_item.done', output_index, item }
  const added = (fields: object): Event => ({
    type: 'response.output_item.added',
    output_index,
    item: { ...item, ...fields, status: 'in_progress' },
  })
  if (item.type === 'function_call') {
    const text = String(item.arguments)
    const deltas = piecesOf(text).map(
      (delta): Event => ({ type: 'response.function_call_arguments.delta', ...at, delta }),
    )
    return [
      added({ arguments: '' }),
      ...deltas,
      { type: 'response.function_call_arguments.done', ...at, name: item.name, arguments: text },
      done,
    ]
  }
  if (item.type !== 'message') return [{ ...done, type: 'response.output_item.added' }, done]
  const [part] = item.content as readonly ReturnType<typeof partOf>[]
  const { text } = part as ReturnType<typeof partOf>
  const inside = { ...at, content_index: 0 }
  return [
    added({ content: [] }),
    { type: 'response.content_part.added', ...inside, part: partOf('') },
    ...piecesOf(text).map((delta): Event => ({ type: 'response.output_text.delta', ...inside, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...inside, text, logprobs: [] },
    { type: 'response.content_part.done', ...inside, part },
    done,
  ]
}

const messagesUsage = { input_tokens: 8, cache_creation_input_tokens: 0, cache_read_input_tokens: 13, output_tokens: 8 }
const kinds: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  500: 'api_error',
  529: 'overloaded_error',
}

/** Anthropic's messages. */
export const messagesWording: Wording = {
  whole: (said, place) => ({
    ...messageOf(place),
    content: blocksOf(said),
    stop_reason: reasonOf(said),
    usage: messagesUsage,
  }),
  events: (said, place) =>
    [
      { type: 'message_start', message: { ...messageOf(place), usage: { ...messagesUsage, output_tokens: 1 } } },
      { type: 'ping' },
      ...blocksOf(said).flatMap(blockEvents),
      {
        type: 'message_delta',
        delta: { stop_reason: reasonOf(said), stop_sequence: null },
        usage: { output_tokens: 8 },
      },
      { type: 'message_stop' },
    ].map(named),
  refusal: (status, message) => ({
    type: 'error',
    error: { type: kinds[status] ?? 'api_error', message },
    request_id: 'req_scripted',
  }),
}

const reasonOf = ({ calls }: Said): string => (calls === undefined ? 'end_turn' : 'tool_use')
const messageOf = (place: number) => ({
  id: `msg_${place}`,
  type: 'message',
  role: 'assistant',
  model,
  content: [] as readonly unknown[],
  stop_reason: null as string | null,
  stop_sequence: null,
})

type Block = Event & { readonly text?: string; readonly thinking?: string; readonly input?: unknown }

const blocksOf = ({ text, calls = [], thinking }: Said): readonly Block[] => [
  ...(thinking === undefined ? [] : [{ type: 'thinking', thinking, signature: 'c2lnbmVk' }]),
  ...(text === undefined ? [] : [{ type: 'text', text }]),
  ...calls.map((call) => ({ type: 'tool_use', ...call })),
]

function blockEvents(block: Block, index: number): readonly Event[] {
  const delta = (fields: Event): Event => ({ type: 'content_block_delta', index, delta: fields })
  const begins = (fields: object): Event => ({
    type: 'content_block_start',
    index,
    content_block: { ...block, ...fields },
  })
  const ends: Event = { type: 'content_block_stop', index }
  if (block.type === 'text')
    return [
      begins({ text: '' }),
      ...piecesOf(block.text ?? '').map((text) => delta({ type: 'text_delta', text })),
      ends,
    ]
  if (block.type === 'tool_use') {
    const pieces = piecesOf(JSON.stringify(block.input)).map((json) =>
      delta({ type: 'input_json_delta', partial_json: json }),
    )
    return [begins({ input: {} }), ...pieces, ends]
  }
  const thought = piecesOf(block.thinking ?? '').map((thinking) => delta({ type: 'thinking_delta', thinking }))
  return [
    begins({ thinking: '', signature: '' }),
    ...thought,
    delta({ type: 'signature_delta', signature: 'c2lnbmVk' }),
    ends,
  ]
}
