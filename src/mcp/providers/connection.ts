import { readFileSync } from 'node:fs'
import { Client, type FetchLike, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { MemoryError } from '../../domain/error.ts'
import { type ProviderConfig, providerLimits } from './config.ts'
import { ProviderProcess } from './process.ts'
import { rejectOnAbort } from './query.ts'

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
