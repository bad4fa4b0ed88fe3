import { parseKey } from '../../../src/domain/key.ts'
import { listBranches, readBranch } from '../../../src/server/turn/branches.ts'
import { type Started, startServer } from '../start.ts'
import { type HeldModel, type Reply, startHeld, textOf } from './held.ts'

/** The one session that most promises are about. */
export const ann = 'demo:ann'
export const off = { 'x-threadkeep-store': 'false' }

type Headers = Readonly<Record<string, string>>
type Body = Readonly<Record<string, unknown>>

/** An answer as its client sees it. */
export type Answered = {
  readonly status: number
  readonly headers: globalThis.Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was answered
  readonly body: any
}

export type Scene = AsyncDisposable & {
  readonly model: HeldModel
  readonly server: Started
  /** Any request, such as `POST /v1/demo:ann/responses`. */
  send(request: string, body: Body, headers?: Headers): Promise<Answered>
  /** A chat completion in Ann's session, or in another. */
  chat(messages: readonly unknown[], headers?: Headers, key?: string): Promise<Answered>
  /** A response in Ann's session. */
  respond(body: Body, headers?: Headers): Promise<Answered>
  said(key?: string): Promise<readonly string[]>
  /** What was cut off a session: each branch by its number, a line for each message. */
  branches(key?: string): Promise<Readonly<Record<number, readonly string[]>>>
  /** What stands in the newest prompt, a text for each message. */
  prompt(): readonly string[]
}

type Options = Parameters<typeof startServer>[0] & {
  readonly reply?: Reply
  /** The number of the model's first reply: two models of one session must not give the same ids. */
  readonly first?: number
}

/**
 * The real server with a model behind it whose replies can be held back.
 *
 * @example
 * await using scene = await openScene({ memory: { store: 'ram:' } })
 */
export async function openScene({ reply, first, ...options }: Options = {}): Promise<Scene> {
  const model = await startHeld(reply, first)
  const server = await startServer({ upstream: model.url, ...options })
  const send = async (request: string, body: Body, headers: Headers = {}): Promise<Answered> => {
    const [method = '', path = ''] = request.split(' ')
    const init = { method, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }
    const response = await fetch(`${server.url}${path}`, init)
    return { status: response.status, headers: response.headers, body: await response.json() }
  }
  return {
    model,
    server,
    send,
    chat: (messages, headers, key = ann) =>
      send(`POST /v1/${key}/chat/completions`, { model: 'test-model', messages }, headers),
    respond: (body, headers) => send(`POST /v1/${ann}/responses`, { model: 'test-model', ...body }, headers),
    said: (key = ann) => server.said(key),
    branches: async (key = ann) => {
      const found = await listBranches(server.memory, parseKey(key))
      const lines = async (branch: number) =>
        (await readBranch(server.memory, parseKey(key), branch)).map(({ role, content }) => `${role}: ${content}`)
      return Object.fromEntries(
        await Promise.all(found.map(async ({ branch }) => [branch, await lines(branch)] as const)),
      )
    },
    prompt: () => {
      const { messages, input } = model.requests.at(-1)?.body ?? {}
      return typeof input === 'string'
        ? [input]
        : (messages ?? input).map(({ content }: { readonly content: unknown }) => textOf(content))
    },
    [Symbol.asyncDispose]: async () => {
      await server.close(0)
      await model[Symbol.asyncDispose]()
    },
  }
}

/** The text of a chat completion. */
export const textIn = ({ body }: Answered): string => body.choices[0].message.content
