import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import {
  Client,
  type FetchLike,
  type JSONRPCMessage,
  ReadBuffer,
  StreamableHTTPClientTransport,
  serializeMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import { getDefaultEnvironment } from '@modelcontextprotocol/client/stdio'
import type { Millis } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'
import { type ProviderConfig, providerLimits, rejectOnAbort } from './query.ts'

export type ProviderConnection = {
  readonly client: Client
  /** Closes the connection. With `kill`, a process is terminated at once instead of being asked to exit. */
  readonly close: (kill: boolean) => Promise<void>
}

type CommandConfig = Extract<ProviderConfig, { command: string }>
type UrlConfig = Extract<ProviderConfig, { url: string }>

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
const clientInfo = { name: 'threadkeep', title: 'Threadkeep', version }

/** Connects to a provider. A process gets the configured environment plus PATH, HOME and similar variables. */
export async function connectProvider(config: ProviderConfig, signal: AbortSignal): Promise<ProviderConnection> {
  return 'command' in config ? connectProcess(config, signal) : connectUrl(config, signal)
}

async function connectProcess(config: CommandConfig, signal: AbortSignal): Promise<ProviderConnection> {
  const process = new ProviderProcess(config)
  // No version negotiation: stdio servers accept the older protocol, and a probe would start each of them twice.
  const client = new Client(clientInfo)
  const close = async (kill: boolean): Promise<void> => {
    await process.end(kill)
    await client.close()
  }
  return connect({ client, close }, () => client.connect(process, { signal }), signal)
}

async function connectUrl({ url, headers = {} }: UrlConfig, signal: AbortSignal): Promise<ProviderConnection> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: createBoundedFetch(providerLimits.maxMessageBytes, signal),
  })
  const client = new Client(clientInfo, { versionNegotiation: { mode: 'auto' } })
  return connect({ client, close: () => client.close() }, () => client.connect(transport, { signal }), signal)
}

/** Closes the connection before rejecting if it cannot be established in time. */
async function connect(
  connection: ProviderConnection,
  establish: () => Promise<void>,
  signal: AbortSignal,
): Promise<ProviderConnection> {
  try {
    await rejectOnAbort(signal, establish())
    return connection
  } catch (error) {
    await connection.close(true).catch(() => undefined)
    throw error
  }
}

/** Wraps `fetch` so that a response body fails after `maxBytes`, and everything stops on abort. */
function createBoundedFetch(maxBytes: number, signal: AbortSignal): FetchLike {
  return async (url, init) => {
    const combined = init?.signal ? AbortSignal.any([init.signal, signal]) : signal
    const response = await fetch(url, { ...init, signal: combined })
    if (response.body === null) return response
    return new Response(response.body.pipeThrough(limitBytes(maxBytes)), {
      status: response.status,
      statusText: response.statusText,
      headers: response.headers,
    })
  }
}

function limitBytes(maxBytes: number): TransformStream<Uint8Array, Uint8Array> {
  let remaining = maxBytes
  return new TransformStream({
    transform(chunk, controller) {
      remaining -= chunk.length
      if (remaining < 0) controller.error(new MemoryError('upstream', `it sent more than ${maxBytes} bytes`))
      else controller.enqueue(chunk)
    },
  })
}

type Child = ChildProcessByStdio<Writable, Readable, null>

/** Time a process gets to exit after its stdin is closed, and after SIGTERM. */
const exitTimeouts: Readonly<Record<'stdinClosed' | 'sigterm', Millis>> = { stdinClosed: 2_000, sigterm: 500 }

/** Each process leads its own group, so that children of a wrapper such as a shell are killed with it. */
const hasProcessGroup = process.platform !== 'win32'

/** Stdio transport to a provider process. Unlike the SDK's, it kills the whole process group. */
class ProviderProcess implements Transport {
  onmessage?: (message: JSONRPCMessage) => void
  onerror?: (error: Error) => void
  onclose?: () => void
  readonly #config: CommandConfig
  readonly #readBuffer = new ReadBuffer({ maxBufferSize: providerLimits.maxMessageBytes })
  #child: Child | undefined
  #exit: Promise<unknown> = Promise.resolve()

  constructor(config: CommandConfig) {
    this.#config = config
  }

  async start(): Promise<void> {
    const { command, args = [], env = {} } = this.#config
    const child = spawn(command, args, {
      env: { ...getDefaultEnvironment(), ...env },
      stdio: ['pipe', 'pipe', 'ignore'],
      detached: hasProcessGroup,
      windowsHide: true,
    })
    const reportError = (error: Error): void => this.onerror?.(error)
    for (const emitter of [child, child.stdin, child.stdout]) emitter.on('error', reportError)
    child.stdout.on('data', (chunk: Buffer) => this.#receive(chunk))
    child.on('close', () => this.onclose?.())
    if (child.pid !== undefined) this.#trackExit(child)
    await once(child, 'spawn')
  }

  #trackExit(child: Child): void {
    const exited = new Promise((resolve) => child.once('exit', resolve))
    this.#child = child
    this.#exit = exited.then(() => {
      // The pid stays reserved for the group as long as the group has members.
      this.#signal('SIGKILL')
      this.#child = undefined
    })
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    if (this.#child === undefined) throw new Error('it has ended')
    this.#child.stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    return promise
  }

  close(): Promise<void> {
    return this.end(false)
  }

  /**
   * Ends the process and waits for its exit. With `kill`, it gets SIGTERM at once instead of time to exit by itself.
   */
  async end(kill: boolean): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    child.stdin.end()
    if (kill || !(await this.#exitsWithin(exitTimeouts.stdinClosed))) {
      this.#signal('SIGTERM')
      if (!(await this.#exitsWithin(exitTimeouts.sigterm))) this.#signal('SIGKILL')
    }
    await this.#exit
    // A child that left the process group may still hold the pipe open.
    child.stdout.destroy()
  }

  #receive(chunk: Buffer): void {
    try {
      this.#readBuffer.append(chunk)
    } catch (error) {
      this.onerror?.(error as Error)
      void this.end(true)
      return
    }
    for (;;) {
      try {
        const message = this.#readBuffer.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(error as Error)
      }
    }
  }

  #exitsWithin(timeout: Millis): Promise<boolean> {
    return Promise.race([this.#exit.then(() => true), delay(timeout, false, { ref: false })])
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    const pid = this.#child?.pid
    try {
      if (pid !== undefined) process.kill(hasProcessGroup ? -pid : pid, signal)
    } catch {
      // No process of the group is left.
    }
  }
}
