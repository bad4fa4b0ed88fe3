import Anthropic from '@anthropic-ai/sdk'
import type { APIError } from 'openai'
import { describe, expect, it } from 'vitest'
import {
  type Behaviour,
  closedPortUrl,
  replyWith,
  respondWithStatus,
  sendRaw,
  startUpstream,
} from '../providers/upstream.ts'
import { collectAll, startServer, type TestServer, user } from './start.ts'

/** Expected client outcome: an error response, an error inside the stream, or success. */
type Outcome = { readonly status: number; readonly code: string | null } | { readonly midStream: string } | 'success'
type Fault = {
  readonly name: string
  readonly does: Behaviour | 'down'
  readonly whole: Outcome
  readonly streamed: Outcome
}

const [broken, late] = [
  { status: 502, code: 'upstream' },
  { status: 504, code: 'timeout' },
]
/** The same outcome with and without streaming. */
const always = (outcome: Outcome): Pick<Fault, 'whole' | 'streamed'> => ({ whole: outcome, streamed: outcome })
const refusal = '{"type":"error","error":{"type":"some_error","message":"No.","code":"its_own"}}'
const bytes = Buffer.from(Array.from({ length: 4_096 }, (_, at) => (at * 151) % 256))
const faults: readonly Fault[] = [
  { name: 'down', does: 'down', ...always(broken) },
  { name: 'status 400', does: respondWithStatus(400, {}, refusal), ...always({ status: 400, code: 'its_own' }) },
  { name: 'status 429', does: respondWithStatus(429, {}, refusal), ...always({ status: 429, code: 'its_own' }) },
  { name: 'status 500', does: respondWithStatus(500, {}, refusal), ...always({ status: 500, code: 'its_own' }) },
  { name: 'no response', does: { does: 'hang' }, ...always(late) },
  { name: 'connection closed before the response', does: { does: 'cut' }, ...always(broken) },
  { name: 'HTML response', does: sendRaw('text/html', '<html>Sign in</html>'), ...always(broken) },
  { name: 'random bytes as JSON', does: sendRaw('application/json', bytes), ...always(broken) },
  { name: 'random bytes as events', does: sendRaw('text/event-stream', bytes), ...always(broken) },
  { name: 'empty body', does: sendRaw('application/json', ''), ...always(broken) },
  { name: 'events sent as JSON', does: sendRaw('application/json', 'data: {"choices":[]}\n\n'), ...always(broken) },
  {
    name: 'stream ends early',
    does: { does: 'stop', pieces: ['Once'] },
    whole: broken,
    streamed: { midStream: 'upstream' },
  },
  {
    name: 'connection drops mid-stream',
    does: { does: 'drop', pieces: ['Once'] },
    whole: broken,
    streamed: { midStream: 'upstream' },
  },
  {
    name: 'stream stalls',
    does: { does: 'stall', pieces: ['Once'] },
    whole: late,
    streamed: { midStream: 'timeout' },
  },
  { name: 'slow reply', does: { does: 'reply', pieces: ['Once', ' upon'], split: true }, ...always('success') },
]

/** True when the upstream refuses the turn, which is then taken back. */
const isRefused = (outcome: Outcome): boolean =>
  typeof outcome === 'object' && 'status' in outcome && outcome.status < 500

/** True when the upstream stops sending without closing the connection. */
const isSilent = (does: Fault['does']): boolean => does !== 'down' && (does.does === 'hang' || does.does === 'stall')

type Client = {
  readonly name: string
  /** Error class of the client per status. */
  readonly classes: Readonly<Record<number, string>>
  /** Sends a request with the protocol's own client. */
  ask(server: TestServer, content: string, stream: boolean): Promise<unknown>
}

const classes = {
  400: 'BadRequestError',
  429: 'RateLimitError',
  500: 'InternalServerError',
  502: 'InternalServerError',
  504: 'InternalServerError',
}
const openai: Client = {
  name: 'chat completions',
  classes,
  ask: async (server, content, stream) => {
    const { chat } = server.client('demo:me')
    if (!stream) return chat.completions.create({ model: 'm', messages: [user(content)] })
    return collectAll(await chat.completions.create({ model: 'm', messages: [user(content)], stream }))
  },
}
const anthropic: Client = {
  name: 'messages',
  classes: { ...classes, 504: 'GatewayTimeoutError' },
  ask: async (server, content, stream) => {
    const { messages } = new Anthropic({ baseURL: `${server.url}/v1/demo:me`, apiKey: 'sk-client', maxRetries: 0 })
    const body = { model: 'm', max_tokens: 100, messages: [user(content)] }
    return stream ? collectAll(await messages.create({ ...body, stream })) : messages.create(body)
  },
}

function expectOutcome(error: unknown, outcome: Outcome, client: Client): void {
  if (outcome === 'success') {
    expect(error).toBeUndefined()
    return
  }
  const { status, code, constructor: made } = (error ?? expect.fail('no error was raised')) as APIError
  if ('midStream' in outcome) expect([status, made.name]).toEqual([undefined, 'APIError'])
  else expect([status, made.name]).toEqual([outcome.status, client.classes[outcome.status]])
  // Anthropic's errors have no code.
  if (client === openai) expect(code).toBe('midStream' in outcome ? outcome.midStream : outcome.code)
}

describe('an upstream fault', () => {
  for (const client of [openai, anthropic]) {
    for (const { name, does, ...expected } of faults) {
      for (const stream of [false, true]) {
        it(`${name} (${client.name}, ${stream ? 'streamed' : 'buffered'}) › ${isRefused(expected.whole) ? 'nothing is stored' : 'the question is stored, a partial reply is not'}, and the next turn works`, async () => {
          await using upstream = await startUpstream((request) =>
            JSON.stringify(request.body.messages.at(-1)).includes('Again') || does === 'down'
              ? replyWith('There.')
              : does,
          )
          const base = does === 'down' ? await closedPortUrl() : upstream.url
          await using server = await startServer({
            upstream: base,
            // Short only where the upstream never continues: a busy machine must not cause a timeout.
            ...(isSilent(does) ? { timeouts: { firstByte: 100, idle: 100 } } : {}),
            retries: { tries: 1 },
          })
          const outcome = stream ? expected.streamed : expected.whole
          const error = await client.ask(server, 'Hello', stream).then(
            () => undefined,
            (reason: unknown) => reason,
          )
          expectOutcome(error, outcome, client)
          const stored = isRefused(outcome)
            ? []
            : ['user: Hello', ...(outcome === 'success' ? ['assistant: Once upon'] : [])]
          expect(await server.transcriptLines('demo:me')).toEqual(stored)
          expect(server.faults).toEqual([])
          if (does === 'down') return
          await client.ask(server, 'Again', stream)
          expect(await server.transcriptLines('demo:me')).toEqual([...stored, 'user: Again', 'assistant: There.'])
          expect(JSON.stringify(upstream.requests.at(-1)?.body.messages).includes('Hello')).toBe(!isRefused(outcome))
        })
      }
    }
  }
})
