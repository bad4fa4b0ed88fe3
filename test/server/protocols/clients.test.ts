import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { problemOf } from '../../../src/server/http/httpError.ts'
import { chat } from '../../../src/server/protocols/chat.ts'
import type { Body, Dialect } from '../../../src/server/protocols/dialect.ts'
import { messages } from '../../../src/server/protocols/messages.ts'
import { responses } from '../../../src/server/protocols/responses.ts'
import { offlineBackend } from '../../../src/server/upstreams/offline/offline.ts'
import { chars4 } from '../../../src/text/estimators.ts'

type Clients = AsyncDisposable & { readonly openai: OpenAI; readonly anthropic: Anthropic }

/** The protocols behind a server that has no memory. `cut` is the number of bytes after which the built-in model breaks down. */
async function startClients(cut = Number.POSITIVE_INFINITY): Promise<Clients> {
  const backend = offlineBackend(chars4)
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const dialect = [chat, responses, messages].find(({ path }) => request.url?.endsWith(path)) ?? chat
    try {
      const body = JSON.parse((await buffer(request)).toString('utf8')) as Body
      const written = dialect.write(dialect.read(body, chars4), [], 0)
      const answer = await backend.ask({
        dialect: dialect.name,
        body: written,
        spent: 9,
        headers: {},
        signal: new AbortController().signal,
        isGuarded: false,
      })
      response.writeHead(answer.status, answer.headers)
      await pass(answer.body, response, dialect, cut)
    } catch (error) {
      const { status, error: problem } = problemOf(error)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(dialect.problem(problem)))
    }
  }
  const server = createServer((request, response) => void respond(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    openai: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk', maxRetries: 0 }),
    anthropic: new Anthropic({ baseURL: url, apiKey: 'sk', maxRetries: 0 }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function pass(
  body: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  dialect: Dialect,
  cut: number,
): Promise<void> {
  let sent = 0
  for await (const bytes of body) {
    response.write(bytes)
    sent += bytes.length
    if (sent > cut)
      return void response.end(
        dialect.failure(problemOf(new MemoryError('upstream', 'The model broke down. Try again.')).error),
      )
  }
  response.end()
}

const answer = 'From what you told me: "My dog is called Rex."'
const talk = [
  { role: 'user' as const, content: 'My dog is called Rex.' },
  { role: 'assistant' as const, content: 'A good name.' },
  { role: 'user' as const, content: 'What is my dog called?' },
]
const asked = { model: 'any', max_tokens: 100, messages: talk }
/** What somebody is told who waits for something in vain. */
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('a client of OpenAI', () => {
  it('reads a response, whole and streamed', async () => {
    await using clients = await startClients()
    const whole = await clients.openai.responses.create({ model: 'any', input: talk })
    expect(whole).toMatchObject({
      output_text: answer,
      status: 'completed',
      usage: { input_tokens: 9, output_tokens: 12, total_tokens: 21 },
    })
    const stream = clients.openai.responses.stream({ model: 'any', input: talk })
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of stream) events.push(event)
    expect(events.map(({ type }) => type).filter((type) => type !== 'response.output_text.delta')).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ])
    expect(events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('')).toBe(
      answer,
    )
    expect(await stream.finalResponse()).toMatchObject({ output_text: answer, usage: { total_tokens: 21 } })
  })

  it('reads chat completions, whole and streamed', async () => {
    await using clients = await startClients()
    const whole = await clients.openai.chat.completions.create({ model: 'any', messages: talk })
    expect(whole).toMatchObject({
      choices: [{ message: { content: answer } }],
      usage: { prompt_tokens: 9, completion_tokens: 12 },
    })
    const stream = clients.openai.chat.completions.stream({
      model: 'any',
      messages: talk,
      stream_options: { include_usage: true },
    })
    expect(await stream.finalContent()).toBe(answer)
    expect(await stream.totalUsage()).toMatchObject({ prompt_tokens: 9, completion_tokens: 12 })
  })

  it('is told why a response fails, before and in the middle of it', async () => {
    await using clients = await startClients(2_000)
    const refused = await failure(
      clients.openai.responses.create({
        model: 'any',
        input: [{ type: 'function_call', call_id: '', name: 'x', arguments: '' }],
      }),
    )
    expect(refused).toBeInstanceOf(OpenAI.BadRequestError)
    expect(refused).toMatchObject({ code: 'bad-message', param: 'input[0].call_id', type: 'invalid_request_error' })
    const told = { message: 'The model broke down. Try again.', code: 'upstream', type: 'upstream_error' }
    expect(await failure(clients.openai.responses.stream({ model: 'any', input: talk }).finalResponse())).toMatchObject(
      told,
    )
    const events = await clients.openai.responses.create({ model: 'any', input: talk, stream: true })
    const last = async () => {
      for await (const { type } of events) if (type === 'response.completed') return type
    }
    expect(await failure(last())).toMatchObject(told)
  })
})

describe('a client of Anthropic', () => {
  it('reads a message, whole and streamed', async () => {
    await using clients = await startClients()
    const whole = await clients.anthropic.messages.create(asked)
    expect(whole).toMatchObject({
      content: [{ type: 'text', text: answer }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 9, output_tokens: 12 },
    })
    const stream = clients.anthropic.messages.stream(asked)
    const texts: string[] = []
    stream.on('text', (text) => texts.push(text))
    const final = await stream.finalMessage()
    expect(final).toMatchObject({
      content: [{ type: 'text', text: answer }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 9, output_tokens: 12 },
    })
    expect(texts.length).toBeGreaterThan(5)
    expect(texts.join('')).toBe(answer)
  })

  it('is told why a message fails, before and in the middle of it', async () => {
    await using clients = await startClients(600)
    const refused = await failure(clients.anthropic.messages.create({ ...asked, messages: [] }))
    expect(refused).toBeInstanceOf(Anthropic.BadRequestError)
    expect(refused).toMatchObject({ type: 'invalid_request_error' })
    const told = {
      type: 'api_error',
      error: { type: 'error', error: { type: 'api_error', message: 'The model broke down. Try again.' } },
    }
    expect(await failure(clients.anthropic.messages.stream(asked).finalMessage())).toMatchObject(told)
  })
})
