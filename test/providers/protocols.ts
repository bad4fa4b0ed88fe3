/** Reply formats that the test upstream supports. */
export type Protocol = 'openai' | 'anthropic' | 'gemini'

/** Detects the protocol of a request from its path. */
export function detectProtocol(path: string): Protocol {
  if (path.includes(':streamGenerateContent')) return 'gemini'
  return path.endsWith('/messages') ? 'anthropic' : 'openai'
}

/** Encodes a reply as an event stream; without the final events unless it is `complete`. */
export function encodeEventStream(protocol: Protocol, pieces: readonly string[], complete: boolean): string {
  const stream = { openai: openaiEvents, anthropic: anthropicEvents, gemini: geminiEvents }[protocol](pieces)
  return [...stream.begin, ...stream.pieces, ...(complete ? stream.end : [])].join('')
}

/** Encodes a reply as one JSON document. */
export function encodeJsonReply(protocol: Protocol, pieces: readonly string[]): string {
  const text = pieces.join('')
  const replies = {
    openai: {
      id: 'chatcmpl-1',
      object: 'chat.completion',
      created: 1,
      model: 'test',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    },
    anthropic: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'test',
      content: [{ type: 'text', text }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    },
    gemini: {
      candidates: [{ content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }],
      usageMetadata: { totalTokenCount: 2 },
    },
  }
  return JSON.stringify(replies[protocol])
}

type EventStream = {
  readonly begin: readonly string[]
  readonly pieces: readonly string[]
  readonly end: readonly string[]
}

const data = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`

function openaiEvents(pieces: readonly string[]): EventStream {
  const chunk = (delta: unknown, finish: string | null): string =>
    data({
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'test',
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
  return {
    begin: [': keep-alive\n\n', chunk({ role: 'assistant', content: '' }, null)],
    pieces: pieces.map((content) => chunk({ content }, null)),
    end: [
      chunk({}, 'stop'),
      data({
        id: 'chatcmpl-1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'test',
        choices: [],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
      'data: [DONE]\n\n',
    ],
  }
}

function anthropicEvents(pieces: readonly string[]): EventStream {
  const event = (value: { readonly type: string; readonly [field: string]: unknown }): string =>
    `event: ${value.type}\n${data(value)}`
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'test',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  return {
    begin: [
      event({ type: 'message_start', message }),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'ping' }),
    ],
    pieces: pieces.map((text) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })),
    end: [
      event({ type: 'content_block_stop', index: 0 }),
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 2 },
      }),
      event({ type: 'message_stop' }),
    ],
  }
}

function geminiEvents(pieces: readonly string[]): EventStream {
  const content = (text: string) => ({ role: 'model', parts: [{ text }] })
  return {
    begin: [],
    pieces: pieces.map((text) => data({ candidates: [{ content: content(text), index: 0 }], modelVersion: 'test' })),
    end: [
      data({
        candidates: [{ content: content(''), finishReason: 'STOP', index: 0 }],
        usageMetadata: { totalTokenCount: 2 },
      }),
    ],
  }
}

/** A complete reply of the Responses API. */
export const createResponse = (text: string) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 1,
  status: 'completed',
  model: 'test',
  output: [
    {
      type: 'message',
      id: 'msg_1',
      status: 'completed',
      role: 'assistant',
      content: [{ type: 'output_text', text, annotations: [] }],
    },
  ],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
})
