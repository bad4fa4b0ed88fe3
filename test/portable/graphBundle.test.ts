import { describe, expect, it } from 'vitest'
import { graphKey } from '../../src/domain/key.ts'
import { openMemory } from '../../src/index.ts'
import { chainStart, createChainLine } from '../../src/portable/chain.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { person, writeKeyFile } from '../graph/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { getPostgres } from '../support/postgres.ts'
import { openChunks, readAll } from './byteStreams.ts'
import {
  emptyResult,
  exportFrom,
  fillGraph,
  importInto,
  knows,
  parseBundleLines,
  readNodes,
  robot,
  type StoreLocation,
  tea,
  withGraph,
} from './graphFixtures.ts'

const newFile = createTempPaths()
const storeKey = writeKeyFile(newFile('.key'))
const plain = (): StoreLocation => ({ url: `sqlite:${newFile()}` })
const encrypted = (): StoreLocation => ({ url: `sqlite:${newFile()}`, storeKey })

describe('exportBundle and importBundle with graphs, through PostgreSQL', () => {
  verifies('X-12', 'round trip › keeps every byte, plain and encrypted', async () => {
    const server = await getPostgres()
    const from = plain()
    await fillGraph(from)
    await withGraph(from, (graph) =>
      graph.write('acme', {
        entities: [{ ...person('odd \0 \ud83d', { of: ['\0', '\ud83d'] }), session: 's1', sources: ['m1', ''] }],
      }),
    )
    const bundle = await exportFrom(from)
    for (const key of [{}, { storeKey }]) {
      const [through, to] = [{ url: await server.createDatabase(), ...key }, plain()]
      expect(await importInto(through, bundle)).toEqual({ ...emptyResult, sessions: 3, messages: 1, entries: 12 })
      expect(await importInto(through, bundle)).toEqual({ ...emptyResult, unchanged: 3 })
      const exported = await exportFrom(through)
      expect(exported.equals(bundle)).toBe(true)
      await importInto(to, exported)
      expect((await exportFrom(to)).equals(bundle)).toBe(true)
      expect(await withGraph(through, (graph) => graph.nodes.importOnce('acme', { entities: [], relations: [] }))).toBe(
        false,
      )
    }
  })
})

describe.each([
  { from: 'a file', to: 'a file', createSource: plain, createTarget: plain },
  { from: 'an encrypted file', to: 'a file', createSource: encrypted, createTarget: plain },
  { from: 'a file', to: 'an encrypted file', createSource: plain, createTarget: encrypted },
])('exportBundle and importBundle with graphs, from $from to $to', ({ createSource, createTarget }) => {
  verifies('X-12', 'round trip › keeps every byte and changes nothing the second time', async () => {
    const [from, to] = [createSource(), createTarget()]
    await fillGraph(from)
    const bundle = await exportFrom(from)
    expect(parseBundleLines(bundle).filter((line) => 'graph' in line)).toHaveLength(11)
    expect(await importInto(to, bundle)).toEqual({ ...emptyResult, sessions: 3, messages: 1, entries: 11 })
    expect((await exportFrom(to)).equals(bundle)).toBe(true)
    expect(await importInto(to, bundle)).toEqual({ ...emptyResult, unchanged: 3 })
    expect((await exportFrom(to)).equals(bundle)).toBe(true)
    await withGraph(to, async (graph) => {
      expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [tea, robot], relations: [knows, knows] })
      expect((await graph.nodes.searchNodes('acme', 'LIKES TEA')).entities).toEqual([tea])
      expect(await graph.getEntity('acme', 'bob')).toEqual({
        ...person('bob', { city: 'Bergen' }),
        createdAt: 1_000,
        updatedAt: 2_000,
      })
      // The nodes were adopted before the export, so they are not adopted again.
      expect(await graph.nodes.importOnce('acme', { entities: [], relations: [] })).toBe(false)
    })
  })

  verifies('X-05', 'forget › of the source session after the import › erases the derived rows', async () => {
    const [from, to] = [createSource(), createTarget()]
    await fillGraph(from)
    await importInto(to, await exportFrom(from))
    await using memory = await openMemory({ store: to.url, ...(to.storeKey === undefined ? {} : { storeKey }) })
    await memory.forget({ key: 'acme:s1' })
    expect((await withGraph(to, (graph) => graph.queryEntities('acme'))).entities.map(({ id }) => id)).toEqual(['bob'])
    expect((await withGraph(to, (graph) => graph.queryRelationships('acme'))).total).toBe(0)
  })
})

