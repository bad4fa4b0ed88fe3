import type { Tokens } from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Clock, Model, Tokenizer } from '../../domain/ports.ts'
import { offlineModel } from '../../providers/offline.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { getPath } from '../../text/json.ts'
import { HttpError } from '../http/httpError.ts'
import { chatProtocol } from '../protocols/chat.ts'
import { messagesProtocol } from '../protocols/messages.ts'
import type { ClientMessage, ParsedRequest, Protocol, ProtocolName, RequestBody } from '../protocols/protocol.ts'
import { responsesProtocol } from '../protocols/responses.ts'
import { countInSlices } from '../turn/longRequests.ts'
import { type Backend, notForwarded, type UpstreamRequest, type UpstreamResponse } from './backend.ts'

type ProtocolSupport = { readonly protocol: Protocol; readonly responder: OfflineResponder }

/** Creates a backend that answers all protocols with the built-in model. Used when no upstream is configured. */
export function createOfflineBackend(
  tokenizer: Tokenizer,
  model: Model = offlineModel({ pause: yieldWhenLong }),
  clock: Clock = Date.now,
): Backend {
  const createJsonResponse = (value: unknown): UpstreamResponse =>
    createResponse(model.name, 'application/json', [JSON.stringify(value)])
  return {
    name: model.name,
    async send(request) {
      const { name, body } = resolveProtocol(request)
      const { protocol, responder } = protocols[name]
      const parsed = protocol.parseRequest(body, tokenizer)
      const promptTokens = request.promptTokens > 0 ? request.promptTokens : await countPromptTokens(tokenizer, parsed)
      if (request.endpoint === 'count_tokens') return createJsonResponse({ input_tokens: promptTokens })
      const chunks = model.reply({ messages: toChatMessages(parsed) }, request.signal)
      const reply: OfflineReply = {
        id: createId(),
        createdSeconds: Math.floor(clock() / 1_000),
        model: model.name,
        body: request.body,
        chunks,
        promptTokens,
        countTokens: (text) => tokenizer.count(text),
      }
      if (parsed.isStreaming)
        return createResponse(model.name, 'text/event-stream; charset=utf-8', responder.streamEvents(reply))
      return createJsonResponse(responder.createBody(reply, await joinChunks(chunks)))
    },
    listModels: async () =>
      createJsonResponse({
        object: 'list',
        data: [{ id: model.name, object: 'model', created: 0, owned_by: 'threadkeep' }],
      }),
    forward: async (request) => {
      throw notForwarded(request, 'Name a model server with --upstream to forward other URLs to it.')
    },
    getHealth: () => [{ name: model.name, state: 'ok' }],
    close: async () => undefined,
  }
}

/** Determines the protocol of a request. `count_tokens` takes the body of an Anthropic message request. */
function resolveProtocol({ endpoint, body }: UpstreamRequest): {
  readonly name: ProtocolName
  readonly body: RequestBody
} {
  if (endpoint === 'embeddings') {
    throw new HttpError(
      404,
      'model_not_found',
      'The built-in model does not support embeddings. Name a model server with --upstream.',
      'model',
    )
  }
  const name = endpoint === 'count_tokens' ? 'messages' : endpoint
  return { name, body: name === 'messages' ? splitBlocks(body) : body }
}

/**
 * Gives each block of a user message its own message: the offline model must tell recalled memory from the question.
 */
function splitBlocks(body: RequestBody): RequestBody {
  if (!Array.isArray(body.messages)) return body
  const split = body.messages.flatMap((message: unknown) => {
    if (
      !isObject(message) ||
      message.role !== 'user' ||
      !Array.isArray(message.content) ||
      message.content.length === 0
    )
      return [message]
    return message.content.map((block: unknown) => ({ ...message, content: [block] }))
  })
  return { ...body, messages: split }
}

