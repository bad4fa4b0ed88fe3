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
import { planOf } from '../../src/server/config/plan.ts'
import { type Config, parseConfig } from '../../src/server/config/schema.ts'
import { givenIn, settle } from '../../src/server/config/settings.ts'
import { openServer } from '../../src/server/openServer.ts'
import { compiled } from '../cli/command.ts'
import { root } from '../shape/source.ts'

/** The versions of the protocol that clients speak today: the stateless one, and those with a handshake. */
export const protocols = ['2026-07-28', '2025-11-25', '2025-06-18'] as const
export type Protocol = (typeof protocols)[number]

export type Connected = AsyncDisposable & { readonly client: Client; close(): Promise<void> }

/** A client that speaks this version and no other. */
const clientOf = (protocol: Protocol): Client =>
  new Client(
    { name: 'a-client', version: '1.0.0' },
    protocol === '2026-07-28'
      ? { versionNegotiation: { mode: { pin: protocol } } }
      : { supportedProtocolVersions: [protocol] },
  )

async function connected(client: Client, transport: Transport): Promise<Connected> {
  await client.connect(transport)
  const close = (): Promise<void> => client.close()
  return { client, close, [Symbol.asyncDispose]: close }
}

/** A client of the real command; memory is gone with it unless the arguments say where to keep it. */
export function overStdio(
  protocol: Protocol = '2026-07-28',
  args: readonly string[] = ['--store', 'ram:'],
  env: Readonly<Record<string, string>> = {},
  cwd: string = tmpdir(),
) {
  const command = {
    command: process.execPath,
    args: [`${root}src/cli/main.ts`, 'mcp', ...args],
    env: { PATH: process.env.PATH ?? '', ...compiled, ...env },
    cwd,
  }
  return connected(clientOf(protocol), new StdioClientTransport({ ...command, stderr: 'ignore' }))
}

/** A client of a server at `/mcp`. */
export function overHttp(url: string, protocol: Protocol = '2026-07-28', key?: string) {
  const requestInit = key === undefined ? {} : { requestInit: { headers: { authorization: `Bearer ${key}` } } }
  return connected(clientOf(protocol), new StreamableHTTPClientTransport(new URL(`${url}/mcp`), requestInit))
}

export type Served = AsyncDisposable & {
  readonly url: string
  /** A key for each list of scopes that was wanted; where there are none, nobody needs one. */
  readonly keys: readonly string[]
  /** Takes back a key, as whoever runs the server does. */
  revoke(key: string | undefined): Promise<unknown>
}

/** The real server, on a free port and in RAM. */
export async function startMcp(wanted: readonly (readonly string[])[] = [], mcp: Config['mcp'] = {}): Promise<Served> {
  const folder = mkdtempSync(join(tmpdir(), 'threadkeep-mcp-'))
  const file = join(folder, 'keys.json')
  const credentials = new Credentials(file, { isExpected: false, onFault: () => undefined })
  const keys: string[] = []
  const ids = new Map<string | undefined, string>()
  for (const scopes of wanted) {
    const { key, credential } = await credentials.create({ scopes }, Date.now())
    keys.push(key)
    ids.set(key, credential.id)
  }
  const inRam: Config = {
    listen: { port: 0 },
    store: 'ram:',
    keys: { file, required: false },
    mcp: { ...mcp, audit: join(folder, 'audit.jsonl') },
  }
  const given = givenIn(parseConfig(inRam), 'file')
  const server = await openServer(planOf(settle([given], undefined), {}))
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

/** What a tool says in words. */
export const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === 'text' ? block.text : block.type)).join('\n')
