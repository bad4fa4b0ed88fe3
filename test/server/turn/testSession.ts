import { parseKey } from '../../../src/domain/key.ts'
import { listBranches, readBranch } from '../../../src/server/turn/branches.ts'
import { countMessageTokens } from '../../../src/text/cost.ts'
import { startServer, type TestServer, toLines } from '../start.ts'
import { type HeldModel, type Reply, startHeldModel, textOf } from './heldModel.ts'

/** The default session of these tests. */
export const ann = 'demo:ann'
export const storeDisabledHeader = { 'x-threadkeep-store': 'false' }

type Headers = Readonly<Record<string, string>>
type Body = Readonly<Record<string, unknown>>

/** A response with its parsed body. */
export type TestResponse = {
  readonly status: number
  readonly headers: globalThis.Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever was answered
  readonly body: any
}

export type TestSession = AsyncDisposable & {
  readonly model: HeldModel
  readonly server: TestServer
  /** Sends any request, such as `POST /v1/demo:ann/responses`. */
  send(request: string, body: Body, headers?: Headers): Promise<TestResponse>
  /** Sends a chat completion, in Ann's session by default. */
  chat(messages: readonly unknown[], headers?: Headers, key?: string): Promise<TestResponse>
  /** Sends a Responses request in Ann's session. */
  respond(body: Body, headers?: Headers): Promise<TestResponse>
  transcript(key?: string): Promise<readonly string[]>
  /** Branches of a session by number, one line per message. */
  branches(key?: string): Promise<Readonly<Record<number, readonly string[]>>>
  /** The newest prompt, one text per message. */
  prompt(): readonly string[]
}

type Options = Parameters<typeof startServer>[0] & {
  readonly reply?: Reply
  /** Number of the model's first reply: two models of one session must not repeat ids. */
  readonly firstReplyId?: number
}

/**
 * Starts the real server in front of a model whose replies can be held back.
 *
 * @example
 * await using session = await openTestSession({ memory: { store: 'ram:' } })
 */
export async function openTestSession({ reply, firstReplyId, ...options }: Options = {}): Promise<TestSession> {
  const model = await startHeldModel(reply, firstReplyId)
  const server = await startServer({ upstream: model.url, ...options })
  const send = async (request: string, body: Body, headers: Headers = {}): Promise<TestResponse> => {
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
    transcript: (key = ann) => server.transcriptLines(key),
    branches: async (key = ann) => {
      const found = await listBranches(server.memory, parseKey(key))
      const lines = async (branch: number) => toLines(await readBranch(server.memory, parseKey(key), branch))
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
export const replyText = ({ body }: TestResponse): string => body.choices[0].message.content

type PromptMessage = {
  readonly role: string
  readonly content: string | null | readonly { readonly type: string; readonly text?: string }[]
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
  readonly tool_call_id?: string
}

/** Tokens of the prompt that the model received. */
export function promptTokens({ model, server }: TestSession): number {
  const { tokenizer } = server.memory
  const messages: readonly PromptMessage[] = model.requests.at(-1)?.body.messages ?? []
  const costs = messages.map(({ role, content, tool_calls: made, tool_call_id: answers }) =>
    countMessageTokens(tokenizer, {
      role,
      content: Array.isArray(content) ? content.map(({ text = '' }) => text).join('\n') : (content as string | null),
      ...(made === undefined ? {} : { toolCalls: made.map((call) => ({ id: call.id, ...call.function })) }),
      ...(answers === undefined ? {} : { toolCallId: answers }),
    }),
  )
  return costs.reduce((sum, cost) => sum + cost, tokenizer.overhead.reply)
}

/** The headers that report the prompt's tokens and degradation. */
export const tokenHeaders = ({ headers }: TestResponse): readonly (string | null)[] => [
  headers.get('x-threadkeep-tokens'),
  headers.get('x-threadkeep-degraded'),
]
