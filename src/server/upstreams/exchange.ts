import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'

/** What a server has begun to answer. */
export type Begun = { readonly status: number; readonly headers: Readonly<Record<string, string>>; readonly body: Incoming }

/** The bytes of an answer as they come; whoever does not take them holds the sender back. */
type Incoming = AsyncIterable<Uint8Array> & {
  /** Lets go of the rest. */
  dump(): void
}

/** So much may lie here before the sender is held back. */
const highWater = 65_536

/**
 * One request to a server over a pool of connections. On the platform's streams the same would cost twice as much.
 * Rejects with what the pool reports when nothing has come back yet; after that the body does.
 */
export function exchange(pool: Dispatcher, options: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<Begun> {
  return new Promise((resolve, reject) => {
    const inflow = new Inflow(signal, reject)
    pool.dispatch(options, {
      onRequestStart: (controller) => inflow.start(controller),
      onResponseStart: (_, status, headers) => {
        // What comes before the answer itself, such as hints, is no answer.
        if (status >= 200) resolve({ status, headers: flat(headers), body: inflow })
      },
      onResponseData: (controller, chunk) => inflow.data(controller, chunk),
      onResponseEnd: () => inflow.end(undefined),
      onResponseError: (_, error) => inflow.end(error),
    })
  })
}

const flat = (headers: IncomingHttpHeaders): Record<string, string> => {
  const all: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) if (value !== undefined) all[name.toLowerCase()] = String(value)
  return all
}

class Inflow implements Incoming {
  private readonly signal: AbortSignal
  private readonly reject: (error: unknown) => void
  private controller: Dispatcher.DispatchController | undefined
  private chunks: Uint8Array[] = []
  private held = 0
  private over = false
  private error: Error | undefined
  private wake: (() => void) | undefined

  constructor(signal: AbortSignal, reject: (error: unknown) => void) {
    this.signal = signal
    this.reject = reject
    if (!signal.aborted) signal.addEventListener('abort', this.abort, { once: true })
  }

  private readonly abort = (): void => this.controller?.abort(abortedBy(this.signal))

  start(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    if (this.signal.aborted) this.abort()
  }

  data(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.chunks.push(chunk)
    this.held += chunk.length
    if (this.held > highWater) controller.pause()
    this.wake?.()
  }

  end(error: Error | undefined): void {
    this.signal.removeEventListener('abort', this.abort)
    this.over = true
    this.error = error
    // Once the answer has begun this changes nothing.
    if (error !== undefined) this.reject(error)
    this.wake?.()
  }

  dump(): void {
    this.chunks = []
    this.held = Number.NEGATIVE_INFINITY
    if (this.controller?.paused === true) this.controller.resume()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        if (this.chunks.length > 0) {
          const { chunks } = this
          this.chunks = []
          this.held = 0
          if (this.controller?.paused === true) this.controller.resume()
          yield chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks)
          continue
        }
        if (this.error !== undefined) throw this.error
        if (this.over) return
        await new Promise<void>((resolve) => {
          this.wake = resolve
        })
        this.wake = undefined
      }
    } finally {
      // Whoever stops taking wants no more of it.
      if (!this.over) this.controller?.abort(abortedBy(this.signal))
    }
  }
}

function abortedBy(signal: AbortSignal): Error {
  if (signal.aborted && signal.reason instanceof Error) return signal.reason
  return new DOMException('This is no longer wanted.', 'AbortError')
}
