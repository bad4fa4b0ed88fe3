import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { offlineModel } from '../../src/providers/offline.ts'

type ChatRequest = {
  readonly stream?: boolean
  readonly messages?: readonly { readonly role: 'user' | 'assistant'; readonly content: string }[]
}

export type DemoModel = AsyncDisposable & { readonly url: string }

/**
 * A model server that answers generated questions with their generated replies, and others from the prompt. It refuses
 * to summarise, so that the demo shows what happens then.
 */
export async function startDemoModel(replies: ReadonlyMap<string, string>): Promise<DemoModel> {
  const server = createServer((request, response) => void answer(request, response, replies))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  replies: ReadonlyMap<string, string>,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  if (request.url?.endsWith('/models') === true)
    return sendJson(response, { object: 'list', data: [{ id: 'gpt-5.4-mini' }] })
  const { messages = [], stream = false } = JSON.parse(Buffer.concat(chunks).toString() || '{}') as ChatRequest
  const reply = replies.get(messages.at(-1)?.content ?? '') ?? (await replyFromPrompt(messages))
  const words = reply.match(/\S+\s*/g) ?? []
  if (stream) sendStream(response, words)
  else sendJson(response, { ...envelope('chat.completion'), choices: [choice('message', reply, 'stop')] })
}

/** The reply of the built-in model, without its notice that no model is configured. */
async function replyFromPrompt(messages: NonNullable<ChatRequest['messages']>): Promise<string> {
  let reply = ''
  for await (const word of offlineModel().reply({ messages })) reply += word
  return reply.replace(/ No language model is configured.*$/s, '')
}

const envelope = (object: string) => ({
  id: `chatcmpl-${crypto.randomUUID()}`,
  object,
  created: Math.floor(Date.now() / 1_000),
  model: 'demo',
})

const choice = (field: 'message' | 'delta', content: string, reason: 'stop' | null) => ({
  index: 0,
  [field]: { role: 'assistant', content },
  finish_reason: reason,
})

function sendJson(response: ServerResponse, body: object): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(body))
}

function sendStream(response: ServerResponse, words: readonly string[]): void {
  const head = envelope('chat.completion.chunk')
  response.setHeader('content-type', 'text/event-stream')
  for (const word of words)
    response.write(`data: ${JSON.stringify({ ...head, choices: [choice('delta', word, null)] })}\n\n`)
  response.write(`data: ${JSON.stringify({ ...head, choices: [choice('delta', '', 'stop')] })}\n\n`)
  response.end('data: [DONE]\n\n')
}
