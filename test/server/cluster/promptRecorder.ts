import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { encodeJsonReply } from '../../providers/protocols.ts'

export type PromptRecorder = AsyncDisposable & {
  readonly url: string
  /** Digest of the newest prompt for each question, which is its last message. */
  readonly prompts: ReadonlyMap<string, string>
}

/** The model's reply to a question. */
export const replyTo = (question: string): string => `Heard: ${question}`

/** Starts a model server that repeats the last message and remembers the prompts it received. */
export async function startPromptRecorder(): Promise<PromptRecorder> {
  const prompts = new Map<string, string>()
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { messages } = JSON.parse(await text(request)) as { readonly messages: readonly { content: string }[] }
    const question = messages.at(-1)?.content ?? ''
    prompts.set(question, createHash('sha256').update(JSON.stringify(messages)).digest('hex'))
    response.writeHead(200, { 'content-type': 'application/json' }).end(encodeJsonReply('openai', [replyTo(question)]))
  }
  const server = createServer(
    { keepAliveTimeout: 60_000 },
    (request, response) => void answer(request, response).catch(() => response.destroy()),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    prompts,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
