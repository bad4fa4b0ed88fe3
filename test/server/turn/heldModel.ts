import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { findRequestErrors } from '../clients/requestRules.ts'
import {
  chatFormat,
  messagesFormat,
  type ResponseFormat,
  responsesFormat,
  type ScriptedReply,
} from '../clients/responseFormats.ts'

/** A reply that the test holds back. */
export type Hold = {
  /** Resolves when the model has received the question, after memory has stored it. */
  readonly arrived: Promise<void>
  release(): void
}

/** The reply to the last text of a request; `index` counts requests from 1. */
export type Reply = (question: string, index: number) => ScriptedReply

/** A request as the model received it. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
export type Received = { readonly path: string; readonly body: any }

export type HeldModel = AsyncDisposable & {
  readonly url: string
  readonly requests: readonly Received[]
  /** Holds the reply to the next request that ends with this text. */
  hold(question: string): Hold
}

type PendingHold = { readonly question: string; readonly arrived: () => void; readonly released: Promise<void> }

const protocolsByPath: Readonly<Record<string, ResponseFormat>> = {
  '/v1/chat/completions': chatFormat,
  '/v1/responses': responsesFormat,
  '/v1/messages': messagesFormat,
}

/**
 * Starts a model server whose replies the test can hold back; by default it replies `Re: …`. It speaks the OpenAI and
 * Anthropic protocols and rejects invalid requests as those services do. Its reply ids count from `first`.
 *
 * @example
 * const slow = model.hold('slow')
 * const reply = session.chat([user('slow')])
 * await slow.arrived
 * slow.release()
 */
export async function startHeldModel(
  reply: Reply = (question) => ({ text: `Re: ${question}` }),
  firstId = 1,
): Promise<HeldModel> {
  const requests: Received[] = []
  const holds: PendingHold[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const received: Received = { path: request.url ?? '', body: await json(request) }
    const index = requests.push(received)
    const question = lastTextOf(received)
    await waitIfHeld(holds, question)
    sendReply(received, reply(question, index), firstId + index - 1, response)
  }
  const server = createServer(
    (request, response) => void serve(request, response).catch(() => response.destroy()),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    hold: (question) => {
      const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      holds.push({ question, arrived: arrived.resolve, released: released.promise })
      return { arrived: arrived.promise, release: released.resolve }
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function waitIfHeld(holds: PendingHold[], question: string): Promise<void> {
  const found = holds.findIndex((hold) => hold.question === question)
  const [hold] = found < 0 ? [] : holds.splice(found, 1)
  hold?.arrived()
  await hold?.released
}

function sendReply(received: Received, said: ScriptedReply, index: number, response: ServerResponse): void {
  const wording = protocolsByPath[received.path] as ResponseFormat
  const [fault] = findRequestErrors(received)
  if (fault !== undefined)
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(wording.formatError(400, fault)))
  else if (received.body.stream === true)
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(wording.formatEvents(said, index, received.body).join(''))
  else
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wording.formatBody(said, index)))
}

type LastMessage = { readonly content?: unknown; readonly output?: unknown }

/** The last text of a request that does not come from memory. */
function lastTextOf({ body }: Received): string {
  const list: readonly LastMessage[] =
    typeof body.input === 'string' ? [{ content: body.input }] : (body.messages ?? body.input)
  const texts = list.map(({ content, output }) => textOf(content ?? output))
  return texts.findLast((text) => !isMemoryText(text)) ?? ''
}

/** True for a text that memory adds to a conversation. */
export const isMemoryText = (text: string): boolean => /^<memory\b[^>]*>[\s\S]*<\/memory>$/.test(text)

/** The text of a message, given as a string or as parts. */
export const textOf = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part: { readonly text?: string }) => part.text ?? '').join('')
    : String(content ?? '')
