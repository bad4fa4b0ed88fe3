import { isAscii } from 'node:buffer'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'

type Headers = Readonly<Record<string, string>>

/** An answer so short goes out with its headers in one string: the platform writes one thing where it would write a list of two. */
const short = 12_288

/**
 * The client's side of an exchange. What it is told in headers is collected, and goes out with those of the answer as one
 * flat list: one by one they would cost the platform twice as much.
 */
export class Client {
  private readonly outgoing: ServerResponse
  private readonly hungUp = new AbortController()
  /** Names and values. */
  private told: string[] = []

  constructor(outgoing: ServerResponse) {
    this.outgoing = outgoing
  }

  /** Tells that the client has hung up. */
  get signal(): AbortSignal {
    return this.hungUp.signal
  }

  /** Whether it is too late for another answer. */
  get hasBegun(): boolean {
    return this.outgoing.headersSent
  }

  /** The platform's own response, with all the headers told so far, for whoever answers by himself. */
  get response(): ServerResponse {
    const { told, outgoing } = this
    for (let place = 0; place < told.length; place += 2)
      outgoing.setHeader(told[place] as string, told[place + 1] as string)
    this.told = []
    return outgoing
  }

  hangUp(): void {
    this.hungUp.abort()
  }

  /** Has a header go out with whatever is answered; each is told once. */
  tell(name: string, value: string): void {
    this.told.push(name, value)
  }

  /** Takes back what was told. */
  untell(name: string): void {
    // Values are the client's to choose, in part: one of them may read like a name.
    for (let place = this.told.length - 2; place >= 0; place -= 2)
      if (this.told[place] === name) this.told.splice(place, 2)
  }

  begin(status: number, headers: Headers): void {
    this.outgoing.writeHead(status, this.allWith(headers))
    this.told = []
  }

  /** Answers with what is all here. */
  answer(status: number, headers: Headers, bytes: Buffer): void {
    this.begin(status, { ...headers, 'content-length': String(bytes.length) })
    if (bytes.length <= short && isAscii(bytes)) this.outgoing.end(bytes.toString('latin1'), 'latin1')
    else this.outgoing.end(bytes)
  }

  /** Passes bytes on, and tells whether the client takes more of them at once. */
  write(bytes: Uint8Array | string): boolean {
    this.signal.throwIfAborted()
    return this.outgoing.write(bytes)
  }

  /** Resolves when the client takes more. */
  drained(): Promise<unknown> {
    return once(this.outgoing, 'drain', { signal: this.signal })
  }

  end(): void {
    this.outgoing.end()
  }

  /** Ends what cannot be brought to its end. */
  breakOff(): void {
    this.outgoing.destroy()
  }

  /** A list of its own: where the platform refuses it, what was told goes out with the error. */
  private allWith(headers: Headers): string[] {
    const all = [...this.told]
    for (const name in headers) all.push(name, headers[name] as string)
    return all
  }
}
