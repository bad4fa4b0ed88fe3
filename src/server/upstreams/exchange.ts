import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Millis } from '../../domain/entry.ts'
import type { Gathered } from './backend.ts'

/** What a server has begun to answer. */
export type Begun = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Incoming
}

/** The bytes of an answer as they come; whoever does not take them holds the sender back. */
type Incoming = AsyncIterable<Uint8Array> & Gathered

/** How long an answer may take in all, and what its errors are told as once it has begun. */
export type Terms = { readonly total: Millis; readonly late: () => Error; readonly explain: (error: Error) => unknown }

/** So much may lie here before the sender is held back. */
const highWater = 65_536
const once = { once: true }

/**
 * One request to a server over a pool of connections. On the platform's streams the same would cost twice as much.
 * Rejects with what the pool reports when nothing has come back yet; after that the body does.
 */
export function exchange(
  pool: Dispatcher,
  options: Dispatcher.DispatchOptions,
  signal: AbortSignal,
  terms?: Terms,
): Promise<Begun> {
  return new Promise((resolve, reject) => {
    pool.dispatch(options, new Inflow(signal, resolve, reject, terms))
  })
}

/** Headers come in small letters; those that come more than once are one. */
function flat(headers: IncomingHttpHeaders): Record<string, string> {
  const all: Record<string, string> = {}
  for (const name in headers) if (headers[name] !== undefined) all[name] = String(headers[name])
  return all
}

/** What the pool reports, and its own iterator, because a generator would make three promises of each piece. */
class Inflow implements Incoming, AsyncIterator<Uint8Array>, Dispatcher.DispatchHandler {
  private readonly signal: AbortSignal
  private readonly resolve: (begun: Begun) => void
  private readonly reject: (error: unknown) => void
  private readonly terms: Terms | undefined
  private readonly timer: NodeJS.Timeout | undefined
  private controller: Dispatcher.DispatchController | undefined
  private chunks: Uint8Array[] = []
  private held = 0
  private over = false
  private error: Error | undefined
  /** Why nobody wants it any more. */
  private stopped: Error | undefined
  private wake: (() => void) | undefined

  constructor(
    signal: AbortSignal,
    resolve: (begun: Begun) => void,
    reject: (error: unknown) => void,
    terms: Terms | undefined,
  ) {
    this.signal = signal
    this.resolve = resolve
    this.reject = reject
    this.terms = terms
    this.timer = terms && setTimeout(() => this.stop(terms.late()), terms.total).unref()
    if (signal.aborted) this.abort()
    else signal.addEventListener('abort', this.abort, once)
  }

  private readonly abort = (): void => this.stop(abortedBy(this.signal))

  private stop(why: Error): void {
    this.stopped = why
    this.controller?.abort(why)
    // Without a connection there is nothing to close yet, and nothing to wait for; one that comes later is closed when the request starts.
    this.reject(why)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.stopped !== undefined) controller.abort(this.stopped)
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    // What comes before the answer itself, such as hints, is no answer.
    if (status >= 200) this.resolve({ status, headers: flat(headers), body: this })
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.chunks.push(chunk)
    this.held += chunk.length
    if (this.held > highWater) controller.pause()
    this.wake?.()
  }

  onResponseEnd(): void {
    this.end(undefined)
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.end(error)
    // Once the answer has begun this changes nothing.
    this.reject(error)
  }

  private end(error: Error | undefined): void {
    clearTimeout(this.timer)
    this.signal.removeEventListener('abort', this.abort)
    this.over = true
    this.error = error
    this.wake?.()
  }

  dump(): void {
    if (!this.over) this.controller?.abort(abortedBy(this.signal))
  }

  takeWhole(): Uint8Array | undefined {
    return this.over && this.error === undefined ? this.take() : undefined
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    const coming = this.arrival()
    if (coming !== undefined) await coming
    const value = this.takeNext()
    return value === undefined ? { value, done: true } : { value, done: false }
  }

  arrival(): Promise<void> | undefined {
    if (this.chunks.length > 0 || this.over) return undefined
    return new Promise((resolve) => {
      this.wake = resolve
    })
  }

  takeNext(): Uint8Array | undefined {
    const { error } = this
    if (this.chunks.length > 0) return this.take()
    if (error !== undefined) throw this.terms?.explain(error) ?? error
    return undefined
  }

  private take(): Uint8Array {
    const { chunks } = this
    this.chunks = []
    this.held = 0
    if (this.controller?.paused === true) this.controller.resume()
    return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)
  }

  /** Whoever stops taking wants no more of it. */
  async return(): Promise<IteratorResult<Uint8Array, undefined>> {
    this.dump()
    return { value: undefined, done: true }
  }
}

function abortedBy(signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason
  return new DOMException('This is no longer wanted.', 'AbortError')
}
