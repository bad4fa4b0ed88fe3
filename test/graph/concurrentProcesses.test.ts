import { describe, expect } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { examineFile } from '../../src/stores/sqlite/repair.ts'
import { startProgram } from '../cli/command.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import type { WriterArgs } from './writerProcess.ts'

const fresh = createTempPaths()
const startWriter = (file: string, name: string, count: number) =>
  startProgram('test/graph/writerProcess.ts', [`sqlite:${file}`, name, String(count)] satisfies WriterArgs)

/** Checks a file for faults and returns the names of its nodes and the ids of its entities. */
async function readFileContents(file: string): Promise<{
  readonly nodes: readonly string[]
  readonly entities: readonly string[]
  readonly related: readonly string[]
}> {
  expect((await examineFile(file)).faults).toEqual([])
  const graph = await openGraph(`sqlite:${file}`)
  const { entities: nodes } = await graph.nodes.readGraph('acme')
  const entities: string[] = []
  const related: string[] = []
  for (let offset = 0, total = 1; offset < total; offset += 1_000) {
    const page = await graph.queryEntities('acme', { limit: 1_000, offset })
    entities.push(...page.entities.map(({ id }) => id))
    related.push(
      ...(await graph.queryRelationships('acme', { limit: 1_000, offset })).relationships.map(({ from }) => from),
    )
    total = page.total
  }
  // The search index agrees with the rows.
  expect((await graph.nodes.searchNodes('acme', 'said of')).entities).toEqual(nodes)
  await graph.close()
  return { nodes: nodes.map(({ name }) => name), entities, related }
}

describe('graph file written by several processes', () => {
  verifies(['H-11', 'S-04'], 'with two writers of 200 entities and 200 nodes each holds 400 of both', async () => {
    const file = fresh()
    const ended = await Promise.all(['a', 'b'].map((name) => startWriter(file, name, 200).result))
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ])
    const all = ['a', 'b'].flatMap((name) => Array.from({ length: 200 }, (_, at) => `${name}-${at}`)).sort()
    const { nodes, entities, related } = await readFileContents(file)
    expect([[...nodes].sort(), [...entities].sort(), [...related].sort()]).toEqual([all, all, all])
  })

  verifies(
    ['H-11', 'X-07'],
    'with a writer killed during writes holds every acknowledged write completely',
    async () => {
      const file = fresh()
      const acknowledged: string[] = []
      for (let round = 0; round < 6; round++) {
        const child = startWriter(file, `r${round}`, 10_000)
        await child.waitForOutput(`r${round}-${round * 7}\n`)
        child.process.kill('SIGKILL')
        const { stdout } = await child.result
        acknowledged.push(...stdout.split('\n').slice(0, -1))
      }
      const { nodes, entities, related } = await readFileContents(file)
      expect(acknowledged.length).toBeGreaterThan(100)
      expect(acknowledged.filter((name) => !nodes.includes(name) || !entities.includes(name))).toEqual([])
      // An entity and its relationship are written in one transaction.
      expect(related).toEqual(entities)
    },
  )
})
