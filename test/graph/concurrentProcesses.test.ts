import { describe, expect } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { examineFile } from '../../src/stores/sqlite/repair.ts'
import { startProgram } from '../cli/command.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { getPostgres } from '../support/postgres.ts'
import type { WriterArgs } from './writerProcess.ts'

/** Store that processes share; `check` finds faults in it. */
type SharedStore = { readonly url: string; readonly check: () => Promise<readonly unknown[]> }

const fresh = createTempPaths()
const createFile = async (): Promise<SharedStore> => {
  const file = fresh()
  return { url: `sqlite:${file}`, check: async () => (await examineFile(file)).faults }
}
let database: Promise<string> | undefined
const createDatabase = async (): Promise<SharedStore> => {
  database ??= getPostgres().then((server) => server.createDatabase())
  return { url: await database, check: async () => [] }
}

const startWriter = (url: string, workspace: string, name: string, count: number) =>
  startProgram('test/graph/writerProcess.ts', [url, workspace, name, String(count)] satisfies WriterArgs)

/** Checks a store for faults and returns the names of its nodes and the ids of its entities. */
async function readContents(
  { url, check }: SharedStore,
  workspace: string,
): Promise<{
  readonly nodes: readonly string[]
  readonly entities: readonly string[]
  readonly related: readonly string[]
}> {
  expect(await check()).toEqual([])
  const graph = await openGraph(url)
  const { entities: nodes } = await graph.nodes.readGraph(workspace)
  const entities: string[] = []
  const related: string[] = []
  for (let offset = 0, total = 1; offset < total; offset += 1_000) {
    const page = await graph.queryEntities(workspace, { limit: 1_000, offset })
    entities.push(...page.entities.map(({ id }) => id))
    related.push(
      ...(await graph.queryRelationships(workspace, { limit: 1_000, offset })).relationships.map(({ from }) => from),
    )
    total = page.total
  }
  // The search index agrees with the rows.
  expect((await graph.nodes.searchNodes(workspace, 'said of')).entities).toEqual(nodes)
  await graph.close()
  return { nodes: nodes.map(({ name }) => name), entities, related }
}

/** Entities and nodes of each writer. */
const count = isCampaign ? 200 : 60

describe.each([
  { name: 'a file', create: createFile, rounds: isCampaign ? 6 : 3 },
  { name: 'PostgreSQL', create: createDatabase, rounds: isCampaign ? 3 : 2 },
])('graph in $name written by several processes', ({ create, rounds }) => {
  verifies(
    ['H-11', 'S-04'],
    `with two writers of ${count} entities and ${count} nodes each holds all of both`,
    async () => {
      const store = await create()
      const ended = await Promise.all(['a', 'b'].map((name) => startWriter(store.url, 'acme', name, count).result))
      expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual([
        [0, ''],
        [0, ''],
      ])
      const all = ['a', 'b'].flatMap((name) => Array.from({ length: count }, (_, at) => `${name}-${at}`)).sort()
      const { nodes, entities, related } = await readContents(store, 'acme')
      expect([[...nodes].sort(), [...entities].sort(), [...related].sort()]).toEqual([all, all, all])
    },
  )

  verifies(
    ['H-11', 'X-07'],
    'with a writer killed during writes holds every acknowledged write completely',
    async () => {
      const store = await create()
      const acknowledged: string[] = []
      for (let round = 0; round < rounds; round++) {
        const child = startWriter(store.url, 'killed', `r${round}`, 10_000)
        await child.waitForOutput(`r${round}-${20 + round * 7}\n`)
        child.process.kill('SIGKILL')
        const { stdout } = await child.result
        acknowledged.push(...stdout.split('\n').slice(0, -1))
      }
      const { nodes, entities, related } = await readContents(store, 'killed')
      expect(acknowledged.length).toBeGreaterThan(rounds * 20)
      expect(acknowledged.filter((name) => !nodes.includes(name) || !entities.includes(name))).toEqual([])
      // An entity and its relationship are written in one transaction.
      expect(related).toEqual(entities)
    },
  )
})
