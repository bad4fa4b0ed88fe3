import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { afterAll, describe, expect, it } from 'vitest'
import { registeredTools } from '../../src/mcp/tools/registry.ts'
import { compileCacheEnv } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { root } from '../shape/source.ts'
import { connectStdio } from './harness.ts'

const page = readFileSync(`${root}docs/mcp.md`, 'utf8')
const folder = mkdtempSync(join(tmpdir(), 'threadkeep-mcp-docs-'))
afterAll(() => rmSync(folder, { recursive: true }))

type Block = { readonly language: string; readonly text: string }
const blocks: readonly Block[] = [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({
  language,
  text,
}))

type Entry = {
  readonly name: string
  readonly command?: string
  readonly args?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Parses the servers of a configuration in JSON, TOML or YAML. */
function parseEntries({ language, text }: Block): readonly Entry[] {
  if (language === 'toml') return [{ name: /^\[mcp_servers\.(\w+)\]$/m.exec(text)?.[1] ?? '', ...parseToml(text) }]
  if (language === 'yaml') return [parseYaml(text)]
  const { mcpServers, servers } = JSON.parse(text) as Readonly<
    Record<string, Readonly<Record<string, Omit<Entry, 'name'>>> | undefined>
  >
  return Object.entries(mcpServers ?? servers ?? {}).map(([name, entry]) => ({ name, ...entry }))
}

/** TOML strings and lists of strings have the syntax of JSON. */
const parseToml = (text: string): Partial<Entry> =>
  Object.fromEntries(
    [...text.matchAll(/^(\w+) = (.+)$/gm)].map(([, name = '', value = '']) => [name, JSON.parse(value)]),
  )

/** Parses a list with one server, the format of Continue. */
function parseYaml(text: string): Entry {
  const top = Object.fromEntries(
    [...text.matchAll(/^(\w+): (.+)$/gm)].map(([, name = '', value = '']) => [name, value]),
  )
  expect(top).toEqual({ name: 'Threadkeep', version: '0.0.1', schema: 'v1' })
  const field = (name: string): string => new RegExp(`^(?:  - |    )${name}: (.+)$`, 'm').exec(text)?.[1] ?? ''
  return {
    name: field('name'),
    command: field('command'),
    args: [...text.matchAll(/^ {6}- (".*")$/gm)].map(([, value = '']) => JSON.parse(value)),
  }
}

/** Starts the command of an entry from this checkout and lists its tools. */
async function listToolsOf({ command, args = [], env = {} }: Entry): Promise<readonly string[]> {
  expect([command, ...args.slice(0, 3)]).toEqual(['npx', '-y', 'threadkeep', 'mcp'])
  const ownArgs = args.slice(3).map((text) => text.replace(/\$\{workspaceFolder\}/, folder))
  const ownEnv = Object.fromEntries(Object.entries(env).map(([name, text]) => [name, text.replace('/path/to', folder)]))
  const options = {
    command: process.execPath,
    args: [`${root}src/cli/main.ts`, 'mcp', ...ownArgs],
    cwd: folder,
    stderr: 'ignore' as const,
  }
  const client = new Client({ name: 'docs', version: '1.0.0' })
  await client.connect(
    new StdioClientTransport({
      ...options,
      env: { PATH: process.env.PATH ?? '', HOME: folder, ...compileCacheEnv, ...ownEnv },
    }),
  )
  try {
    return (await client.listTools()).tools.map(({ name }) => name)
  } finally {
    await client.close()
  }
}

describe('docs/mcp.md', () => {
  verifies('S-04', 'has client configurations that start the server', async () => {
    writeFileSync(
      join(folder, 'memory.jsonl'),
      '{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea"]}\n',
    )
    const local = blocks.flatMap(parseEntries).filter(({ command }) => command !== undefined)
    expect(local.map(({ name }) => name)).toEqual([...Array.from({ length: 6 }, () => 'threadkeep'), 'memory'])
    // Clients differ in the format of the configuration; equal commands are started once.
    const commands = new Map(local.map((entry) => [JSON.stringify([entry.command, entry.args, entry.env]), entry]))
    for (const command of commands.values())
      expect(await listToolsOf(command)).toEqual(registeredTools.map(({ name }) => name))
    await using connection = await connectStdio('2026-07-28', ['--store', `sqlite:${join(folder, 'threadkeep.db')}`])
    expect((await connection.client.callTool({ name: 'read_graph' })).structuredContent).toMatchObject({
      entities: [{ name: 'Ann' }],
    })
  })

  it('has the configurations of examples/mcp', () => {
    const files = [
      'claude-desktop.json',
      'claude-code.json',
      'cursor.json',
      'vscode.json',
      'codex.toml',
      'continue.yaml',
    ]
    expect(readdirSync(`${root}examples/mcp`).sort()).toEqual(files.toSorted())
    expect(blocks.slice(0, 6).map(({ text }) => text)).toEqual(
      files.map((name) => readFileSync(`${root}examples/mcp/${name}`, 'utf8')),
    )
  })

  it('lists every tool with the first sentence of its description', () => {
    const rows = registeredTools.map(
      ({ name, description }) => `| \`${name}\` | ${description.split(/(?<=[.!?])\s|\n/)[0]?.replace(/\.$/, '')} |`,
    )
    const [, table = ''] = /^\| Tool \| What it does \|\n\|---\|---\|\n((?:\|.*\n)*)/m.exec(page) ?? []
    expect(table.trimEnd().split('\n')).toEqual(rows)
  })
})

describe('server.json', () => {
  type Manifest = { readonly name: string; readonly version: string; readonly mcpName: string }
  const manifest = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as Manifest
  const server = JSON.parse(readFileSync(`${root}server.json`, 'utf8'))

  it('names the published package and its version', () => {
    expect([server.version, server.packages[0].version, server.packages[0].identifier]).toEqual([
      manifest.version,
      manifest.version,
      manifest.name,
    ])
    // The registry requires that the package names the server.
    expect(server.name).toBe(manifest.mcpName)
  })

  it('follows the rules of the registry', () => {
    expect(server.$schema).toBe('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json')
    expect(server.name).toMatch(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/)
    expect(server.description.length).toBeLessThanOrEqual(100)
    expect(server.packages[0]).toMatchObject({ registryType: 'npm', runtimeHint: 'npx', transport: { type: 'stdio' } })
  })
})
