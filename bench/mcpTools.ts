// The nine tools of the MCP reference memory server: Threadkeep compared with the reference, both over a pipe with the
// same graph.
// npm run bench -- mcp [--quick] [--folder DIR]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { openGraph } from '../src/graph/graph.ts'
import { importReferenceFile } from '../src/graph/reference.ts'
import { syncFile } from '../src/stores/sqlite/connect.ts'
import { createLargeGraph, rareWords } from './mcpGraph.ts'
import { type Contenders, measureInterleaved, measureMs, median, report } from './measure.ts'

const { quick = false, folder = tmpdir() } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean' }, folder: { type: 'string' } },
}).values
const [entities, observations, rounds] = quick ? [1_000, 10, 3] : [10_000, 10, 9]
const [ours, peer] = ['threadkeep', 'server-memory'] as const
/** Calls per round. A fast server needs more of them to rise above the noise. */
const defaultCalls: Readonly<Record<string, number>> = { [ours]: 41, [peer]: 3 }

const ownFolder = mkdtempSync(join(folder, 'threadkeep-mcp-'))
const [store, file] = [`sqlite:${join(ownFolder, 'memory.db')}`, join(ownFolder, 'memory.jsonl')]

async function connect(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Client> {
  const client = new Client({ name: 'bench', version: '1.0.0' })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [...args],
      env: { PATH: process.env.PATH ?? '', ...env },
      stderr: 'ignore',
    }),
  )
  return client
}

/** Returns calls per second, from the median time of sequential calls. */
async function measureCallRate(
  client: Client,
  name: string,
  calls: number,
  input: (call: number) => Record<string, unknown>,
): Promise<number> {
  const times: number[] = []
  for (let call = 0; call < calls; call++) {
    const request = { name, arguments: input(call) }
    times.push(
      await measureMs(async () => {
        const { isError, content } = await client.callTool(request)
        if (isError === true) throw new Error(JSON.stringify(content))
      }),
    )
  }
  return 1_000 / median(times)
}

/** Creates one contender per client, with the same calls. */
function createContenders(
  clients: Readonly<Record<string, Client>>,
  tool: string,
  input: (round: number, call: number) => Record<string, unknown>,
  calls = defaultCalls,
): Contenders {
  return Object.fromEntries(
    Object.entries(clients).map(([name, client]) => [
      name,
      (round) => {
        // The reference does not sync its file; sync it here so that the next contender does not pay for it.
        syncFile(file)
        return measureCallRate(client, tool, calls[name] ?? 1, (call) => input(round, call))
      },
    ]),
  )
}

/** Operations measured without a pipe. */
type GraphReader = {
  readGraph(): Promise<unknown>
  addObservations(observations: readonly { entityName: string; contents: readonly string[] }[]): Promise<unknown>
}

/**
 * Measures reading the whole graph after a write and again. Without a pipe, because a client needs longer to parse the
 * result than either server to produce it.
 */
async function reportFullReads(entityName: string): Promise<void> {
  process.env.MEMORY_FILE_PATH = file
  const reference = (await import(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'))) as {
    readonly KnowledgeGraphManager: new (file: string) => GraphReader
  }
  // Importing the module starts its server, which reads standard input.
  process.stdin.destroy()
  const graph = await openGraph(store)
  const workspace = 'default'
  const readers: Readonly<Record<string, GraphReader>> = {
    [ours]: {
      readGraph: () => graph.nodes.readGraph(workspace),
      addObservations: (observations) => graph.nodes.addObservations(workspace, observations),
    },
    [peer]: new reference.KnowledgeGraphManager(file),
  }
  const createReads = (prepare: (reader: GraphReader, round: number) => Promise<unknown>): Contenders =>
    Object.fromEntries(
      Object.entries(readers).map(([name, reader]) => [
        name,
        async (round) => {
          await prepare(reader, round)
          return 1_000 / (await measureMs(() => reader.readGraph()))
        },
      ]),
    )
  const afterWrite = createReads((reader, round) =>
    reader.addObservations([{ entityName, contents: [`noted before round ${round}`] }]),
  )
  report('reading the whole graph after a write, reads per second', await measureInterleaved(afterWrite, rounds), [
    { ours, peer },
  ])
  report(
    'reading the whole graph again, reads per second',
    await measureInterleaved(
      createReads((reader) => reader.readGraph()),
      rounds,
    ),
    [{ ours, peer }],
  )
  await graph.close()
}

try {
  const graph = createLargeGraph(entities, observations)
  const lines = [
    ...graph.entities.map((node) => ({ type: 'entity', ...node })),
    ...graph.relations.map((link) => ({ type: 'relation', ...link })),
  ]
  const text = lines.map((line) => JSON.stringify(line)).join('\n')
  writeFileSync(file, text)
  const target = await openGraph(store)
  console.log(
    `${entities.toLocaleString('en')} entities with ${observations} observations each, ${(text.length / 1e6).toFixed(1)} MB of JSON Lines`,
  )
  console.log(
    `imported in ${Math.round(await measureMs(() => importReferenceFile(target.nodes, 'default', file))).toLocaleString('en')} ms`,
  )
  await target.close()

  const clients = {
    [ours]: await connect([fileURLToPath(new URL('../src/cli/main.ts', import.meta.url)), 'mcp', '--store', store], {}),
    [peer]: await connect([fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'))], {
      MEMORY_FILE_PATH: file,
    }),
  }
  const nameAt = (index: number): string => graph.entities[(index * 7_919) % entities]?.name ?? ''
  const added = createContenders(clients, 'add_observations', (round, call) => ({
    observations: [{ entityName: nameAt(round * 100 + call), contents: [`noted in round ${round}, call ${call}`] }],
  }))
  report('add_observations, calls per second', await measureInterleaved(added, rounds), [{ ours, peer, atLeast: 100 }])
  const wordAt = (index: number): string => rareWords[(index * 7_919) % rareWords.length] as string
  const searched = createContenders(clients, 'search_nodes', (round, call) => ({ query: wordAt(round * 100 + call) }))
  report('search_nodes, calls per second', await measureInterleaved(searched, rounds), [{ ours, peer, atLeast: 10 }])
  const batchSize = entities / 100
  // Each call deletes another batch.
  const namesInBatch = (batch: number): readonly string[] =>
    graph.entities.slice(batch * batchSize, (batch + 1) * batchSize).map(({ name }) => name)
  const deleted = createContenders(clients, 'delete_entities', (round) => ({ entityNames: namesInBatch(round) }), {
    [ours]: 1,
    [peer]: 1,
  })
  report(`delete_entities, ${batchSize} at a time, calls per second`, await measureInterleaved(deleted, rounds), [
    { ours, peer },
  ])
  await clients[peer].close()
  // Closing removes the deleted text from the index, once for all deletions.
  console.log(`\n${ours} closed in ${Math.round(await measureMs(() => clients[ours].close())).toLocaleString('en')} ms`)
  await reportFullReads(nameAt(entities - 1))
} finally {
  rmSync(ownFolder, { recursive: true })
}
