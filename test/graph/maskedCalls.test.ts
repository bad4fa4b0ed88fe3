import { describe, expect } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import type { StoreGraph } from '../../src/graph/types.ts'
import { normalizeSecrets } from '../../src/text/secrets.ts'
import { verifies } from '../requirements/verifies.ts'
import { person } from './fixtures.ts'

const secret = 'ghp_Ab3dE7fGh1jKlMn0pQrStUvWx2Yz34567890'
const mask = '⟨secret:0⟩'
/** Makes all masks equal, and fails for a secret. */
function normalize(value: unknown): unknown {
  const json = JSON.stringify(value)
  expect(json).not.toMatch(/ghp_Ab3|wm7Fq2/)
  return JSON.parse(normalizeSecrets(json))
}
const node = (name: string, ...observations: readonly string[]) => ({ name, entityType: 'thing', observations })
const link = (from: string, to: string) => ({ from, to, relationType: 'knows' })

async function withGraph(test: (graph: StoreGraph) => Promise<void>): Promise<void> {
  const graph = await openGraph('ram:', { clock: () => 1_000 })
  await test(graph)
  await graph.close()
}

describe('a graph', () => {
  verifies(['R-02', 'X-08'], 'written with secrets › returns masks, and finds them by the secret', () =>
    withGraph(async (graph) => {
      const change = {
        entities: [person('ann', { key: secret }), person(secret, { text: 'plain' })],
        relationships: [{ from: secret, to: 'ann', type: 'KNOWS' }],
      }
      expect(await graph.write('w', change)).toEqual({ written: 3, unchanged: 0, dropped: 0 })
      const times = { createdAt: 1_000, updatedAt: 1_000 }
      const ann = { ...person('ann', { key: mask }), ...times }
      const named = { ...person(mask, { text: 'plain' }), ...times }
      expect(normalize(await graph.getEntity('w', secret))).toEqual(named)
      expect(normalize(await graph.queryEntities('w'))).toEqual({ entities: [ann, named], total: 2 })
      const filters = [{ property: 'key', op: 'eq', value: secret }] as const
      expect(normalize(await graph.queryEntities('w', { filters }))).toEqual({ entities: [ann], total: 1 })
      const found = await graph.queryRelationships('w', { from: secret })
      expect(normalize(found)).toMatchObject({ relationships: [{ from: mask, to: 'ann', type: 'KNOWS' }], total: 1 })
      expect(await graph.queryRelationships('w')).toEqual(found)
      await graph.write('w', { deleteEntities: [secret] })
      expect(normalize(await graph.queryEntities('w'))).toEqual({ entities: [ann], total: 1 })
    }),
  )

  verifies(['R-02', 'X-08'], 'written in a workspace named after a secret › throws and writes nothing', () =>
    withGraph(async (graph) => {
      const refused = { code: 'bad-key', message: expect.not.stringContaining(secret) }
      for (const write of [
        graph.write(secret, { entities: [person('ann')] }),
        graph.nodes.createEntities(secret, [node('a')]),
        graph.nodes.importOnce(secret, { entities: [node('a')], relations: [] }),
      ])
        await expect(write).rejects.toMatchObject(refused)
      expect((await graph.queryEntities(secret)).total).toBe(0)
      expect((await graph.nodes.readGraph(secret)).entities).toEqual([])
    }),
  )

  verifies('X-08', 'erased by session, by text or as a whole while it is written › keeps nothing of it', () =>
    withGraph(async (graph) => {
      // Masking pauses after 200 entities.
      const entities = Array.from({ length: 201 }, (_, index) => ({ ...person(`p${index}`), session: 's' }))
      const [, erased] = await Promise.all([graph.write('w', { entities }), graph.erase('w', 's')])
      expect([erased, (await graph.queryEntities('w')).total]).toEqual([201, 0])
      await graph.write('w', { entities: [person('walrus'), person('ann')] })
      expect(await graph.forget('w', ['walrus'])).toHaveLength(1)
      expect((await graph.queryEntities('w')).entities.map(({ id }) => id)).toEqual(['ann'])
      expect(await graph.erase('w')).toBe(1)
      expect((await graph.queryEntities('w')).total).toBe(0)
    }),
  )

  verifies('X-08', 'closed while it is written › stores everything first', async () => {
    const graph = await openGraph('ram:')
    const entities = Array.from({ length: 401 }, (_, index) => person(`p${index}`))
    const writing = graph.write('w', { entities })
    await graph.close()
    expect(await writing).toEqual({ written: 401, unchanged: 0, dropped: 0 })
    await expect(graph.queryEntities('w')).rejects.toThrow()
  })
})

