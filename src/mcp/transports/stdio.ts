import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import {
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type McpServerFactory,
  ProtocolErrorCode,
  parseJSONRPCMessage,
  type RequestId,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'
import { exceedsDepth } from '../../domain/stringify.ts'
import { canUseWorkspace, type Principal } from '../principal.ts'
import { createChangeNotifier, type ResourceChange } from '../resources/changes.ts'
import { createMcpServer } from '../server.ts'
import type { McpServices } from '../services.ts'

export type StdioConnection = {
  /** Resolves when the connection is closed and no call is in flight. */
  readonly ended: Promise<void>
  /** Stops reading, answers pending requests, then closes. */
  finish(): void
}

/**
 * Serves one client over two pipes, in the protocol version the client starts with.
 *
 * @example
 * const { ended } = serveStdioClient(services, createPrincipal({ workspace: 'my-project' }), { input: process.stdin, output: process.stdout })
 * await ended
 */
export function serveStdioClient(host: McpServices, principal: Principal, pipes: Pipes): StdioConnection {
  const transport = new StdioTransport(pipes)
  let notify: (change: ResourceChange) => void = () => undefined
  const unsubscribe = host.changes.subscribe((change) => canUseWorkspace(principal, change.workspace) && notify(change))
  const factory: McpServerFactory = ({ era }) => {
    const server = createMcpServer(host.toolContext, { ...host, principal, supportsSubscriptions: true })
    notify = createChangeNotifier(server, era)
    return server
  }
  const handle = serveStdio(factory, { transport, onerror: (error) => host.onError(error) })
  const ended = transport.ended.then(async () => {
    unsubscribe()
    await handle.close()
    await host.inFlightCalls.settled()
  })
  return { ended, finish: () => transport.finish() }
}

const defaultMaxMessageBytes = 33_554_432

/** Same limit as over HTTP: recursive code could overflow the stack on deeper values. */
const maxNestingDepth = 64

type Pipes = { readonly input: Readable; readonly output: Writable; readonly maxMessageBytes?: number }

/**
 * Transport over two pipes with one JSON-RPC message per line. Oversized and malformed messages are answered with an
 * error without ending the connection. When the input ends, pending requests are answered before the transport closes.
 */
class StdioTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onerror?: (error: Error) => void
  onclose?: () => void
  private readonly pipes: Pipes
  private readonly maxMessageBytes: number
  private readonly pendingRequests = new Set<RequestId>()
  private onAllAnswered: () => void = () => undefined
  private drained: Promise<unknown> | undefined
  private readonly end = Promise.withResolvers<void>()
  private isClosed = false

  constructor(pipes: Pipes) {
    this.pipes = pipes
    this.maxMessageBytes = pipes.maxMessageBytes ?? defaultMaxMessageBytes
  }

  async start(): Promise<void> {
    // Never removed: a disconnected client must not crash the process.
    this.pipes.output.on('error', () => void this.close())
    void this.read()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.isClosed) return
    const hasCapacity = this.pipes.output.write(serializeMessage(message))
    if ((isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) && message.id !== undefined)
      this.completeRequest(message.id)
    if (hasCapacity) return
    this.drained ??= once(this.pipes.output, 'drain').then(
      () => (this.drained = undefined),
      () => undefined,
    )
    await this.drained
  }

  /** Stops reading, answers pending requests, then closes. */
  finish(): void {
    this.pipes.input.destroy()
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.onAllAnswered()
    this.pipes.input.destroy()
    this.onclose?.()
    this.end.resolve()
  }

  /** Resolves when the transport is closed. */
  get ended(): Promise<void> {
    return this.end.promise
  }

  private async read(): Promise<void> {
    try {
      for await (const line of readLines(this.pipes.input, this.maxMessageBytes)) this.receive(line)
    } catch {
      // The client disconnected, or `finish` was called.
    }
    if (this.pendingRequests.size > 0 && !this.isClosed)
      await new Promise<void>((resolve) => (this.onAllAnswered = resolve))
    await this.close()
  }

  private receive(line: InputLine): void {
    const message = this.parseLine(line)
    if (message === undefined) return
    if (isJSONRPCRequest(message) && message.method !== 'subscriptions/listen') this.pendingRequests.add(message.id)
    if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled')
      this.completeRequest(message.params?.requestId as RequestId)
    this.onmessage?.(message)
  }

  private parseLine(line: InputLine): JSONRPCMessage | undefined {
    if ('text' in line) return line.text.trim() === '' ? undefined : this.parseMessage(line.text)
    this.reject(
      findRequestId(line),
      ProtocolErrorCode.InvalidRequest,
      `The message is larger than ${this.maxMessageBytes} bytes. Send smaller messages.`,
    )
    return undefined
  }

  private parseMessage(text: string): JSONRPCMessage | undefined {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      this.reject(null, ProtocolErrorCode.ParseError, 'The line is not JSON. Send one JSON-RPC message per line.')
      return undefined
    }
    const id = (value as { readonly id?: unknown } | null)?.id
    const requestId = typeof id === 'string' || typeof id === 'number' ? id : null
    if (exceedsDepth(value, maxNestingDepth)) {
      this.reject(
        requestId,
        ProtocolErrorCode.InvalidRequest,
        `The message is nested deeper than ${maxNestingDepth} levels. Send deeply nested data as text.`,
      )
      return undefined
    }
    try {
      return parseJSONRPCMessage(value)
    } catch {
      this.reject(requestId, ProtocolErrorCode.InvalidRequest, 'The line is not a JSON-RPC 2.0 message.')
      return undefined
    }
  }

  /** JSON-RPC requires a null id if the id is unknown; the SDK's types do not allow it. */
  private reject(id: RequestId | null, code: number, message: string): void {
    void this.send({ jsonrpc: '2.0', id: id as RequestId, error: { code, message } })
  }

  private completeRequest(id: RequestId): void {
    this.pendingRequests.delete(id)
    if (this.pendingRequests.size === 0) this.onAllAnswered()
  }
}

