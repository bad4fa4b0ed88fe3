import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Millis } from '../../domain/entry.ts'
import type { BufferedBody } from './backend.ts'

/** Response whose headers have arrived. */
export type RawResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: ResponseBody
}

/** Body with backpressure: the sender is paused while too many bytes are unread. */
type ResponseBody = AsyncIterable<Uint8Array> & BufferedBody

/** Time limit for a whole response, its error, and the conversion of errors that occur after the headers. */
export type Deadline = {
  readonly total: Millis
  readonly createError: () => Error
  readonly convertError: (error: Error) => unknown
}

/** Unread bytes above which the sender is paused. */
const highWaterMarkBytes = 65_536
const once = { once: true }

/**
 * Sends one request through a connection pool. Measured: Node's streams would cost twice as much. Rejects with the
 * error of the pool if it occurs before the response headers; later errors are thrown by the body.
 */
export function dispatchRequest(
  pool: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
  deadline?: Deadline,
): Promise<RawResponse> {
  return new Promise((resolve, reject) => {
    pool.dispatch(options, new ResponseBuffer(signal, resolve, reject, deadline))
  })
}

/** Converts header values to strings; repeated headers are joined with commas. */
function flattenHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const flat: Record<string, string> = {}
  for (const name in headers) if (headers[name] !== undefined) flat[name] = String(headers[name])
  return flat
}

/** Dispatch handler and body in one. It is its own iterator: a generator would create three promises per chunk. */
class ResponseBuffer implements ResponseBody, AsyncIterator<Uint8Array>, Dispatcher.DispatchHandler {
  private readonly signal: AbortSignal
  private readonly resolve: (response: RawResponse) => void
  private readonly reject: (error: unknown) => void
  private readonly deadline: Deadline | undefined
  private readonly timer: NodeJS.Timeout | undefined
  private controller: Dispatcher.DispatchController | undefined
  private chunks: Uint8Array[] = []
  private bufferedBytes = 0
  private ended = false
  private error: Error | undefined
  /** Reason of the abort, kept until the request has a connection. */
  private abortReason: Error | undefined
  private wake: (() => void) | undefined

  constructor(
    signal: AbortSignal,
    resolve: (response: RawResponse) => void,
    reject: (error: unknown) => void,
    deadline: Deadline | undefined,
  ) {
    this.signal = signal
    this.resolve = resolve
    this.reject = reject
    this.deadline = deadline
    this.timer = deadline && setTimeout(() => this.abort(deadline.createError()), deadline.total).unref()
    if (signal.aborted) this.onAbort()
    else signal.addEventListener('abort', this.onAbort, once)
  }

  private readonly onAbort = (): void => this.abort(toAbortError(this.signal))

  private abort(reason: Error): void {
    this.abortReason = reason
    this.controller?.abort(reason)
    // Without a connection there is nothing to close yet; onRequestStart aborts one that is established later.
    this.reject(reason)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.abortReason !== undefined) controller.abort(this.abortReason)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // Informational responses (1xx) precede the actual response.
    if (status >= 200) this.resolve({ status, headers: flattenHeaders(headers), body: this })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.chunks.push(chunk)
    this.bufferedBytes += chunk.length
    if (this.bufferedBytes > highWaterMarkBytes) controller.pause()
    this.wake?.()
  }

  onResponseEnd(): void {
    this.end(undefined)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.end(error)
    // No effect if the promise has already been resolved with the headers.
    this.reject(error)
  }

  private end(error: Error | undefined): void {
    clearTimeout(this.timer)
    this.signal.removeEventListener('abort', this.onAbort)
    this.ended = true
    this.error = error
    this.wake?.()
  }

  discard(): void {
    if (!this.ended) this.controller?.abort(toAbortError(this.signal))
  }

  takeComplete(): Uint8Array | undefined {
    return this.ended && this.error === undefined ? this.takeBuffered() : undefined
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const available = this.waitForData()
    if (available !== undefined) await available
    const value = this.takeAvailable()
    return value === undefined ? { value, done: true } : { value, done: false }
  }

  waitForData(): Promise<void> | undefined {
    if (this.chunks.length > 0 || this.ended) return undefined
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  takeAvailable(): Uint8Array | undefined {
    const { error } = this
    if (this.chunks.length > 0) return this.takeBuffered()
    if (error !== undefined) throw this.deadline?.convertError(error) ?? error
    return undefined
  }

  private takeBuffered(): Uint8Array {
    const { chunks } = this
    this.chunks = []
    this.bufferedBytes = 0
    if (this.controller?.paused === true) this.controller.resume()
    return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)
  }

  /** Closes the connection when the consumer stops iterating. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.discard()
    return { value: undefined, done: true }
  }
}

function toAbortError(signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason
  return new DOMException('The request was aborted.', 'AbortError')
}
