import { parseMessage } from '../domain/chat.ts'
import type { Tokens } from '../domain/entry.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Model, Tokenizer } from '../domain/ports.ts'
import { at } from '../models/json.ts'
import { offlineModel } from '../models/offline.ts'
import type { Answer, Backend, Call } from './backend.ts'

/** What every object of one answer repeats. */
type Header = { readonly id: string; readonly created: number; readonly model: string }

/** The built-in model behind OpenAI's protocol, for when no model server is configured. */
export function offlineBackend(tokenizer: Tokenizer, model: Model = offlineModel()): Backend {
  const json = (value: unknown): Answer => answerOf('application/json', [JSON.stringify(value)])
  const answerOf = (type: string, pieces: AsyncIterable<string> | Iterable<string>): Answer => ({
    status: 200,
    headers: { 'content-type': type },
    body: bytesOf(pieces),
    where: model.name,
  })
  return {
    name: model.name,
    async chat(call) {
      const header = { id: `chatcmpl-${crypto.randomUUID()}`, created: Math.floor(Date.now() / 1_000), model: model.name }
      const words = model.reply({ messages: call.messages.map(asChat) }, call.signal)
      if (call.body.stream === true) return answerOf('text/event-stream; charset=utf-8', events(header, call, words, tokenizer))
      return json(await completion(header, call, words, tokenizer))
    },
    models: async () => json({ object: 'list', data: [{ id: model.name, object: 'model', created: 0, owned_by: 'threadkeep' }] }),
    close: async () => undefined,
  }
}

async function* bytesOf(pieces: AsyncIterable<string> | Iterable<string>): AsyncIterable<Uint8Array> {
  for await (const piece of pieces) yield Buffer.from(piece)
}

async function completion(header: Header, call: Call, words: AsyncIterable<string>, tokenizer: Tokenizer): Promise<unknown> {
  let content = ''
  for await (const word of words) content += word
  const message = { role: 'assistant', content, refusal: null }
  return {
    ...header,
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: usageOf(call.spent, tokenizer.count(content)),
  }
}

async function* events(header: Header, call: Call, words: AsyncIterable<string>, tokenizer: Tokenizer): AsyncIterable<string> {
  const counted = at(call.body, 'stream_options', 'include_usage') === true
  const event = (choices: readonly unknown[], usage: unknown): string =>
    `data: ${JSON.stringify({ ...header, object: 'chat.completion.chunk', choices, ...(counted ? { usage } : {}) })}\n\n`
  const chunk = (delta: unknown, reason: string | null): string => event([{ index: 0, delta, logprobs: null, finish_reason: reason }], null)
  const said: string[] = []
  yield chunk({ role: 'assistant', content: '', refusal: null }, null)
  for await (const content of words) {
    said.push(content)
    yield chunk({ content }, null)
  }
  yield chunk({}, 'stop')
  if (counted) yield event([], usageOf(call.spent, tokenizer.count(said.join(''))))
  yield 'data: [DONE]\n\n'
}

const usageOf = (prompt: Tokens, completion: Tokens) => ({ prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion })

/** A message in plain words, which is all this model reads. */
function asChat(message: unknown, place: number): ChatMessage {
  const { role, content, answers } = parseMessage(message, place, 0)
  return role === 'tool' ? { role, content, tool_call_id: answers ?? '' } : { role, content }
}