/** Converts a request to plain chat messages, the only input of the offline model. */
const toChatMessages = ({ instructions, messages: said }: ParsedRequest): ChatMessage[] => [
  ...instructions.map((content): ChatMessage => ({ role: 'system', content })),
  ...said.map(toChatMessage),
]

const toChatMessage = ({ role, content, toolCallId }: ClientMessage): ChatMessage =>
  role === 'tool' ? { role, content, tool_call_id: toolCallId ?? '' } : { role, content }

const countPromptTokens = async (
  tokenizer: Tokenizer,
  { promptOverheadTokens, messages: said }: ParsedRequest,
): Promise<Tokens> => promptOverheadTokens + tokenizer.overhead.reply + (await countInSlices(tokenizer, said))

async function joinChunks(chunks: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const chunk of chunks) text += chunk
  return text
}

const createId = (): string => crypto.randomUUID().replaceAll('-', '')

function createResponse(
  model: string,
  contentType: string,
  chunks: AsyncIterable<string> | Iterable<string>,
): UpstreamResponse {
  return {
    status: 200,
    headers: { 'content-type': contentType },
    body: encodeChunks(chunks),
    address: model,
    upstream: model,
    retries: 0,
    failedUpstreams: [],
  }
}

async function* encodeChunks(chunks: AsyncIterable<string> | Iterable<string>): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) yield Buffer.from(chunk)
}

/** Reply of the offline model. */
type OfflineReply = {
  /** Unique id; each protocol adds its own prefix. */
  readonly id: string
  /** Creation time in seconds since 1970. */
  readonly createdSeconds: number
  readonly model: string
  /** Body of the request. */
  readonly body: RequestBody
  /** Text of the reply. */
  readonly chunks: AsyncIterable<string>
  readonly promptTokens: Tokens
  countTokens(text: string): Tokens
}

/** Writes a reply in one protocol. */
type OfflineResponder = {
  /** Creates the body of a non-streamed response with the complete text of the reply. */
  createBody(reply: OfflineReply, text: string): unknown
  /** Streams the reply as server-sent events. */
  streamEvents(reply: OfflineReply): AsyncIterable<string>
}

/** OpenAI chat completions. */
const chatResponder: OfflineResponder = {
  createBody(reply, content) {
    const message = { role: 'assistant', content, refusal: null }
    return {
      ...createChatHeader(reply),
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: createChatUsage(reply, content),
    }
  },

  async *streamEvents(reply) {
    const includeUsage = getPath(reply.body, 'stream_options', 'include_usage') === true
    const header = createChatHeader(reply)
    const formatEvent = (choices: readonly unknown[], usage: unknown): string =>
      `data: ${JSON.stringify({ ...header, object: 'chat.completion.chunk', choices, ...(includeUsage ? { usage } : {}) })}\n\n`
    const formatDelta = (delta: unknown, reason: string | null): string =>
      formatEvent([{ index: 0, delta, logprobs: null, finish_reason: reason }], null)
    let text = ''
    yield formatDelta({ role: 'assistant', content: '', refusal: null }, null)
    for await (const content of reply.chunks) {
      text += content
      yield formatDelta({ content }, null)
    }
    yield formatDelta({}, 'stop')
    if (includeUsage) yield formatEvent([], createChatUsage(reply, text))
    yield 'data: [DONE]\n\n'
  },
}

const createChatHeader = ({ id, createdSeconds, model }: OfflineReply) => ({
  id: `chatcmpl-${id}`,
  created: createdSeconds,
  model,
})

function createChatUsage({ promptTokens, countTokens }: OfflineReply, text: string) {
  const completionTokens = countTokens(text)
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  }
}

