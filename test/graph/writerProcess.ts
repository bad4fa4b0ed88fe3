// Writes entities and nodes one after the other and prints each acknowledged id: node writerProcess.ts STORE WORKSPACE NAME COUNT
import { openGraph } from '../../src/graph/graph.ts'

export type WriterArgs = readonly [store: string, workspace: string, name: string, count: string]

const [store, workspace, name, count] = process.argv.slice(2) as unknown as WriterArgs
const graph = await openGraph(store)
for (let at = 0; at < Number(count); at++) {
  const id = `${name}-${at}`
  await Promise.all([
    graph.nodes.createEntities(workspace, [{ name: id, entityType: 'thing', observations: [`said of ${id}`] }]),
    graph.write(workspace, {
      entities: [{ type: 'thing', id, properties: { at } }],
      relationships: [{ from: id, to: name, type: 'OF' }],
    }),
  ])
  process.stdout.write(`${id}\n`)
}
await graph.close()
