import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { faultsIn } from '../clients/requestRules.ts'
import { chatWording, messagesWording, responsesWording, type Said, type Wording } from '../clients/responseFormats.ts'

/** A reply that is under way for as long as the test wants. */
export type Hold = {
  /** The question has come: what memory does before a model is asked is done. */
  readonly arrived: Promise<void>
  release(): void
}

/** What the model says to the words that a request ends with; `place` counts its requests from 1. */
export type Reply = (asked: string, place: number) => Said

/** What the model was sent. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was sent
export type Received = { readonly path: string; readonly body: any }

export type HeldModel = AsyncDisposable & {
  readonly url: string
  readonly requests: readonly Received[]
  /** Holds back the reply to the next request that ends with these words. */
  hold(asked: string): Hold
}

type Waiting = { readonly asked: string; readonly arrived: () => void; readonly released: Promise<void> }

const wordings: Readonly<Record<string, Wording>> = {
  '/v1/chat/completions': chatWording,
  '/v1/responses': responsesWording,
  '/v1/messages': messagesWording,
}

/**
 * Starts a model server whose replies come when the test lets them, `Re: …` unless it is told otherwise. It speaks
 * OpenAI's and Anthropic's protocols, and refuses what those services refuse. The ids of its replies count from `first`.
 *
 * @example
 * const slow = model.hold('slow')
 * const reply = scene.chat([user('slow')])
 * await slow.arrived
 * slow.release()
 */
export async function startHeld(reply: Reply = (asked) => ({ text: `Re: ${asked}` }), first = 1): Promise<HeldModel> {
  const requests: Received[] = []
  const holds: Waiting[] = []
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const received: Received = { path: request.url ?? '', body: await json(request) }
    const place = requests.push(received)
    const asked = askedIn(received)
    await passed(holds, asked)
    answer(received, reply(asked, place), first + place - 1, response)
  }
  const server = createServer(
    (request, response) => void serve(request, response).catch(() => response.destroy()),
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    hold: (asked) => {
      const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      holds.push({ asked, arrived: arrived.resolve, released: released.promise })
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

async function passed(holds: Waiting[], asked: string): Promise<void> {
  const found = holds.findIndex((hold) => hold.asked === asked)
  const [hold] = found < 0 ? [] : holds.splice(found, 1)
  hold?.arrived()
  await hold?.released
}

function answer(received: Received, said: Said, place: number, response: ServerResponse): void {
  const wording = wordings[received.path] as Wording
  const [fault] = faultsIn(received)
  if (fault !== undefined)
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(wording.refusal(400, fault)))
  else if (received.body.stream === true)
    response
      .writeHead(200, { 'content-type': 'text/event-stream' })
      .end(wording.events(said, place, received.body).join(''))
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(wording.whole(said, place)))
}

type Told = { readonly content?: unknown; readonly output?: unknown }

/** The words that a request ends with. */
function askedIn({ body }: Received): string {
  const list: readonly Told[] =
    typeof body.input === 'string' ? [{ content: body.input }] : (body.messages ?? body.input)
  const { content, output } = list.at(-1) ?? {}
  return textOf(content ?? output)
}

/** The words of a message, whether they are one text or several parts. */
export const textOf = (content: unknown): string =>
  Array.isArray(content)
    ? content.map((part: { readonly text?: string }) => part.text ?? '').join('')
    : String(content ?? '')