describe('a bundle with a graph', () => {
  it('with scope and lock › exports one scope encrypted and imports it into another', async () => {
    const [from, to] = [plain(), plain()]
    await fillGraph(from)
    const bundle = await exportFrom(from, { scope: 'other', encryption: { passphrase: 'walrus', cost: 2 } })
    expect(bundle.includes('kept')).toBe(false)
    expect(await importInto(to, bundle, { scope: 'mine', passphrase: 'walrus' })).toEqual({
      ...emptyResult,
      sessions: 1,
      entries: 1,
    })
    expect((await readNodes(to, 'mine')).entities).toEqual([{ name: 'kept', entityType: 'thing', observations: [] }])
    expect((await readNodes(to, 'other')).entities).toEqual([])
  })

  it('exportBundle › writes every field of each row', async () => {
    const from = plain()
    await fillGraph(from)
    const rows = parseBundleLines(await exportFrom(from, { scope: 'acme' })).flatMap(({ graph }) => graph ?? [])
    expect(rows).toEqual([
      {
        entity: {
          ...person('zoe', { city: 'Oslo', age: 7 }),
          createdAt: 1_000,
          updatedAt: 1_000,
          origins: [['s1', 'm1']],
        },
      },
      { entity: { ...person('ann'), createdAt: 1_000, updatedAt: 1_000, origins: [['s1', '']] } },
      { entity: { ...person('bob', { city: 'Bergen' }), createdAt: 1_000, updatedAt: 2_000, origins: [] } },
      {
        relationship: {
          from: 'zoe',
          to: 'bob',
          type: 'KNOWS',
          properties: { since: [1, null, 'ü'] },
          createdAt: 1_000,
          updatedAt: 1_000,
        },
      },
      {
        relationship: {
          from: 'ann',
          to: 'zoe',
          type: 'KNOWS',
          properties: {},
          createdAt: 1_000,
          updatedAt: 1_000,
          session: 's1',
        },
      },
      { node: tea },
      { node: robot },
      { link: knows },
      { link: knows },
      { adopted: 1_000 },
    ])
  })

  it('importBundle › into a store without graphs › skips the graph and reports it', async () => {
    const from = plain()
    await fillGraph(from)
    const ram = ramStore()
    const done = await importBundle(ram, openChunks(await exportFrom(from)))
    expect(done).toEqual({ ...emptyResult, sessions: 1, messages: 1, skipped: ['acme::graph', 'other::graph'] })
    expect(parseBundleLines(await readAll(exportBundle(ram))).map((line) => Object.keys(line)[0])).toEqual([
      'bundle',
      'session',
      'message',
      'end',
    ])
  })

  it('importBundle › with a graph session without rows › changes no graph', async () => {
    const [store, to] = [ramStore(), plain()]
    await fillGraph(to)
    const before = await exportFrom(to)
    const withoutRows = sqliteStore(newFile())
    await withoutRows.commit({ key: graphKey('acme'), at: 77, epoch: 0, append: [], put: [], drop: [], expiresAt: 99 })
    const bundle = await readAll(exportBundle(withoutRows))
    await withoutRows.close()
    for (const onExisting of ['refuse', 'skip', 'replace'] as const)
      expect(await importInto(to, bundle, { onExisting })).toEqual({ ...emptyResult, unchanged: 1 })
    expect((await exportFrom(to)).equals(before)).toBe(true)
    expect(await importBundle(store, openChunks(bundle))).toEqual({ ...emptyResult, sessions: 1 })
    expect((await readAll(exportBundle(store))).equals(bundle)).toBe(true)
  })

  it('importBundle › with an invalid row or a row outside a graph › throws', async () => {
    const from = plain()
    await fillGraph(from)
    const forgeBundle = (change: (line: Record<string, unknown>) => Record<string, unknown>): Promise<Buffer> =>
      exportFrom(from).then((bundle) => {
        let hash = chainStart
        const lines = parseBundleLines(bundle).map((line) => {
          const next = createChainLine(hash, change(line))
          hash = next.hash
          return `${next.line}\n`
        })
        return Buffer.from(lines.join(''))
      })
    const invalidRow = await forgeBundle((line) => ('graph' in line ? { graph: { node: { name: 7 } } } : line))
    await expect(importInto(plain(), invalidRow)).rejects.toMatchObject({ code: 'bad-bundle', param: 'line 3' })
    const twoKinds = await forgeBundle((line) => ('graph' in line ? { graph: { node: tea, link: knows } } : line))
    await expect(importInto(plain(), twoKinds)).rejects.toMatchObject({ code: 'bad-bundle', param: 'line 3' })
    const misplacedRow = await forgeBundle((line) => ('message' in line ? { graph: { node: tea } } : line))
    await expect(importInto(plain(), misplacedRow)).rejects.toThrow('is a row of a graph outside a graph')
  })
})
