// The nine tools of the reference memory server, ours and its own, both over a pipe and with the same large graph.
// npm run bench -- mcp [--quick] [--folder DIR]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { openGraph } from '../src/graph/graph.ts'
import { takeIn } from '../src/graph/reference.ts'
import { syncFile } from '../src/stores/sqlite/connect.ts'
import { largeGraph, rareWords } from './mcp/graph.ts'
import { type Contenders, inTurn, median, report, timed } from './rounds.ts'

const { quick = false, folder = tmpdir() } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean' }, folder: { type: 'string' } },
}).values
const [entities, observations, rounds] = quick ? [1_000, 10, 3] : [10_000, 10, 9]
const [ours, peer] = ['threadkeep', 'server-memory'] as const
/** So many calls make a round; a server that is quick needs more of them to be told from the noise. */
const usual: Readonly<Record<string, number>> = { [ours]: 41, [peer]: 3 }

const own = mkdtempSync(join(folder, 'threadkeep-mcp-'))
const [store, file] = [`sqlite:${join(own, 'memory.db')}`, join(own, 'memory.jsonl')]

async function connected(args: readonly string[], env: Readonly<Record<string, string>>): Promise<Client> {
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

/** Calls in a second, one after the other as a model makes them, by the median of what they took. */
async function rate(
  client: Client,
  name: string,
  many: number,
  input: (call: number) => Record<string, unknown>,
): Promise<number> {
  const took: number[] = []
  for (let call = 0; call < many; call++) {
    const asked = { name, arguments: input(call) }
    took.push(
      await timed(async () => {
        const { isError, content } = await client.callTool(asked)
        if (isError === true) throw new Error(JSON.stringify(content))
      }),
    )
  }
  return 1_000 / median(took)
}

/** Each contender with its own client, asked the same. */
function contenders(
  clients: Readonly<Record<string, Client>>,
  tool: string,
  input: (round: number, call: number) => Record<string, unknown>,
  calls = usual,
): Contenders {
  return Object.fromEntries(
    Object.entries(clients).map(([name, client]) => [
      name,
      (round) => {
        // The reference leaves its file to be written by and by: nobody else should wait for that.
        syncFile(file)
        return rate(client, tool, calls[name] ?? 1, (call) => input(round, call))
      },
    ]),
  )
}

/** A graph that is read whole, and added to. */
type Whole = {
  readGraph(): Promise<unknown>
  addObservations(observations: readonly { entityName: string; contents: readonly string[] }[]): Promise<unknown>
}

/** Reads the whole graph after a write, and again, without a pipe: a client takes longer over such a text than either server. */
async function readWhole(entityName: string): Promise<void> {
  process.env.MEMORY_FILE_PATH = file
  const reference = (await import(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'))) as {
    readonly KnowledgeGraphManager: new (file: string) => Whole
  }
  // It is a server as soon as it is loaded.
  process.stdin.destroy()
  const own = await openGraph(store)
  const workspace = 'default'
  const wholes: Readonly<Record<string, Whole>> = {
    [ours]: {
      readGraph: () => own.nodes.readGraph(workspace),
      addObservations: (observations) => own.nodes.addObservations(workspace, observations),
    },
    [peer]: new reference.KnowledgeGraphManager(file),
  }
  const playing = (before: (whole: Whole, round: number) => Promise<unknown>): Contenders =>
    Object.fromEntries(
      Object.entries(wholes).map(([name, whole]) => [
        name,
        async (round) => {
          await before(whole, round)
          return 1_000 / (await timed(() => whole.readGraph()))
        },
      ]),
    )
  const anew = playing((whole, round) =>
    whole.addObservations([{ entityName, contents: [`noted before round ${round}`] }]),
  )
  report('reading the whole graph after a write, times a second', await inTurn(anew, rounds), [{ ours, peer }])
  report(
    'reading the whole graph again, times a second',
    await inTurn(
      playing((whole) => whole.readGraph()),
      rounds,
    ),
    [{ ours, peer }],
  )
  await own.close()
}

try {
  const graph = largeGraph(entities, observations)
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
    `taken in within ${Math.round(await timed(() => takeIn(target.nodes, 'default', text))).toLocaleString('en')} ms`,
  )
  await target.close()

  const clients = {
    [ours]: await connected(
      [fileURLToPath(new URL('../src/cli/main.ts', import.meta.url)), 'mcp', '--store', store],
      {},
    ),
    [peer]: await connected([fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-memory/dist/index.js'))], {
      MEMORY_FILE_PATH: file,
    }),
  }
  const nameOf = (place: number): string => graph.entities[(place * 7_919) % entities]?.name ?? ''
  const added = contenders(clients, 'add_observations', (round, call) => ({
    observations: [{ entityName: nameOf(round * 100 + call), contents: [`noted in round ${round}, call ${call}`] }],
  }))
  report('add_observations, calls a second', await inTurn(added, rounds), [{ ours, peer, atLeast: 100 }])
  const wordOf = (place: number): string => rareWords[(place * 7_919) % rareWords.length] as string
  const searched = contenders(clients, 'search_nodes', (round, call) => ({ query: wordOf(round * 100 + call) }))
  report('search_nodes, calls a second', await inTurn(searched, rounds), [{ ours, peer, atLeast: 10 }])
  const some = entities / 100
  // What one call has deleted no other finds.
  const namesOf = (at: number): readonly string[] =>
    graph.entities.slice(at * some, (at + 1) * some).map(({ name }) => name)
  const deleted = contenders(clients, 'delete_entities', (round) => ({ entityNames: namesOf(round) }), {
    [ours]: 1,
    [peer]: 1,
  })
  report(`delete_entities, ${some} at a time, calls a second`, await inTurn(deleted, rounds), [{ ours, peer }])
  await clients[peer].close()
  // It takes the letters of what was deleted out of its index, once for all of it.
  console.log(
    `\n${ours} closed after that within ${Math.round(await timed(() => clients[ours].close())).toLocaleString('en')} ms`,
  )
  await readWhole(nameOf(entities - 1))
} finally {
  rmSync(own, { recursive: true })
}
