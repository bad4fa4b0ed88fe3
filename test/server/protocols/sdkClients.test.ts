import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { MemoryError } from '../../../src/domain/error.ts'
import { toErrorResponse } from '../../../src/server/http/httpError.ts'
import { chatProtocol } from '../../../src/server/protocols/chat.ts'
import { messagesProtocol } from '../../../src/server/protocols/messages.ts'
import type { Protocol, RequestBody } from '../../../src/server/protocols/protocol.ts'
import { responsesProtocol } from '../../../src/server/protocols/responses.ts'
import { createOfflineBackend } from '../../../src/server/upstreams/offlineBackend.ts'
import { chars4 } from '../../../src/text/estimators.ts'

type Clients = AsyncDisposable & { readonly openai: OpenAI; readonly anthropic: Anthropic }

/** Starts a server without memory and SDK clients for it. The reply fails after `failAfterBytes`. */
async function startClients(failAfterBytes = Number.POSITIVE_INFINITY): Promise<Clients> {
  const backend = createOfflineBackend(chars4)
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const protocol =
      [chatProtocol, responsesProtocol, messagesProtocol].find(({ path }) => request.url?.endsWith(path)) ??
      chatProtocol
    try {
      const body = JSON.parse((await buffer(request)).toString('utf8')) as RequestBody
      const upstreamBody = protocol.buildRequest(protocol.parseRequest(body, chars4), [], 0)
      const upstreamResponse = await backend.send({
        endpoint: protocol.name,
        body: upstreamBody,
        promptTokens: 9,
        headers: {},
        signal: new AbortController().signal,
        withholdClientKey: false,
      })
      response.writeHead(upstreamResponse.status, upstreamResponse.headers)
      await relayBody(upstreamResponse.body, response, protocol, failAfterBytes)
    } catch (error) {
      const { status, error: problem } = toErrorResponse(error)
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify(protocol.formatError(problem)))
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

async function relayBody(
  body: AsyncIterable<Uint8Array>,
  response: ServerResponse,
  protocol: Protocol,
  failAfterBytes: number,
): Promise<void> {
  let sent = 0
  for await (const bytes of body) {
    response.write(bytes)
    sent += bytes.length
    if (sent > failAfterBytes)
      return void response.end(
        protocol.formatErrorEvent(
          toErrorResponse(new MemoryError('upstream', 'The model broke down. Try again.')).error,
        ),
      )
  }
  response.end()
}

const replyText = 'From what you told me: "My dog is called Rex."'
const conversation = [
  { role: 'user' as const, content: 'My dog is called Rex.' },
  { role: 'assistant' as const, content: 'A good name.' },
  { role: 'user' as const, content: 'What is my dog called?' },
]
const request = { model: 'any', max_tokens: 100, messages: conversation }
/** Returns the error of a rejected promise. */
const catchError = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('OpenAI SDK', () => {
  it('reads a response, complete and streamed', async () => {
    await using clients = await startClients()
    const complete = await clients.openai.responses.create({ model: 'any', input: conversation })
    expect(complete).toMatchObject({
      output_text: replyText,
      status: 'completed',
      usage: { input_tokens: 9, output_tokens: 12, total_tokens: 21 },
    })
    const stream = clients.openai.responses.stream({ model: 'any', input: conversation })
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
      replyText,
    )
    expect(await stream.finalResponse()).toMatchObject({ output_text: replyText, usage: { total_tokens: 21 } })
  })

  it('reads a chat completion, complete and streamed', async () => {
    await using clients = await startClients()
    const complete = await clients.openai.chat.completions.create({ model: 'any', messages: conversation })
    expect(complete).toMatchObject({
      choices: [{ message: { content: replyText } }],
      usage: { prompt_tokens: 9, completion_tokens: 12 },
    })
    const stream = clients.openai.chat.completions.stream({
      model: 'any',
      messages: conversation,
      stream_options: { include_usage: true },
    })
    expect(await stream.finalContent()).toBe(replyText)
    expect(await stream.totalUsage()).toMatchObject({ prompt_tokens: 9, completion_tokens: 12 })
  })

  it('receives errors before and during a response', async () => {
    await using clients = await startClients(2_000)
    const rejected = await catchError(
      clients.openai.responses.create({
        model: 'any',
        input: [{ type: 'function_call', call_id: '', name: 'x', arguments: '' }],
      }),
    )
    expect(rejected).toBeInstanceOf(OpenAI.BadRequestError)
    expect(rejected).toMatchObject({ code: 'bad-message', param: 'input[0].call_id', type: 'invalid_request_error' })
    const expectedError = { message: 'The model broke down. Try again.', code: 'upstream', type: 'upstream_error' }
    expect(
      await catchError(clients.openai.responses.stream({ model: 'any', input: conversation }).finalResponse()),
    ).toMatchObject(expectedError)
    const events = await clients.openai.responses.create({ model: 'any', input: conversation, stream: true })
    const readToEnd = async () => {
      for await (const { type } of events) if (type === 'response.completed') return type
    }
    expect(await catchError(readToEnd())).toMatchObject(expectedError)
  })
})

describe('Anthropic SDK', () => {
  it('reads a message, complete and streamed', async () => {
    await using clients = await startClients()
    const complete = await clients.anthropic.messages.create(request)
    expect(complete).toMatchObject({
      content: [{ type: 'text', text: replyText }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 9, output_tokens: 12 },
    })
    const stream = clients.anthropic.messages.stream(request)
    const texts: string[] = []
    stream.on('text', (text) => texts.push(text))
    const final = await stream.finalMessage()
    expect(final).toMatchObject({
      content: [{ type: 'text', text: replyText }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 9, output_tokens: 12 },
    })
    expect(texts.length).toBeGreaterThan(5)
    expect(texts.join('')).toBe(replyText)
  })

  it('receives errors before and during a message', async () => {
    await using clients = await startClients(600)
    const rejected = await catchError(clients.anthropic.messages.create({ ...request, messages: [] }))
    expect(rejected).toBeInstanceOf(Anthropic.BadRequestError)
    expect(rejected).toMatchObject({ type: 'invalid_request_error' })
    const expectedError = {
      type: 'api_error',
      error: { type: 'error', error: { type: 'api_error', message: 'The model broke down. Try again.' } },
    }
    expect(await catchError(clients.anthropic.messages.stream(request).finalMessage())).toMatchObject(expectedError)
  })
})
