import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import type { Graph } from '../../src/graph/types.ts'
import { openMemory } from '../../src/index.ts'
import { loadKeyring, rotateKeys } from '../../src/stores/encrypted.ts'
import { postgresStore } from '../../src/stores/postgres.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { getPostgres } from '../support/postgres.ts'
import { type GraphWithNodes, person, writeKeyFile } from './fixtures.ts'

const fresh = createTempPaths()
const canary = 'Qx7-walrus-Zk93-canary'

/** Writes the canary into every field of a graph. */
async function writeCanary(graph: GraphWithNodes): Promise<void> {
  await graph.write('acme', {
    entities: [
      {
        type: `type ${canary}`,
        id: `id ${canary}`,
        properties: { [canary]: { deep: [canary] } },
        session: 's1',
        sources: ['m1'],
      },
      person('ann'),
    ],
    relationships: [{ from: `id ${canary}`, to: 'ann', type: canary, properties: { [canary]: canary } }],
  })
  await graph.nodes.createEntities('acme', [
    { name: canary, entityType: `kind ${canary}`, observations: [`observed ${canary}`] },
  ])
  await graph.nodes.addObservations('acme', [{ entityName: canary, contents: [`again ${canary}`] }])
  await graph.nodes.createRelations('acme', [{ from: canary, to: canary, relationType: canary }])
  await graph.nodes.searchNodes('acme', canary)
}

const createDatabase = async (): Promise<string> => (await getPostgres()).createDatabase()
const typesOf = async (graph: Graph): Promise<readonly string[]> =>
  (await graph.queryEntities('acme')).entities.map(({ type }) => type)

describe('encrypted graph', () => {
  verifies(['H-09', 'H-01'], 'has no plaintext in its file, and is readable with the key', async () => {
    const [file, plain, storeKey] = [fresh(), fresh(), writeKeyFile(fresh('.key'))]
    for (const [path, graph] of [
      [plain, await openGraph(`sqlite:${plain}`)],
      [file, await openGraph(`sqlite:${file}`, { storeKey })],
    ] as const) {
      await writeCanary(graph)
      expect((await graph.nodes.openNodes('acme', [canary])).entities).toEqual([
        { name: canary, entityType: `kind ${canary}`, observations: [`observed ${canary}`, `again ${canary}`] },
      ])
      expect([path === plain, findTraces(canary, databaseFiles(path)).length > 0]).toEqual([
        path === plain,
        path === plain,
      ])
      await graph.close()
    }
    expect(findTraces(canary, databaseFiles(file))).toEqual([])
    const again = await openGraph(`sqlite:${file}`, { storeKey })
    expect(await typesOf(again)).toEqual([`type ${canary}`, 'person'])
    expect((await again.nodes.searchNodes('acme', 'ZK93-CANARY')).relations).toEqual([
      { from: canary, to: canary, relationType: canary },
    ])
    await again.close()
  })

  it('is rejected without its key and with another key, and so is a key for an unencrypted graph', async () => {
    const [file, plain] = [fresh(), fresh()]
    const storeKey = writeKeyFile(fresh('.key'))
    for (const graph of [await openGraph(`sqlite:${file}`, { storeKey }), await openGraph(`sqlite:${plain}`)]) {
      await writeCanary(graph)
      await graph.close()
    }
    const openError = async (path: string, key: string | undefined): Promise<unknown> => {
      return openGraph(`sqlite:${path}`, key === undefined ? {} : { storeKey: key }).catch((error: unknown) => error)
    }
    expect(await openError(file, undefined)).toMatchObject({ code: 'bad-secret' })
    expect(await openError(file, writeKeyFile(fresh('.key'), 'b2'.repeat(32)))).toMatchObject({ code: 'bad-secret' })
    expect(await openError(plain, storeKey)).toMatchObject({ code: 'bad-store' })
    await expect(openGraph('ram:', { storeKey })).rejects.toMatchObject({ code: 'bad-option' })
  })

  it('shares the file of an encrypted store, and its key is rotated with the store', async () => {
    const file = fresh()
    const [old, both, later] = [
      writeKeyFile(fresh('.key')),
      writeKeyFile(fresh('.key'), `${'b2'.repeat(32)} ${'a1'.repeat(32)}`),
      writeKeyFile(fresh('.key'), 'b2'.repeat(32)),
    ]
    const memory = await openMemory({ store: `sqlite:${file}`, storeKey: old })
    const graph = await openGraph(`sqlite:${file}`, { storeKey: old })
    await writeCanary(graph)
    await memory.append('acme:ann', [{ role: 'user', content: 'Hello.' }])
    expect(await memory.transcript('acme:ann')).toHaveLength(1)
    await Promise.all([memory.close(), graph.close()])
    const inner = sqliteStore(file, { keyring: await loadKeyring(both) })
    expect(await rotateKeys(inner, await loadKeyring(both))).toEqual({ sessions: 2, rewrapped: 2 })
    await inner.close()
    const again = await openGraph(`sqlite:${file}`, { storeKey: later })
    expect(await typesOf(again)).toEqual([`type ${canary}`, 'person'])
    await again.close()
  })

  verifies('H-09', 'whose first write fails › is readable with the key of a later write', async () => {
    const storeKey = writeKeyFile(fresh('.key'))
    const file = `sqlite:${fresh()}`
    const database = await createDatabase()
    for (const url of [file, database]) {
      const graph = await openGraph(url, { storeKey })
      await expect(graph.write('acme', { entities: [person('')] })).rejects.toMatchObject({ code: 'bad-option' })
      await graph.write('acme', { entities: [person('ann', { city: 'Oslo' })] })
      await graph.close()
      const again = await openGraph(url, { storeKey })
      expect(await again.getEntity('acme', 'ann')).toMatchObject({ properties: { city: 'Oslo' } })
      await again.close()
    }
  })

  verifies(
    ['H-09', 'X-06'],
    'in PostgreSQL › has no plaintext in its rows, and is opened with its key only',
    async () => {
      const url = await createDatabase()
      const [old, both, other] = [
        writeKeyFile(fresh('.key')),
        writeKeyFile(fresh('.key'), `${'b2'.repeat(32)} ${'a1'.repeat(32)}`),
        writeKeyFile(fresh('.key'), 'b2'.repeat(32)),
      ]
      const graph = await openGraph(url, { storeKey: old })
      await writeCanary(graph)
      expect((await graph.nodes.searchNodes('acme', 'ZK93-CANARY')).entities).toHaveLength(1)
      await graph.close()
      await expect(openGraph(url)).rejects.toMatchObject({ code: 'bad-secret' })
      await expect(openGraph(url, { storeKey: other })).rejects.toMatchObject({ code: 'bad-secret' })
      const inner = await postgresStore(url, { encrypted: true })
      const { schema } = inner.database
      const rows = await inner.database.transaction('*', ({ query }) =>
        query(`SELECT t::text FROM ${schema}.graph_row t UNION ALL SELECT t::text FROM ${schema}.derived t`),
      )
      expect(rows).toHaveLength(2 + 1 + 1 + 2 + 1 + 1)
      expect(rows.filter(([text]) => String(text).toLowerCase().includes('walrus'))).toEqual([])
      expect(await rotateKeys(inner, await loadKeyring(both))).toEqual({ sessions: 1, rewrapped: 1 })
      await inner.close()
      const again = await openGraph(url, { storeKey: other })
      expect(await typesOf(again)).toEqual([`type ${canary}`, 'person'])
      await again.close()
    },
  )
})
