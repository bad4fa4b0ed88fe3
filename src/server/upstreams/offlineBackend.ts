import { isObject } from '../../domain/checks.ts'
import type { Tokens } from '../../domain/entry.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Clock, Model, Tokenizer } from '../../domain/ports.ts'
import { offlineModel } from '../../providers/offline.ts'
import { messageCost } from '../../text/cost.ts'
import { Refusal } from '../http/httpError.ts'
import { chat } from '../protocols/chat.ts'
import { messages } from '../protocols/messages.ts'
import type { Ask, Body, Dialect, ProtocolName, Sent } from '../protocols/protocol.ts'
import { responses } from '../protocols/responses.ts'
import type { Answer, Backend, Call } from './backend.ts'
import {
  chatResponder,
  messagesResponder,
  type OfflineReply,
  type OfflineResponder,
  responsesResponder,
} from './offlineResponders.ts'

type ProtocolSupport = { readonly protocol: Dialect; readonly responder: OfflineResponder }

const protocols: Readonly<Record<ProtocolName, ProtocolSupport>> = {
  chat: { protocol: chat, responder: chatResponder },
  responses: { protocol: responses, responder: responsesResponder },
  messages: { protocol: messages, responder: messagesResponder },
}

/** Creates a backend that answers all protocols with the built-in model. Used when no upstream is configured. */
export function offlineBackend(tokenizer: Tokenizer, model: Model = offlineModel(), clock: Clock = Date.now): Backend {
  const createJsonResponse = (value: unknown): Answer =>
    createResponse(model.name, 'application/json', [JSON.stringify(value)])
  return {
    name: model.name,
    async ask(request) {
      const { name, body } = resolveProtocol(request)
      const { protocol, responder } = protocols[name]
      const parsed = protocol.read(body, tokenizer)
      const promptTokens = request.spent > 0 ? request.spent : countPromptTokens(tokenizer, parsed)
      if (request.dialect === 'count_tokens') return createJsonResponse({ input_tokens: promptTokens })
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
      if (parsed.streams)
        return createResponse(model.name, 'text/event-stream; charset=utf-8', responder.streamEvents(reply))
      return createJsonResponse(responder.createBody(reply, await joinChunks(chunks)))
    },
    models: async () =>
      createJsonResponse({
        object: 'list',
        data: [{ id: model.name, object: 'model', created: 0, owned_by: 'threadkeep' }],
      }),
    states: () => [{ name: model.name, state: 'ok' }],
    close: async () => undefined,
  }
}

/** Determines the protocol of a request. `count_tokens` takes the body of an Anthropic message request. */
function resolveProtocol({ dialect: endpoint, body }: Call): { readonly name: ProtocolName; readonly body: Body } {
  if (endpoint === 'embeddings') {
    throw new Refusal(
      404,
      'model_not_found',
      'The built-in model does not support embeddings. Name a model server with --upstream.',
      'model',
    )
  }
  const name = endpoint === 'count_tokens' ? 'messages' : endpoint
  return { name, body: name === 'messages' ? splitBlocks(body) : body }
}

/** Gives each block of a user message its own message: the offline model must tell recalled memory from the question. */
function splitBlocks(body: Body): Body {
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
const toChatMessages = ({ instructions, said }: Ask): ChatMessage[] => [
  ...instructions.map((content): ChatMessage => ({ role: 'system', content })),
  ...said.map(toChatMessage),
]

const toChatMessage = ({ role, content, answers }: Sent): ChatMessage =>
  role === 'tool' ? { role, content, tool_call_id: answers ?? '' } : { role, content }

const countPromptTokens = (tokenizer: Tokenizer, { owed, said }: Ask): Tokens =>
  said.reduce((sum, message) => sum + messageCost(tokenizer, message), owed + tokenizer.overhead.reply)

async function joinChunks(chunks: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const chunk of chunks) text += chunk
  return text
}

const createId = (): string => crypto.randomUUID().replaceAll('-', '')

function createResponse(model: string, contentType: string, chunks: AsyncIterable<string> | Iterable<string>): Answer {
  return {
    status: 200,
    headers: { 'content-type': contentType },
    body: encodeChunks(chunks),
    where: model,
    from: model,
    retries: 0,
    passedOver: [],
  }
}

async function* encodeChunks(chunks: AsyncIterable<string> | Iterable<string>): AsyncIterable<Uint8Array> {
  for await (const chunk of chunks) yield Buffer.from(chunk)
}
