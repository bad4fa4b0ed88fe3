import { describe, expect, it } from 'vitest'
import { relationshipId } from '../../src/graph/rows.ts'
import { verifies } from '../requirements/verifies.ts'
import { type GraphWithNodes, graphBackends, person } from './fixtures.ts'

const idsOf = async (graph: GraphWithNodes): Promise<readonly string[]> =>
  (await graph.queryEntities('acme')).entities.map(({ id }) => id)

describe.each(graphBackends())('overwritten entity in $name', ({ open }) => {
  verifies(['X-05', 'H-01'], 'without a session is still erased with the sessions it was derived from', async () => {
    const graph = await open()
    const item = { type: 'context_item', id: 'item', properties: { says: 'Miso' } }
    const link = { from: 'item', to: 'ann', type: 'OF' }
    await graph.write('acme', {
      entities: [{ ...item, session: 's1', sources: ['m1'] }, { ...item, session: 's2' }, person('ann')],
      relationships: [{ ...link, session: 's1' }],
    })
    const update = {
      entities: [{ ...item, properties: { says: 'Miso, a cat' } }],
      relationships: [{ ...link, properties: { sure: true } }],
    }
    expect(await graph.write('acme', update)).toEqual({ written: 2, unchanged: 0, dropped: 0 })
    expect(await graph.write('acme', update)).toEqual({ written: 0, unchanged: 2, dropped: 0 })
    expect(
      (await graph.queryRelationships('acme', { session: 's1' })).relationships.map(({ properties }) => properties),
    ).toEqual([{ sure: true }])
    expect(await graph.erase('acme', 's1')).toBe(0)
    expect((await graph.queryRelationships('acme')).total).toBe(0)
    expect(await graph.getEntity('acme', 'item')).toMatchObject({ properties: { says: 'Miso, a cat' } })
    expect(await graph.erase('acme', 's2')).toBe(1)
    expect(await idsOf(graph)).toEqual(['ann'])
    await graph.close()
  })

  it('with a session belongs to that session only', async () => {
    const graph = await open()
    await graph.write('acme', { entities: [{ ...person('ann', { city: 'Oslo' }), session: 's1' }] })
    await graph.write('acme', { entities: [{ ...person('ann', { city: 'Bergen' }), session: 's2' }] })
    expect(await graph.erase('acme', 's1')).toBe(0)
    expect(await graph.erase('acme', 's2')).toBe(1)
    await graph.close()
  })
})

describe.each(graphBackends())('change in $name', ({ open }) => {
  verifies('H-06', 'deletes relationships by id before it writes, and nothing else', async () => {
    const graph = await open()
    const follows = (to: string) => ({ from: 's3', to, type: 'SESSION_CONTINUES' })
    await graph.write('acme', { entities: ['s1', 's2', 's3'].map((id) => person(id)), relationships: [follows('s1')] })
    await graph.write('other', { relationships: [follows('s1')] })
    const replacement = {
      deleteRelationships: [relationshipId(follows('s1')), 'rel_nothing'],
      relationships: [follows('s2')],
    }
    expect(await graph.write('acme', replacement)).toEqual({ written: 1, unchanged: 0, dropped: 1 })
    expect((await graph.queryRelationships('acme')).relationships.map(({ to }) => to)).toEqual(['s2'])
    expect(await idsOf(graph)).toEqual(['s1', 's2', 's3'])
    expect((await graph.queryRelationships('other')).total).toBe(1)
    const again = {
      deleteRelationships: [relationshipId(follows('s2'))],
      deleteEntities: ['s3'],
      relationships: [follows('s2')],
    }
    expect(await graph.write('acme', again)).toEqual({ written: 1, unchanged: 0, dropped: 2 })
    await graph.close()
  })

  verifies('H-11', 'with an outdated expectation is rejected completely', async () => {
    const graph = await open()
    const conflict = {
      code: 'conflict',
      message: expect.stringMatching(/^Entity ann was changed by another writer since it was read/),
    }
    const expecting = (updatedAt: number | undefined) => ({
      expected: [{ id: 'ann', updatedAt }],
      entities: [person('ann', { from: updatedAt ?? null }), person('bob')],
      deleteEntities: ['cy'],
    })
    await graph.write('acme', { entities: [person('cy')] })
    await expect(graph.write('acme', expecting(1_000))).rejects.toMatchObject(conflict)
    expect(await idsOf(graph)).toEqual(['cy'])
    expect(await graph.write('acme', expecting(undefined))).toEqual({ written: 2, unchanged: 0, dropped: 1 })
    await expect(graph.write('acme', expecting(undefined))).rejects.toMatchObject(conflict)
    expect(await graph.write('acme', expecting((await graph.getEntity('acme', 'ann'))?.updatedAt))).toMatchObject({
      written: 1,
    })
    await expect(graph.write('acme', expecting(1_000))).rejects.toMatchObject(conflict)
    await graph.close()
  })

  verifies('H-11', 'by concurrent read-modify-write loses no update, also within a millisecond', async () => {
    const graph = await open(() => 1_000)
    const add = async (): Promise<void> => {
      const before = await graph.getEntity('acme', 'count')
      const many = Number(before?.properties.many ?? 0)
      try {
        await graph.write('acme', {
          entities: [person('count', { many: many + 1 })],
          expected: [{ id: 'count', updatedAt: before?.updatedAt }],
        })
      } catch (error) {
        expect(error).toMatchObject({ code: 'conflict' })
        await add()
      }
    }
    await Promise.all(Array.from({ length: 8 }, add))
    expect(await graph.getEntity('acme', 'count')).toEqual({
      ...person('count', { many: 8 }),
      createdAt: 1_000,
      updatedAt: 1_007,
    })
    await graph.close()
  })

  it('that deletes an id of no entity › keeps relationships with that id', async () => {
    const graph = await open()
    const relationships = [
      { from: 'bob', to: 'ann', type: 'KNOWS' },
      { from: 'nobody', to: 'ann', type: 'KNOWS' },
    ]
    await graph.write('acme', { entities: [person('ann'), person('bob')], relationships })
    expect(await graph.write('acme', { deleteEntities: ['nobody', 'bob'] })).toMatchObject({ dropped: 1 })
    expect((await graph.queryRelationships('acme')).relationships.map(({ from }) => from)).toEqual(['nobody'])
    await graph.close()
  })
})
