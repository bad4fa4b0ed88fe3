import { readFileSync } from 'node:fs'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { before } from './before.ts'
import { boundedFetch } from './boundedFetch.ts'
import { most, type ProviderConfig } from './config.ts'
import { Program } from './program.ts'

/** A connection to a provider. */
export type Link = {
  readonly client: Client
  /** Ends it; a program that is faulty is not asked to end, but made to. */
  readonly end: (isFaulty: boolean) => Promise<void>
}

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string
}
const introduced = { name: 'threadkeep', title: 'Threadkeep', version }

/** Connects to a provider, starting it if it is a program; its environment is what its configuration gives it, PATH, HOME and the like. */
export async function openLink(config: ProviderConfig, signal: AbortSignal): Promise<Link> {
  return 'command' in config ? linkToProgram(config, signal) : linkToAddress(config, signal)
}

async function linkToProgram(config: Extract<ProviderConfig, { command: string }>, signal: AbortSignal): Promise<Link> {
  const program = new Program(config)
  // Programs speak the older protocol, too; to find out about the newer one would start each of them twice.
  const client = new Client(introduced)
  const end = async (isFaulty: boolean): Promise<void> => {
    await program.end(isFaulty)
    await client.close()
  }
  return connected({ client, end }, () => client.connect(program, { signal }), signal)
}

async function linkToAddress(
  { url, headers = {} }: Extract<ProviderConfig, { url: string }>,
  signal: AbortSignal,
): Promise<Link> {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: boundedFetch(most.bytes, signal),
  })
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
