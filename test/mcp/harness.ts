import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type CallToolResult,
  Client,
  StreamableHTTPClientTransport,
  type Transport,
} from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { Credentials } from '../../src/server/auth/credentials.ts'
import { type Config, parseConfig } from '../../src/server/config/schema.ts'
import { resolveServerConfig } from '../../src/server/config/serverConfig.ts'
import { mergeSettings, toConfigSource } from '../../src/server/config/settings.ts'
import { openServer } from '../../src/server/openServer.ts'
import { compileCacheEnv } from '../cli/command.ts'
import { root } from '../shape/source.ts'

/** Protocol versions in use: the stateless one, and two with a handshake. */
export const protocols = ['2026-07-28', '2025-11-25', '2025-06-18'] as const
export type Protocol = (typeof protocols)[number]

export type ConnectedClient = AsyncDisposable & { readonly client: Client; close(): Promise<void> }

/** Creates a client that supports only one protocol version. */
const createClient = (protocol: Protocol): Client =>
  new Client(
    { name: 'a-client', version: '1.0.0' },
    protocol === '2026-07-28'
      ? { versionNegotiation: { mode: { pin: protocol } } }
      : { supportedProtocolVersions: [protocol] },
  )

async function connectClient(client: Client, transport: Transport): Promise<ConnectedClient> {
  await client.connect(transport)
  const close = (): Promise<void> => client.close()
  return { client, close, [Symbol.asyncDispose]: close }
}

/** Starts `threadkeep mcp` and connects a client. The store is in RAM unless the arguments name another. */
export function connectStdio(
  protocol: Protocol = '2026-07-28',
  args: readonly string[] = ['--store', 'ram:'],
  env: Readonly<Record<string, string>> = {},
  cwd: string = tmpdir(),
) {
  const command = {
    command: process.execPath,
    args: [`${root}src/cli/main.ts`, 'mcp', ...args],
    env: { PATH: process.env.PATH ?? '', ...compileCacheEnv, ...env },
    cwd,
  }
  return connectClient(createClient(protocol), new StdioClientTransport({ ...command, stderr: 'ignore' }))
}

/** Connects a client to `/mcp` of a running server. */
export function connectHttp(url: string, protocol: Protocol = '2026-07-28', key?: string) {
  const requestInit = key === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${key}` } } }
  return connectClient(createClient(protocol), new StreamableHTTPClientTransport(new URL(`${url}/mcp`), requestInit))
}

export type TestServer = AsyncDisposable & {
  readonly url: string
  /** One key per list of scopes given to `startTestServer`; without keys, no authentication is required. */
  readonly keys: readonly string[]
  revoke(key: string | undefined): Promise<unknown>
}

/** Starts a server on a free port with a store in RAM. */
export async function startTestServer(
  keyScopes: readonly (readonly string[])[] = [],
  mcp: Config['mcp'] = {},
): Promise<TestServer> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-mcp-'))
  const file = join(folder, 'keys.json')
  const credentials = new Credentials(file, { fileExpected: false, onFault: () => undefined })
  const keys: string[] = []
  const ids = new Map<string | undefined, string>()
  for (const scopes of keyScopes) {
    const { key, credential } = await credentials.create({ scopes }, Date.now())
    keys.push(key)
    ids.set(key, credential.id)
  }
  const config: Config = {
    listen: { port: 0 },
    store: 'ram:',
    keys: { file, required: false },
    mcp: { ...mcp, audit: join(folder, 'audit.jsonl') },
  }
  const given = toConfigSource(parseConfig(config), 'file')
  const server = await openServer(resolveServerConfig(mergeSettings([given], undefined), {}))
  return {
    url: server.url,
    keys,
    revoke: (key) => credentials.revoke(ids.get(key) ?? '', Date.now()),
    [Symbol.asyncDispose]: async () => {
      await server.close(1_000)
      rmSync(folder, { recursive: true })
    },
  }
}

/** Joins the text blocks of a tool result. */
export const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === 'text' ? block.text : block.type)).join('\n')
