import { ReplyTimeoutError } from './clientTransport.ts'
import type { RedisTransport, Reply } from './transport.ts'

type Pending = {
  readonly command: readonly string[]
  resolve(reply: Reply): void
  reject(error: unknown): void
}
type RestResult = { readonly result?: Reply; readonly error?: string }

/** Commands per request. */
const maxCommandsPerRequest = 64

/**
 * Speaks the REST protocol of Upstash: a list of commands is posted to `/pipeline`, with a bearer token. Commands of
 * the same turn of the event loop share a request. It cannot listen to channels.
 */
export class RestTransport implements RedisTransport {
  readonly address: string
  onConnect = (): void => undefined
  readonly #url: string
  readonly #token: string
  readonly #timeoutMs: number
  #pending: Pending[] = []

  constructor(address: string, { url, token }: { readonly url: string; readonly token: string }, timeoutMs: number) {
    this.address = address
    this.#url = `${url}/pipeline`
    this.#token = token
    this.#timeoutMs = timeoutMs
  }

  send(_: string, command: readonly string[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ command, resolve, reject })
      if (this.#pending.length === 1) setImmediate(() => this.#flush())
    })
  }

  async sendToAll(command: readonly string[]): Promise<readonly Reply[]> {
    return [await this.send('', command)]
  }

  async subscribe(): Promise<boolean> {
    return false
  }

  async close(): Promise<void> {
    return undefined
  }

  #flush(): void {
    const pending = this.#pending
    this.#pending = []
    for (let from = 0; from < pending.length; from += maxCommandsPerRequest)
      void this.#post(pending.slice(from, from + maxCommandsPerRequest))
  }

  async #post(batch: readonly Pending[]): Promise<void> {
    try {
      const results = await this.#request(batch.map(({ command }) => command))
      batch.forEach(({ resolve, reject }, index) => {
        const { result = null, error } = results[index] ?? { error: 'ERR no result' }
        if (error === undefined) resolve(result)
        else reject(new Error(error))
      })
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  async #request(commands: readonly (readonly string[])[]): Promise<readonly RestResult[]> {
    const signal = AbortSignal.timeout(this.#timeoutMs)
    try {
      const response = await fetch(this.#url, {
        method: 'POST',
        headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
        body: JSON.stringify(commands),
        signal,
      })
      const body = (await response.json()) as readonly RestResult[] | RestResult
      if (response.ok && Array.isArray(body)) return body as readonly RestResult[]
      if (response.status === 401 || response.status === 403) throw new Error('WRONGPASS the token was refused')
      throw new Error(`HTTP status ${response.status}`)
    } catch (error) {
      throw signal.aborted ? new ReplyTimeoutError('no reply') : error
    }
  }
}
