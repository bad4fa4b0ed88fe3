import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Json } from '../../../src/domain/entry.ts'
import { isObject } from '../../../src/domain/error.ts'
import { startServer, type TestServer } from '../../server/start.ts'
import { HttpClient, type HttpResponse, parseResponse } from '../httpClient.ts'
import type { Finding, Part, Replayer, RunOptions } from '../part.ts'
import { Random, seedOf } from '../random.ts'
import { createFault, type Protocol, respond, type UpstreamFault } from './faults.ts'

const paths: Readonly<Record<Protocol, string>> = {
  chat: 'chat/completions',
  responses: 'responses',
  messages: 'messages',
}
/** Long enough for a busy machine; many responses wait at the same time. */
const timeoutMs = 2_500
const concurrency = 40
/** Sessions end with their server, so that memory does not grow with the number of inputs. */
const inputsPerServer = 2_000

/** An upstream whose responses are chosen by the name of the model. */
class FaultyUpstream {
  private readonly server = createServer((socket) => this.serve(socket))
  private readonly faults = new Map<string, UpstreamFault>()
  private readonly sockets = new Set<Socket>()

  async listen(): Promise<string> {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`
  }

  set(model: string, fault: UpstreamFault): void {
    this.faults.set(model, fault)
  }

  delete(model: string): void {
    this.faults.delete(model)
  }

  close(): void {
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket)
    let received = ''
    socket.on('error', () => undefined).on('close', () => this.sockets.delete(socket))
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1')
      const [head = '', body = ''] = received.split('\r\n\r\n')
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (!received.includes('\r\n\r\n') || body.length < length) return
      received = ''
      void this.respond(socket, head, body)
    })
  }

  private async respond(socket: Socket, head: string, body: string): Promise<void> {
    const [, model = ''] = /"model":\s?"(input-\d+)"/.exec(body) ?? []
    const fault = this.faults.get(model)
    if (fault === undefined) {
      const [protocol] = (Object.entries(paths) as [Protocol, string][]).find(([, path]) =>
        head.split(' ')[1]?.endsWith(path),
      ) ?? ['chat' as const]
      socket.write(respond(protocol, /"stream":\s?true/.test(body)), 'latin1')
      return
    }
    const { bytes, pauseAt = bytes.length, ending } = fault
    socket.write(bytes.slice(0, pauseAt), 'latin1')
    if (pauseAt < bytes.length) {
      await delay(20)
      socket.write(bytes.slice(pauseAt), 'latin1')
    }
    if (ending === 'close') socket.end()
    else if (ending === 'reset') socket.resetAndDestroy()
  }
}

/** A server between a client and the faulty upstream. */
class Chain implements AsyncDisposable {
  private readonly upstream: FaultyUpstream
  private readonly server: TestServer
  private readonly client: HttpClient
  private count = 0

  private constructor(upstream: FaultyUpstream, server: TestServer) {
    this.upstream = upstream
    this.server = server
    this.client = new HttpClient(server.url, { connections: 2 * concurrency, timeoutMs: 20_000 })
  }

  static async start(): Promise<Chain> {
    const upstream = new FaultyUpstream()
    const server = await startServer({
      upstream: await upstream.listen(),
      timeouts: { firstByte: timeoutMs, idle: timeoutMs },
      // A connection that the upstream closes between two requests is normal.
      retries: { tries: 3, baseDelay: 5, maxDelay: 20 },
    })
    return new Chain(upstream, server)
  }

  /** Sends a turn to a faulty upstream and one to a working one; returns the problems. */
  async run(fault: UpstreamFault): Promise<readonly { readonly kind: string; readonly detail: string }[]> {
    const name = `input-${++this.count}`
    const problems: { kind: string; detail: string }[] = []
    const where = `${fault.protocol}${fault.isStream ? ' stream' : ''}`
    const add = (kind: string, detail: string): void => void problems.push({ kind: `${kind} (${where})`, detail })
    this.upstream.set(name, fault)
    const faultsBefore = this.server.faults.length
    try {
      const first = await this.ask(fault, name, name, 'Hello')
      const problem = fault.isStream && first.status < 300 ? findStreamProblem(fault, first) : findReplyProblem(first)
      if (problem !== undefined) add(problem, describe(first))
    } catch (error) {
      // Not even a stream that has begun may be cut off: it ends with an event that reports the failure.
      add('no response', (error as Error).message)
    }
    const second = await this.ask(fault, name, 'good', 'Again').catch((error: Error) => error)
    if (second instanceof Error) add('no second response', second.message)
    else if (second.status !== 200 || !/upon/.test(second.body.toString())) add('second turn failed', describe(second))
    for (const trace of this.server.faults.slice(faultsBefore)) add('fault', trace)
    const lines = await this.server.transcriptLines(`demo:${name}`)
    if (lines.at(-1) !== 'assistant: Once upon a time.' || lines.at(-2) !== 'user: Again')
      add('transcript', JSON.stringify(lines).slice(-400))
    this.upstream.delete(name)
    return problems
  }

  private ask(
    { protocol, isStream }: UpstreamFault,
    session: string,
    model: string,
    text: string,
  ): Promise<HttpResponse> {
    const message = { role: 'user', content: text }
    const body = {
      model,
      ...(protocol === 'responses' ? { input: text } : { messages: [message] }),
      ...(protocol === 'messages' && { max_tokens: 100 }),
      ...(isStream && { stream: true }),
    }
    return this.client.request({
      method: 'POST',
      path: `/v1/demo:${session}/${paths[protocol]}`,
      headers: { 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(body)),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close()
    this.upstream.close()
    await this.server.close(0)
  }
}

const describe = ({ status, headers, body }: HttpResponse): string =>
  `${status} ${headers['content-type']} ${body.toString().slice(0, 300)}`

/** A reply must be a JSON object; an error must have the protocol's format, and not be internal. */
function findReplyProblem({ status, body }: HttpResponse): string | undefined {
  const value = parse(body.toString())
  if (!isObject(value)) return status >= 200 && status < 300 ? 'invalid reply' : 'invalid error'
  if (status < 400) return undefined
  const { error } = value
  if (!isObject(error) || typeof error.message !== 'string') return 'error shape'
  return error.code === 'internal' ? 'internal error' : undefined
}

/** Events that end a stream: the reply is complete, or its failure is reported. */
const streamEnds: Readonly<Record<Protocol, RegExp>> = {
  chat: /^\[DONE\]$|"error"/,
  responses: /"type":\s?"response\.(?:completed|failed|incomplete)"|"error"/,
  messages: /"type":\s?"message_stop"|"error"/,
}
/** Sign of a complete reply. */
const replyEnd = /"(?:finish|stop)_reason":\s?"/

/**
 * Events that the upstream did not send must contain JSON, and the reply must have an end or report an error. The event
 * that ends the stream may be missing after a complete reply, but only if the upstream did not send it, or sent it in a
 * response whose framing is broken: then all of the reply has arrived, and clients have it.
 */
function findStreamProblem({ protocol, bytes }: UpstreamFault, response: HttpResponse): string | undefined {
  const { body, headers } = response
  if (!/event-stream/.test(headers['content-type'] ?? '')) return findReplyProblem(response)
  const data = dataOf(body.toString())
  const sent = Buffer.from(bytes, 'latin1').toString()
  const invalid = data.find((text) => text !== '[DONE]' && !isObject(parse(text)) && !sent.includes(text))
  if (invalid !== undefined) return 'invalid event'
  const hasEnd = (events: readonly string[]): boolean => events.some((text) => streamEnds[protocol].test(text))
  if (hasEnd(data)) return undefined
  const complete = parseResponse(Buffer.from(bytes, 'latin1'), 'POST', true)
  if (typeof complete === 'object' && hasEnd(dataOf(complete.response.body.toString())))
    return 'stream without the end that the upstream sent'
  return data.some((text) => replyEnd.test(text)) ? undefined : 'stream without an end'
}

const dataOf = (text: string): readonly string[] =>
  [...text.matchAll(/^data: ?(.*)$/gm)].map(([, content = '']) => content)

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

async function run({ seed, inputs, isOver, counter, onProgress, onFinding }: RunOptions): Promise<number> {
  let done = 0
  let next = 0
  while (next < inputs && !isOver()) {
    await using chain = await Chain.start()
    const end = Math.min(inputs, next + inputsPerServer)
    const work = async (): Promise<void> => {
      while (next < end && !isOver()) {
        const fault = createFault(new Random(seedOf(seed, next++)))
        for (const { kind, detail } of await chain.run(fault))
          onFinding({ kind, detail, input: fault as unknown as Json })
        counter.add(`${fault.protocol}${fault.isStream ? ' streamed' : ''}`)
        onProgress(++done)
      }
    }
    await Promise.all(Array.from({ length: concurrency }, work))
  }
  return done
}

async function openReplayer(): Promise<Replayer> {
  const chain = await Chain.start()
  return {
    replay: async (input) => {
      const { bytes, protocol, ending, isStream } = input as unknown as UpstreamFault
      if (typeof bytes !== 'string' || paths[protocol] === undefined || ending === undefined || isStream === undefined)
        return []
      return (await chain.run(input as unknown as UpstreamFault)).map((problem): Finding => ({ ...problem, input }))
    },
    [Symbol.asyncDispose]: () => chain[Symbol.asyncDispose](),
  }
}

/** Hostile upstreams. */
export const upstreams: Part = {
  name: 'upstreams',
  unit: 'responses',
  description: 'model servers that send damaged, wrong, slow or endless responses',
  fullCount: 30_000,
  sliceCount: 40,
  maxWorkers: 16,
  maxShrinkTries: 250,
  run,
  openReplayer,
}