/** Anthropic Messages. */
const messagesResponder: OfflineResponder = {
  createBody: (reply, text) => ({
    ...createInitialMessage(reply),
    content: [{ type: 'text', text, citations: null }],
    stop_reason: 'end_turn',
    usage: createMessagesUsage(reply, reply.countTokens(text)),
  }),

  async *streamEvents(reply) {
    yield formatNamedEvent('message_start', { message: createInitialMessage(reply) })
    yield formatNamedEvent('content_block_start', {
      index: 0,
      content_block: { type: 'text', text: '', citations: null },
    })
    let complete = ''
    for await (const text of reply.chunks) {
      complete += text
      yield formatNamedEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
    }
    yield formatNamedEvent('content_block_stop', { index: 0 })
    const usage = createMessagesUsage(reply, reply.countTokens(complete))
    yield formatNamedEvent('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage })
    yield formatNamedEvent('message_stop')
  },
}

const createInitialMessage = (reply: OfflineReply) => ({
  id: `msg_${reply.id}`,
  type: 'message',
  role: 'assistant',
  model: reply.model,
  content: [] as readonly unknown[],
  stop_reason: null as string | null,
  stop_sequence: null,
  usage: createMessagesUsage(reply, 0),
})

const createMessagesUsage = ({ promptTokens }: OfflineReply, outputTokens: Tokens) => ({
  input_tokens: promptTokens,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: outputTokens,
})

/** OpenAI Responses. */
const responsesResponder: OfflineResponder = {
  createBody: (reply, text) => createResponseObject(reply, text),

  async *streamEvents(reply) {
    let sequenceNumber = 0
    const formatEvent = (type: string, fields: object): string =>
      formatNamedEvent(`response.${type}`, { sequence_number: sequenceNumber++, ...fields })
    const item = { output_index: 0 }
    const part = { item_id: `msg_${reply.id}`, output_index: 0, content_index: 0 }
    yield formatEvent('created', { response: createResponseObject(reply) })
    yield formatEvent('in_progress', { response: createResponseObject(reply) })
    yield formatEvent('output_item.added', { ...item, item: createOutputItem(reply) })
    yield formatEvent('content_part.added', { ...part, part: createOutputText('') })
    let text = ''
    for await (const delta of reply.chunks) {
      text += delta
      yield formatEvent('output_text.delta', { ...part, delta, logprobs: [] })
    }
    yield formatEvent('output_text.done', { ...part, text, logprobs: [] })
    yield formatEvent('content_part.done', { ...part, part: createOutputText(text) })
    yield formatEvent('output_item.done', { ...item, item: createOutputItem(reply, text) })
    yield formatEvent('completed', { response: createResponseObject(reply, text) })
  },
}

/** Creates the response object: in progress without text, else completed. */
function createResponseObject(reply: OfflineReply, text?: string): unknown {
  const { body, promptTokens } = reply
  const outputTokens = reply.countTokens(text ?? '')
  const usage = {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: promptTokens + outputTokens,
  }
  return {
    id: `resp_${reply.id}`,
    object: 'response',
    created_at: reply.createdSeconds,
    status: text === undefined ? 'in_progress' : 'completed',
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    metadata: body.metadata ?? {},
    model: reply.model,
    output: text === undefined ? [] : [createOutputItem(reply, text)],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    store: false,
    temperature: body.temperature ?? null,
    text: body.text ?? { format: { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_p: body.top_p ?? null,
    usage: text === undefined ? null : usage,
  }
}

const createOutputText = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })

const createOutputItem = ({ id }: OfflineReply, text?: string) => ({
  type: 'message',
  id: `msg_${id}`,
  status: text === undefined ? 'in_progress' : 'completed',
  role: 'assistant',
  content: text === undefined ? [] : [createOutputText(text)],
})

/** Formats an event that carries its type both as the event name and in its data. */
const formatNamedEvent = (type: string, fields: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

const protocols: Readonly<Record<ProtocolName, ProtocolSupport>> = {
  chat: { protocol: chatProtocol, responder: chatResponder },
  responses: { protocol: responsesProtocol, responder: responsesResponder },
  messages: { protocol: messagesProtocol, responder: messagesResponder },
}