/** Finds the id at the start or the end of an oversized message, where clients write it. */
function findRequestId({ start, end }: OversizedLine): RequestId | null {
  const match =
    /^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d+|"[^"\\]*")/.exec(start) ??
    /"id"\s*:\s*(\d+|"[^"\\]*")\s*\}\s*$/.exec(end)
  return match?.[1] === undefined ? null : (JSON.parse(match[1]) as RequestId)
}

/** Line of input, or only the start and end of a line that is too long. */
type InputLine = { readonly text: string } | OversizedLine
type OversizedLine = { readonly start: string; readonly end: string }

/** Bytes kept of each end of an oversized line: enough to find the id of the message. */
const keptBytes = 1_024
const newline = 0x0a

/** Splits input into lines of at most `maxBytes`. A longer line is read to its end without buffering it. */
export async function* readLines(input: AsyncIterable<Uint8Array>, maxBytes: number): AsyncIterable<InputLine> {
  let line = new LineBuffer(maxBytes)
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      line.add(chunk.subarray(start, end))
      yield line.toLine()
      line = new LineBuffer(maxBytes)
      start = end + 1
    }
    line.add(chunk.subarray(start))
  }
  // The last line may lack its newline.
  if (line.size > 0) yield line.toLine()
}

class LineBuffer {
  size = 0
  private readonly maxBytes: number
  private chunks: Uint8Array[] = []

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  add(chunk: Uint8Array): void {
    this.size += chunk.length
    this.chunks.push(chunk)
    if (this.size > this.maxBytes) this.shrink()
  }

  toLine(): InputLine {
    const bytes = Buffer.concat(this.chunks)
    if (this.size <= this.maxBytes) return { text: bytes.toString('utf8') }
    return { start: bytes.subarray(0, keptBytes).toString('utf8'), end: bytes.subarray(-keptBytes).toString('utf8') }
  }

  private shrink(): void {
    const bytes = Buffer.concat(this.chunks)
    this.chunks =
      bytes.length <= 2 * keptBytes
        ? [bytes]
        : [Buffer.concat([bytes.subarray(0, keptBytes), bytes.subarray(-keptBytes)])]
  }
}
