import { isObject } from '../../../domain/checks.ts'
import type { Tokens } from '../../../domain/entry.ts'
import type { ChatMessage } from '../../../domain/ledger.ts'
import type { Clock, Model, Tokenizer } from '../../../domain/ports.ts'
import { offlineModel } from '../../../providers/offline.ts'
import { messageCost } from '../../../text/cost.ts'
import { Refusal } from '../../http/httpError.ts'
import { chat } from '../../protocols/chat.ts'
import type { Ask, Body, Dialect, Sent } from '../../protocols/dialect.ts'
import { messages } from '../../protocols/messages.ts'
import { responses } from '../../protocols/responses.ts'
import type { Answer, Backend, Call } from '../backend.ts'
import { chatVoice } from './chat.ts'
import { messagesVoice } from './messages.ts'
import { responsesVoice } from './responses.ts'
import type { Reply, Voice } from './voice.ts'

const protocols: Readonly<Record<Dialect['name'], { readonly dialect: Dialect; readonly voice: Voice }>> = {
  chat: { dialect: chat, voice: chatVoice },
  responses: { dialect: responses, voice: responsesVoice },
  messages: { dialect: messages, voice: messagesVoice },
}

/** The built-in model behind every protocol, for when no model server is configured. */
export function offlineBackend(tokenizer: Tokenizer, model: Model = offlineModel(), clock: Clock = Date.now): Backend {
  const json = (value: unknown): Answer => answerOf(model.name, 'application/json', [JSON.stringify(value)])
  return {
    name: model.name,
    async ask(call) {
      const { name, body } = requestIn(call)
      const { dialect, voice } = protocols[name]
      const ask = dialect.read(body, tokenizer)
      const prompt = call.spent > 0 ? call.spent : costOf(tokenizer, ask)
      if (call.dialect === 'count_tokens') return json({ input_tokens: prompt })
      const words = model.reply({ messages: conversationIn(ask) }, call.signal)
      const count = (text: string): Tokens => tokenizer.count(text)
      const reply: Reply = {
        id: idOf(),
        created: Math.floor(clock() / 1_000),
        model: model.name,
        body: call.body,
        words,
        prompt,
        count,
      }
      if (ask.streams) return answerOf(model.name, 'text/event-stream; charset=utf-8', voice.events(reply))
      return json(voice.whole(reply, await wholeOf(words)))
    },
    models: async () =>
      json({ object: 'list', data: [{ id: model.name, object: 'model', created: 0, owned_by: 'threadkeep' }] }),
    states: () => [{ name: model.name, state: 'ok' }],
    close: async () => undefined,
  }
}

/** The request and its protocol. Tokens are counted of messages by Anthropic's. */
function requestIn({ dialect, body }: Call): { readonly name: Dialect['name']; readonly body: Body } {
  if (dialect === 'embeddings') {
    throw new Refusal(
      404,
      'model_not_found',
      'No model is built in that makes embeddings. Name a model server with --upstream.',
      'model',
    )
  }
  const name = dialect === 'count_tokens' ? 'messages' : dialect
  return { name, body: name === 'messages' ? apart(body) : body }
}

/** A turn holds what memory recalls and the question beside each other, and this model wants to know which is which. */
function apart(body: Body): Body {
  if (!Array.isArray(body.messages)) return body
  const pieces = body.messages.flatMap((message: unknown) => {
    if (
      !isObject(message) ||
      message.role !== 'user' ||
      !Array.isArray(message.content) ||
      message.content.length === 0
    )
      return [message]
    return message.content.map((block: unknown) => ({ ...message, content: [block] }))
  })
  return { ...body, messages: pieces }
}

/** The conversation in plain words, which is all this model reads. */
function conversationIn({ instructions, said }: Ask): ChatMessage[] {
  return [...instructions.map((content): ChatMessage => ({ role: 'system', content })), ...said.map(asChat)]
}

const asChat = ({ role, content, answers }: Sent): ChatMessage =>
  role === 'tool' ? { role, content, tool_call_id: answers ?? '' } : { role, content }

const costOf = (tokenizer: Tokenizer, { owed, said }: Ask): Tokens =>
  said.reduce((sum, message) => sum + messageCost(tokenizer, message), owed + tokenizer.overhead.reply)

async function wholeOf(words: AsyncIterable<string>): Promise<string> {
  let text = ''
  for await (const word of words) text += word
  return text
}

const idOf = (): string => crypto.randomUUID().replaceAll('-', '')

function answerOf(where: string, type: string, pieces: AsyncIterable<string> | Iterable<string>): Answer {
  return {
    status: 200,
    headers: { 'content-type': type },
    body: bytesOf(pieces),
    where,
    from: where,
    retries: 0,
    passedOver: [],
  }
}

async function* bytesOf(pieces: AsyncIterable<string> | Iterable<string>): AsyncIterable<Uint8Array> {
  for await (const piece of pieces) yield Buffer.from(piece)
}
