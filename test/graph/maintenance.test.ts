import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { openMemory } from '../../src/index.ts'
import { loadKeyring } from '../../src/stores/encrypted.ts'
import { prepareFile } from '../../src/stores/sqlite/connect.ts'
import { examineFile, repairFile } from '../../src/stores/sqlite/repair.ts'
import { salvage } from '../../src/stores/sqlite/salvage.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { type GraphWithNodes, person, writeKeyFile } from './fixtures.ts'

const fresh = createTempPaths()
const tea = { name: 'Ann', entityType: 'person', observations: ['likes tea'] }

async function fillGraph(graph: GraphWithNodes): Promise<void> {
  await graph.write('acme', {
    entities: [{ ...person('ann', { city: 'Oslo' }), session: 's1', sources: ['m1'] }, person('bob')],
    relationships: [{ from: 'ann', to: 'bob', type: 'KNOWS' }],
  })
  await graph.nodes.createEntities('acme', [tea])
  await graph.nodes.createRelations('acme', [{ from: 'Ann', to: 'Bob', relationType: 'knows' }])
}

/** Expects everything `fillGraph` has written, by query, by search and by session. */
async function expectComplete(graph: GraphWithNodes, workspace = 'acme'): Promise<void> {
  expect((await graph.queryEntities(workspace)).entities.map(({ id, properties }) => [id, properties])).toEqual([
    ['ann', { city: 'Oslo' }],
    ['bob', {}],
  ])
  expect((await graph.queryRelationships(workspace, { from: 'ann' })).total).toBe(1)
  expect(await graph.nodes.searchNodes(workspace, 'LIKES TEA')).toEqual({
    entities: [tea],
    relations: [{ from: 'Ann', to: 'Bob', relationType: 'knows' }],
  })
  expect((await graph.queryEntities(workspace, { session: 's1' })).total).toBe(1)
}

describe('store with a graph', () => {
  it('has no faults to the doctor, and a repair leaves the graph unchanged', async () => {
    const file = fresh()
    const graph = await openGraph(`sqlite:${file}`)
    await fillGraph(graph)
    expect((await examineFile(file)).faults).toEqual([])
    await graph.close()
    expect(await repairFile(file)).toMatchObject({ actions: [], after: { faults: [] } })
    const again = await openGraph(`sqlite:${file}`)
    await expectComplete(again)
    await again.close()
  })

  it('includes the graph in a backup while it is in use', async () => {
    const [file, copy] = [fresh(), fresh()]
    const [store, graph] = [sqliteStore(file), await openGraph(`sqlite:${file}`)]
    await fillGraph(graph)
    await store.backup(copy)
    await Promise.all([store.close(), graph.close()])
    const restored = await openGraph(`sqlite:${copy}`)
    await expectComplete(restored)
    await restored.close()
  })

  it('salvages the graph from a damaged file, plain or encrypted', async () => {
    const storeKey = writeKeyFile(fresh('.key'))
    for (const options of [{}, { storeKey }]) {
      const keyring = 'storeKey' in options ? await loadKeyring(storeKey) : undefined
      const [file, other] = [fresh(), fresh()]
      const graph = await openGraph(`sqlite:${file}`, options)
      await fillGraph(graph)
      await graph.close()
      prepareFile(other)
      expect(salvage(file, other).unreadableRanges).toBe(0)
      const saved = await openGraph(`sqlite:${other}`, options)
      await expectComplete(saved)
      await saved.nodes.deleteEntities('acme', ['Ann'])
      expect((await saved.nodes.searchNodes('acme', 'tea')).entities).toEqual([])
      await saved.close()
      expect((await examineFile(other, { keyring })).faults).toEqual([])
    }
  })

  it('salvages a graph whose session row is lost', async () => {
    const [file, other] = [fresh(), fresh()]
    const graph = await openGraph(`sqlite:${file}`)
    await fillGraph(graph)
    await graph.close()
    const damaged = new DatabaseSync(file, { enableForeignKeyConstraints: false })
    damaged.exec('DELETE FROM session')
    damaged.close()
    prepareFile(other)
    salvage(file, other)
    const saved = await openGraph(`sqlite:${other}`)
    await expectComplete(saved, 'recovered-1')
    await saved.close()
  })

  it('exports and imports the graph', async () => {
    const [file, other] = [fresh(), fresh()]
    const graph = await openGraph(`sqlite:${file}`)
    await fillGraph(graph)
    const [from, to] = [await openMemory({ store: `sqlite:${file}` }), await openMemory({ store: `sqlite:${other}` })]
    await from.append('acme:s1', [{ role: 'user', content: 'Hello.' }])
    await to.import(() => from.export())
    expect((await to.transcript('acme:s1')).map(({ content }) => content)).toEqual(['Hello.'])
    const imported = await openGraph(`sqlite:${other}`)
    await expectComplete(imported)
    expect(await imported.write('acme', { entities: [person('ann')] })).toMatchObject({ written: 1 })
    await Promise.all([from.close(), to.close(), graph.close(), imported.close()])
  })
})
