import Anthropic from '@anthropic-ai/sdk'
import type { APIError } from 'openai'
import { describe, expect, it } from 'vitest'
import { type Behaviour, closedPort, refuses, replies, sends, startUpstream } from '../providers/upstream.ts'
import { all, type Started, startServer, user } from './start.ts'

/** What a client is told: in place of an answer, or in the middle of one; or nothing but the answer. */
type Told = { readonly status: number; readonly code: string | null } | { readonly amid: string } | 'all is well'
type Fault = {
  readonly name: string
  readonly does: Behaviour | 'is down'
  readonly whole: Told
  readonly streamed: Told
}

const [broken, late] = [
  { status: 502, code: 'upstream' },
  { status: 504, code: 'timeout' },
]
/** However it was asked. */
const always = (told: Told): Pick<Fault, 'whole' | 'streamed'> => ({ whole: told, streamed: told })
const refusal = '{"type":"error","error":{"type":"some_error","message":"No.","code":"its_own"}}'
const bytes = Buffer.from(Array.from({ length: 4_096 }, (_, at) => (at * 151) % 256))
const faults: readonly Fault[] = [
  { name: 'is down', does: 'is down', ...always(broken) },
  { name: 'has too much to do', does: refuses(429, {}, refusal), ...always({ status: 429, code: 'its_own' }) },
  { name: 'is broken', does: refuses(500, {}, refusal), ...always({ status: 500, code: 'its_own' }) },
  { name: 'never answers', does: { does: 'hang' }, ...always(late) },
  { name: 'hangs up before it answers', does: { does: 'cut' }, ...always(broken) },
  { name: 'sends a web page', does: sends('text/html', '<html>Sign in</html>'), ...always(broken) },
  { name: 'sends bytes that mean nothing', does: sends('application/json', bytes), ...always(broken) },
  { name: 'sends bytes that mean nothing as events', does: sends('text/event-stream', bytes), ...always(broken) },
  { name: 'sends nothing', does: sends('application/json', ''), ...always(broken) },
  { name: 'calls events JSON', does: sends('application/json', 'data: {"choices":[]}\n\n'), ...always(broken) },
  {
    name: 'stops in the middle',
    does: { does: 'stop', pieces: ['Once'] },
    whole: broken,
    streamed: { amid: 'upstream' },
  },
  {
    name: 'breaks off in the middle',
    does: { does: 'drop', pieces: ['Once'] },
    whole: broken,
    streamed: { amid: 'upstream' },
  },
  {
    name: 'falls silent in the middle',
    does: { does: 'stall', pieces: ['Once'] },
    whole: late,
    streamed: { amid: 'timeout' },
  },
  { name: 'is slow', does: { does: 'reply', pieces: ['Once', ' upon'], split: true }, ...always('all is well') },
]

type Client = {
  readonly name: string
  /** What the client calls the errors of each status. */
  readonly classes: Readonly<Record<number, string>>
  /** Asks with the protocol's own client, and tells how that ended. */
  ask(server: Started, content: string, stream: boolean): Promise<unknown>
}

const classes = {
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
    return all(await chat.completions.create({ model: 'm', messages: [user(content)], stream }))
  },
}
const anthropic: Client = {
  name: 'messages',
  classes: { ...classes, 504: 'GatewayTimeoutError' },
  ask: async (server, content, stream) => {
    const { messages } = new Anthropic({ baseURL: `${server.url}/v1/demo:me`, apiKey: 'sk-client', maxRetries: 0 })
    const body = { model: 'm', max_tokens: 100, messages: [user(content)] }
    return stream ? all(await messages.create({ ...body, stream })) : messages.create(body)
  },
}

function expectTold(error: unknown, told: Told, client: Client): void {
  if (told === 'all is well') {
    expect(error).toBeUndefined()
    return
  }
  const { status, code, constructor: made } = (error ?? expect.fail('nothing was told')) as APIError
  if ('amid' in told) expect([status, made.name]).toEqual([undefined, 'APIError'])
  else expect([status, made.name]).toEqual([told.status, client.classes[told.status]])
  // Anthropic's errors have no code.
  if (client === openai) expect(code).toBe('amid' in told ? told.amid : told.code)
}

describe('a model server', () => {
  for (const client of [openai, anthropic]) {
    for (const { name, does, ...expected } of faults) {
      for (const stream of [false, true]) {
        it(`that ${name} (${client.name}, ${stream ? 'streamed' : 'whole'}) costs no message: the user's is kept, half a reply is not, and the talk goes on`, async () => {
          await using upstream = await startUpstream((request) =>
            JSON.stringify(request.body.messages.at(-1)).includes('Again') || does === 'is down'
              ? replies('There.')
              : does,
          )
          const base = does === 'is down' ? await closedPort() : upstream.url
          await using server = await startServer({
            upstream: base,
            patience: { first: 100, idle: 100 },
            persistence: { tries: 1 },
          })
          const told = stream ? expected.streamed : expected.whole
          const error = await client.ask(server, 'Hello', stream).then(
            () => undefined,
            (reason: unknown) => reason,
          )
          expectTold(error, told, client)
          expect(await server.said('demo:me')).toEqual([
            'user: Hello',
            ...(told === 'all is well' ? ['assistant: Once upon'] : []),
          ])
          expect(server.faults).toEqual([])
          if (does === 'is down') return
          await client.ask(server, 'Again', stream)
          expect((await server.said('demo:me')).slice(-2)).toEqual(['user: Again', 'assistant: There.'])
          expect(JSON.stringify(upstream.requests.at(-1)?.body.messages)).toContain('Hello')
        })
      }
    }
  }
})
