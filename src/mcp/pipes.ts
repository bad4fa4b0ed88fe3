import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import {
  isJSONRPCErrorResponse,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  ProtocolErrorCode,
  parseJSONRPCMessage,
  type RequestId,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/server'
import { type Glimpse, type Line, linesOf } from './lines.ts'

/** The most bytes a message may have; what is longer is refused, and what follows it is answered. */
const longestMessage = 33_554_432

/** As over HTTP: code that follows nested values could be made to run out of stack. */
const deepest = 64

export type Pipes = { readonly input: Readable; readonly output: Writable; readonly longest?: number }

/**
 * A client at the other end of two pipes, a message on each line. When the client closes its end, what it has asked for is
 * answered first.
 */
export class StdioTransport implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onerror?: (error: Error) => void
  onclose?: () => void
  private readonly pipes: Pipes
  private readonly asked = new Set<RequestId>()
  private answered: () => void = () => undefined
  private drained: Promise<unknown> | undefined
  private readonly over = Promise.withResolvers<void>()
  private closed = false

  constructor(pipes: Pipes) {
    this.pipes = pipes
  }

  async start(): Promise<void> {
    // Stays to the end: a client that is gone must not end the process.
    this.pipes.output.on('error', () => void this.close())
    void this.read()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.closed) return
    const isWritten = this.pipes.output.write(serializeMessage(message))
    if ((isJSONRPCResultResponse(message) || isJSONRPCErrorResponse(message)) && message.id !== undefined)
      this.settle(message.id)
    if (isWritten) return
    this.drained ??= once(this.pipes.output, 'drain').then(
      () => (this.drained = undefined),
      () => undefined,
    )
    await this.drained
  }

  /** Takes no more messages, answers those that were taken, then closes. */
  finish(): void {
    this.pipes.input.destroy()
  }

  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    this.answered()
    this.pipes.input.destroy()
    this.onclose?.()
    this.over.resolve()
  }

  /** Resolves when nothing more comes or goes. */
  get ended(): Promise<void> {
    return this.over.promise
  }

  private async read(): Promise<void> {
    try {
      for await (const line of linesOf(this.pipes.input, this.pipes.longest ?? longestMessage)) this.take(line)
    } catch {
      // A pipe that breaks is a client that is gone, or one that is no longer listened to.
    }
    if (this.asked.size > 0 && !this.closed) await new Promise<void>((resolve) => (this.answered = resolve))
    await this.close()
  }

  private take(line: Line): void {
    const message =
      'begins' in line ? this.refuseLong(line) : line.text.trim() === '' ? undefined : this.parsed(line.text)
    if (message === undefined) return
    if (isJSONRPCRequest(message) && message.method !== 'subscriptions/listen') this.asked.add(message.id)
    if (isJSONRPCNotification(message) && message.method === 'notifications/cancelled')
      this.settle(message.params?.requestId as RequestId)
    this.onmessage?.(message)
  }

  private parsed(text: string): JSONRPCMessage | undefined {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      this.refuse(null, ProtocolErrorCode.ParseError, 'This is not JSON. Send one JSON-RPC message on each line.')
      return undefined
    }
    const id = (value as { readonly id?: unknown } | null)?.id
    const known = typeof id === 'string' || typeof id === 'number' ? id : null
    if (isDeeper(value, deepest)) {
      this.refuse(
        known,
        ProtocolErrorCode.InvalidRequest,
        `The message is nested deeper than ${deepest} levels. Send deep data as text.`,
      )
      return undefined
    }
    try {
      return parseJSONRPCMessage(value)
    } catch {
      this.refuse(known, ProtocolErrorCode.InvalidRequest, 'This is no JSON-RPC 2.0 message.')
      return undefined
    }
  }

  private refuseLong(line: Glimpse): undefined {
    const longest = this.pipes.longest ?? longestMessage
    this.refuse(
      idIn(line),
      ProtocolErrorCode.InvalidRequest,
      `The message is larger than ${longest} bytes. Send less at once.`,
    )
  }

  /** JSON-RPC wants null where the id cannot be told, which the types of the protocol do not know. */
  private refuse(id: RequestId | null, code: number, message: string): void {
    void this.send({ jsonrpc: '2.0', id: id as RequestId, error: { code, message } })
  }

  private settle(id: RequestId): void {
    this.asked.delete(id)
    if (this.asked.size === 0) this.answered()
  }
}

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1)))

/** The id of a message of which only the beginning and the end are known; clients write it at one of them. */
function idIn({ begins, ends }: Glimpse): RequestId | null {
  const found =
    /^\s*\{(?:\s*"jsonrpc"\s*:\s*"2\.0"\s*,)?\s*"id"\s*:\s*(\d+|"[^"\\]*")/.exec(begins) ??
    /"id"\s*:\s*(\d+|"[^"\\]*")\s*\}\s*$/.exec(ends)
  return found?.[1] === undefined ? null : (JSON.parse(found[1]) as RequestId)
}
