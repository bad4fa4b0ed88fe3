import { describe, expect, it } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { link, origin } from '../../src/portable/chain.ts'
import { exportBundle } from '../../src/portable/export.ts'
import { importBundle } from '../../src/portable/import.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { graphKey } from '../../src/stores/sqlite/graph.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { keyFile, person } from '../graph/stage.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { file, gathered } from './bytes.ts'
import {
  exported,
  filled,
  imported,
  knows,
  linesOf,
  nodesIn,
  nothing,
  type Place,
  robot,
  tea,
  within,
} from './graphs.ts'

const fresh = freshFiles()
const storeKey = keyFile(fresh('.key'))
const plain = (): Place => ({ url: `sqlite:${fresh()}` })
const sealed = (): Place => ({ url: `sqlite:${fresh()}`, storeKey })

describe.each([
  { from: 'a file', to: 'a file', one: plain, other: plain },
  { from: 'an encrypted file', to: 'a file', one: sealed, other: plain },
  { from: 'a file', to: 'an encrypted file', one: plain, other: sealed },
])('a bundle with graphs, from $from into $to', ({ one, other }) => {
  verifies('X-12', 'holds everything, is the same bytes again, and changes nothing the second time', async () => {
    const [from, to] = [one(), other()]
    await filled(from)
    const bundle = await exported(from)
    expect(linesOf(bundle).filter((line) => 'graph' in line)).toHaveLength(11)
    expect(await imported(to, bundle)).toEqual({ ...nothing, sessions: 3, messages: 1, entries: 11 })
    expect((await exported(to)).equals(bundle)).toBe(true)
    expect(await imported(to, bundle)).toEqual({ ...nothing, unchanged: 3 })
    expect((await exported(to)).equals(bundle)).toBe(true)
    await within(to, async (graph) => {
      expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [tea, robot], relations: [knows, knows] })
      expect((await graph.nodes.searchNodes('acme', 'LIKES TEA')).entities).toEqual([tea])
      expect(await graph.entity('acme', 'bob')).toEqual({
        ...person('bob', { city: 'Bergen' }),
        createdAt: 1_000,
        updatedAt: 2_000,
      })
      // What was taken in once is not wanted a second time.
      expect(await graph.nodes.adopt('acme', { entities: [], relations: [] })).toBe(false)
    })
  })

  verifies('X-05', 'is forgotten there with what it was drawn from', async () => {
    const [from, to] = [one(), other()]
    await filled(from)
    await imported(to, await exported(from))
    await using memory = await openMemory({ store: to.url, ...(to.storeKey === undefined ? {} : { storeKey }) })
    await memory.forget({ key: 'acme:s1' })
    expect((await within(to, (graph) => graph.entities('acme'))).entities.map(({ id }) => id)).toEqual(['bob'])
    expect((await within(to, (graph) => graph.relationships('acme'))).total).toBe(0)
  })
})

describe('a bundle with a graph', () => {
  it('holds one scope if asked, goes into another, and is encrypted if asked', async () => {
    const [from, to] = [plain(), plain()]
    await filled(from)
    const bundle = await exported(from, { scope: 'other', lock: { passphrase: 'walrus', cost: 2 } })
    expect(bundle.includes('kept')).toBe(false)
    expect(await imported(to, bundle, { scope: 'mine', passphrase: 'walrus' })).toEqual({
      ...nothing,
      sessions: 1,
      entries: 1,
    })
    expect((await nodesIn(to, 'mine')).entities).toEqual([{ name: 'kept', entityType: 'thing', observations: [] }])
    expect((await nodesIn(to, 'other')).entities).toEqual([])
  })

  it('spells out what is known of each row', async () => {
    const from = plain()
    await filled(from)
    const rows = linesOf(await exported(from, { scope: 'acme' })).flatMap(({ graph }) => graph ?? [])
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

  it('leaves its graph out, and says so, where a store keeps none', async () => {
    const from = plain()
    await filled(from)
    const ram = ramStore()
    const done = await importBundle(ram, file(await exported(from)))
    expect(done).toEqual({ ...nothing, sessions: 1, messages: 1, skipped: ['acme::graph', 'other::graph'] })
    expect(linesOf(await gathered(exportBundle(ram))).map((line) => Object.keys(line)[0])).toEqual([
      'bundle',
      'session',
      'message',
      'end',
    ])
  })

  it('of an earlier release, which announces graphs without their rows, touches no graph', async () => {
    const [store, to] = [ramStore(), plain()]
    await filled(to)
    const before = await exported(to)
    // What such a release wrote: the session of a graph, and nothing in it.
    const early = sqliteStore(fresh())
    await early.commit({ key: graphKey('acme'), at: 77, epoch: 0, append: [], put: [], drop: [], expiresAt: 99 })
    const bundle = await gathered(exportBundle(early))
    await early.close()
    for (const onExisting of ['refuse', 'skip', 'replace'] as const)
      expect(await imported(to, bundle, { onExisting })).toEqual({ ...nothing, unchanged: 1 })
    expect((await exported(to)).equals(before)).toBe(true)
    expect(await importBundle(store, file(bundle))).toEqual({ ...nothing, sessions: 1 })
    expect((await gathered(exportBundle(store))).equals(bundle)).toBe(true)
  })

  it('is refused with a row that is none, or that belongs to no graph', async () => {
    const from = plain()
    await filled(from)
    const forged = (change: (line: Record<string, unknown>) => Record<string, unknown>): Promise<Buffer> =>
      exported(from).then((bundle) => {
        let hash = origin
        const lines = linesOf(bundle).map((line) => {
          const next = link(hash, change(line))
          hash = next.hash
          return `${next.line}\n`
        })
        return Buffer.from(lines.join(''))
      })
    const odd = await forged((line) => ('graph' in line ? { graph: { node: { name: 7 } } } : line))
    await expect(imported(plain(), odd)).rejects.toMatchObject({ code: 'bad-bundle', param: 'line 3' })
    const many = await forged((line) => ('graph' in line ? { graph: { node: tea, link: knows } } : line))
    await expect(imported(plain(), many)).rejects.toMatchObject({ code: 'bad-bundle', param: 'line 3' })
    const astray = await forged((line) => ('message' in line ? { graph: { node: tea } } : line))
    await expect(imported(plain(), astray)).rejects.toThrow('is a row of a graph outside a graph')
  })
})
