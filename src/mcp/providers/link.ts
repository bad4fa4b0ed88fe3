import { readFileSync } from 'node:fs'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { before } from './before.ts'
import { boundedFetch } from './boundedFetch.ts'
import { most, type ProviderConfig } from './config.ts'

/** A connection to a provider. */
export type Link = {
  readonly client: Client
  /** Ends it; a program that is faulty is not asked to end, but made to. */
  readonly end: (isFaulty: boolean) => Promise<void>
}

/** Asked to end, a faulty program has so long before it is ended. */
const grace = 500

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as { version: string }
const introduced = { name: 'threadkeep', title: 'Threadkeep', version }

/** Connects to a provider, starting it if it is a program; its environment is what its configuration gives it, PATH, HOME and the like. */
export async function openLink(config: ProviderConfig, signal: AbortSignal): Promise<Link> {
  return 'command' in config ? linkToProgram(config, signal) : linkToAddress(config, signal)
}

async function linkToProgram({ command, args = [], env = {} }: Extract<ProviderConfig, { command: string }>, signal: AbortSignal): Promise<Link> {
  const transport = new Program({ command, args: [...args], env, stderr: 'ignore', maxBufferSize: most.bytes })
  // Programs speak the older protocol, too; to find out about the newer one would start each of them twice.
  const client = new Client(introduced)
  client.onclose = () => transport.forget()
  const end = async (isFaulty: boolean): Promise<void> => {
    if (isFaulty) transport.force()
    await client.close()
  }
  return connected({ client, end }, () => client.connect(transport, { signal }), signal)
}

/** A program that can be made to end: one that floods would go on for seconds if it were asked first. */
class Program extends StdioClientTransport {
  #running: number | undefined

  override async start(): Promise<void> {
    await super.start()
    this.#running = this.pid ?? undefined
  }

  /** It is gone, and its number may be another's. */
  forget(): void {
    this.#running = undefined
  }

  /** A starter such as npx passes the first signal on to what it started; nothing survives the second. */
  force(): void {
    this.#signal('SIGTERM')
    setTimeout(() => this.#signal('SIGKILL'), grace).unref()
  }

  #signal(signal: 'SIGTERM' | 'SIGKILL'): void {
    try {
      if (this.#running !== undefined) process.kill(this.#running, signal)
    } catch {
      // it is gone already
    }
  }
}

async function linkToAddress({ url, headers = {} }: Extract<ProviderConfig, { url: string }>, signal: AbortSignal): Promise<Link> {
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { ...headers } }, fetch: boundedFetch(most.bytes, signal) })
  const client = new Client(introduced, { versionNegotiation: { mode: 'auto' } })
  return connected({ client, end: () => client.close() }, () => client.connect(transport, { signal }), signal)
}

/** A connection, once it is made; what cannot be made in time is at its end before anybody is told. */
async function connected(link: Link, connect: () => Promise<void>, signal: AbortSignal): Promise<Link> {
  try {
    await before(signal, connect())
    return link
  } catch (error) {
    await link.end(true).catch(() => undefined)
    throw error
  }
}