describe('nodes of a graph', () => {
  verifies(['R-02', 'X-08'], 'created with secrets › are masked, and found and extended by the secret', () =>
    withGraph(async ({ nodes }) => {
      const created = await nodes.createEntities('w', [node(secret, 'likes tea'), node('wifi password', 'wm7Fq2!')])
      expect(normalize(created)).toEqual([node(mask, 'likes tea'), node('wifi password', mask)])
      expect(normalize(await nodes.createRelations('w', [link(secret, 'ann')]))).toEqual([link(mask, 'ann')])
      const added = await nodes.addObservations('w', [
        { entityName: secret, contents: [`uses ${secret}`] },
        { entityName: 'wifi password', contents: ['wm7Fq2x'] },
      ])
      expect(normalize(added)).toEqual([
        { entityName: mask, addedObservations: [`uses ${mask}`] },
        { entityName: 'wifi password', addedObservations: [mask] },
      ])
      const named = { entities: [node(mask, 'likes tea', `uses ${mask}`)], relations: [link(mask, 'ann')] }
      const wifi = node('wifi password', mask, mask)
      expect(normalize(await nodes.readGraph('w'))).toEqual({ ...named, entities: [...named.entities, wifi] })
      expect(normalize(await nodes.openNodes('w', [secret]))).toEqual(named)
      expect(normalize(await nodes.searchNodes('w', secret))).toEqual(named)
    }),
  )

  verifies(['R-02', 'X-08'], 'with masked texts › are deleted by the texts as they were written', () =>
    withGraph(async ({ nodes }) => {
      await nodes.createEntities('w', [node(secret, 'likes tea'), node('wifi password', 'wm7Fq2!', 'in the hall')])
      await nodes.createRelations('w', [link(secret, 'ann'), link('ann', 'wifi password')])
      await nodes.deleteObservations('w', [{ entityName: 'wifi password', observations: ['wm7Fq2!'] }])
      await nodes.deleteRelations('w', [link(secret, 'ann')])
      expect(normalize(await nodes.readGraph('w'))).toEqual({
        entities: [node(mask, 'likes tea'), node('wifi password', 'in the hall')],
        relations: [link('ann', 'wifi password')],
      })
      await nodes.deleteObservations('w', [{ entityName: secret, observations: ['likes tea'] }])
      expect(normalize(await nodes.openNodes('w', [secret]))).toMatchObject({ entities: [node(mask)] })
      await nodes.deleteEntities('w', [secret])
      expect((await nodes.readGraph('w')).entities).toEqual([node('wifi password', 'in the hall')])
    }),
  )

  verifies(['R-02', 'X-08'], 'imported with secrets › are masked, once', () =>
    withGraph(async ({ nodes }) => {
      const graph = { entities: [node('ann', `uses ${secret}`)], relations: [link('ann', secret)] }
      expect([await nodes.importOnce('w', graph), await nodes.importOnce('w', graph)]).toEqual([true, false])
      expect(normalize(await nodes.readGraph('w'))).toEqual({
        entities: [node('ann', `uses ${mask}`)],
        relations: [link('ann', mask)],
      })
    }),
  )
})
