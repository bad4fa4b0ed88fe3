import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { graphBackends, person, pgliteBackend } from './fixtures.ts'

describe.each([...graphBackends(), pgliteBackend()])('graph in $name', ({ open }) => {
  verifies('H-06', 'returns an entity as it was written, with its times', async () => {
    const graph = await open()
    const properties = { city: 'Oslo', age: 41, tags: ['a', 'ü😀'], nested: { deep: [null, true] }, empty: '' }
    expect(await graph.write('acme', { entities: [person('ann', properties)] })).toEqual({
      written: 1,
      unchanged: 0,
      dropped: 0,
    })
    expect(await graph.getEntity('acme', 'ann')).toEqual({
      type: 'person',
      id: 'ann',
      properties,
      createdAt: 1_000,
      updatedAt: 1_000,
    })
    expect(await graph.getEntity('acme', 'bob')).toBeUndefined()
    await graph.close()
  })

  verifies(['H-06', 'H-08'], 'replaces changed entities and does not write unchanged ones', async () => {
    let now = 1_000
    const graph = await open(() => now)
    await graph.write('acme', { entities: [person('ann', { city: 'Oslo', age: 41 }), person('bob')] })
    now = 2_000
    expect(
      await graph.write('acme', {
        entities: [person('ann', { age: 41, city: 'Oslo' }), { type: 'robot', id: 'bob', properties: {} }],
      }),
    ).toEqual({
      written: 1,
      unchanged: 1,
      dropped: 0,
    })
    expect(await graph.queryEntities('acme')).toEqual({
      entities: [
        { type: 'person', id: 'ann', properties: { city: 'Oslo', age: 41 }, createdAt: 1_000, updatedAt: 1_000 },
        { type: 'robot', id: 'bob', properties: {}, createdAt: 1_000, updatedAt: 2_000 },
      ],
      total: 2,
    })
    await graph.close()
  })

  verifies('H-06', 'stores one relationship per type and pair, with an id derived from the three', async () => {
    const graph = await open()
    const knows = { from: 'ann', to: 'bob', type: 'KNOWS' }
    await graph.write('acme', {
      entities: [person('ann'), person('bob')],
      relationships: [knows, { ...knows, type: 'LIKES' }, { ...knows, properties: { since: 2020 } }],
    })
    const { relationships, total } = await graph.queryRelationships('acme')
    expect(relationships.map(({ type, properties }) => [type, properties])).toEqual([
      ['KNOWS', { since: 2020 }],
      ['LIKES', {}],
    ])
    expect(total).toBe(2)
    expect(await graph.write('acme', { relationships: [{ ...knows, properties: { since: 2020 } }] })).toEqual({
      written: 0,
      unchanged: 1,
      dropped: 0,
    })
    const other = await open()
    await other.write('elsewhere', { relationships: [knows] })
    expect((await other.queryRelationships('elsewhere')).relationships[0]?.id).toBe(relationships[0]?.id)
    await Promise.all([graph.close(), other.close()])
  })

  verifies('H-06', 'finds relationships by either end and by type', async () => {
    const graph = await open()
    await graph.write('acme', {
      relationships: [
        { from: 'ann', to: 'bob', type: 'KNOWS' },
        { from: 'bob', to: 'ann', type: 'KNOWS' },
        { from: 'ann', to: 'oslo', type: 'LIVES_IN', properties: { since: 1 } },
      ],
    })
    const ends = async (query: Parameters<typeof graph.queryRelationships>[1]) =>
      (await graph.queryRelationships('acme', query)).relationships.map(({ from, to }) => `${from}>${to}`)
    expect(await ends({ from: 'ann' })).toEqual(['ann>bob', 'ann>oslo'])
    expect(await ends({ to: 'ann' })).toEqual(['bob>ann'])
    expect(await ends({ from: 'ann', types: ['LIVES_IN', 'nothing'] })).toEqual(['ann>oslo'])
    expect(await ends({ filters: [{ property: 'since', op: 'exists' }] })).toEqual(['ann>oslo'])
    expect(await ends({ types: [] })).toEqual([])
    await graph.close()
  })

  verifies('H-06', 'sorts and pages results, and counts all matches', async () => {
    const graph = await open()
    const ages = [30, 10, 20, 10]
    await graph.write('acme', {
      entities: [...ages.map((age, at) => person(`p${at}`, { age })), { type: 'place', id: 'oslo', properties: {} }],
    })
    const found = async (query: Parameters<typeof graph.queryEntities>[1]) => {
      const { entities, total } = await graph.queryEntities('acme', query)
      return [entities.map(({ id }) => id), total]
    }
    expect(await found({ types: ['person'], sort: [{ by: 'age' }, { by: 'id', order: 'desc' }] })).toEqual([
      ['p3', 'p1', 'p2', 'p0'],
      4,
    ])
    expect(await found({ types: ['person'], sort: [{ by: 'age', order: 'desc' }], limit: 2, offset: 1 })).toEqual([
      ['p2', 'p1'],
      4,
    ])
    expect(await found({ filters: [{ property: 'age', op: 'gte', value: 20 }], limit: 1 })).toEqual([['p0'], 2])
    expect(await found({ offset: 9 })).toEqual([[], 5])
    expect(await found({ sort: [{ by: 'type', order: 'desc' }], limit: 1 })).toEqual([['oslo'], 5])
    await graph.close()
  })

  it('rejects a limit that is too large, a filter without a value, and an empty id', async () => {
    const graph = await open()
    await graph.write('acme', { entities: [person('ann')] })
    await expect(graph.queryEntities('acme', { limit: 1_001 })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'limit',
    })
    await expect(graph.queryEntities('acme', { offset: -1 })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'offset',
    })
    await expect(graph.queryEntities('acme', { filters: [{ property: 'age', op: 'lt' }] })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'filters',
    })
    await expect(
      graph.queryEntities('acme', { filters: [{ property: 'age', op: 'in', value: 3 }] }),
    ).rejects.toMatchObject({
      code: 'bad-option',
    })
    await expect(graph.write('acme', { entities: [person('')] })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'id',
    })
    await expect(graph.write('acme', { entities: [{ ...person('x'), sources: ['m1'] }] })).rejects.toMatchObject({
      code: 'bad-option',
      param: 'session',
    })
    await expect(graph.queryEntities('acme:ann')).rejects.toMatchObject({ code: 'bad-key' })
    await graph.close()
  })

  it('applies a change completely or not at all', async () => {
    const graph = await open()
    const [invalid, valid] = await Promise.allSettled([
      graph.write('acme', { entities: [person('ann'), person('')] }),
      graph.write('acme', { entities: [person('bob')] }),
    ])
    expect([invalid?.status, valid?.status]).toEqual(['rejected', 'fulfilled'])
    expect((await graph.queryEntities('acme')).entities.map(({ id }) => id)).toEqual(['bob'])
    await graph.close()
  })

  verifies('H-09', 'isolates workspaces from each other', async () => {
    const graph = await open()
    await graph.write('acme', {
      entities: [person('ann'), person('bob')],
      relationships: [{ from: 'ann', to: 'bob', type: 'KNOWS' }],
    })
    await graph.nodes.createEntities('acme', [{ name: 'Ann', entityType: 'person', observations: ['likes tea'] }])
    expect(await graph.getEntity('other', 'ann')).toBeUndefined()
    expect(await graph.write('other', { entities: [person('ann', { mine: true })], deleteEntities: ['bob'] })).toEqual({
      written: 1,
      unchanged: 0,
      dropped: 0,
    })
    expect(await graph.queryRelationships('other')).toEqual({ relationships: [], total: 0 })
    expect(await graph.nodes.searchNodes('other', 'tea')).toEqual({ entities: [], relations: [] })
    expect(await graph.erase('other')).toBe(1)
    expect((await graph.queryEntities('acme')).total).toBe(2)
    await graph.close()
  })

  it('deletes entities with their relationships', async () => {
    const graph = await open()
    const related = ['ann>bob', 'bob>cy', 'cy>ann'].map((pair) => ({
      from: pair.split('>')[0] as string,
      to: pair.split('>')[1] as string,
      type: 'KNOWS',
    }))
    await graph.write('acme', { entities: ['ann', 'bob', 'cy'].map((id) => person(id)), relationships: related })
    expect(await graph.write('acme', { deleteEntities: ['ann', 'nobody'] })).toEqual({
      written: 0,
      unchanged: 0,
      dropped: 1,
    })
    expect((await graph.queryRelationships('acme')).relationships.map(({ from, to }) => `${from}>${to}`)).toEqual([
      'bob>cy',
    ])
    await graph.close()
  })

  verifies(
    'H-01',
    'stores the entities of a saved session with its six relationship types, and finds them by property',
    async () => {
      const graph = await open()
      const session = 'session_1'
      const item = (number: number, category: string, importance: number) => ({
        ...{ type: 'context_item', id: `context_1_${number}`, session, sources: [`m${number}`] },
        properties: { category, content: `item ${number}`, importance },
      })
      const of = (from: string, type: string, to: string) => ({ from, type, to, session })
      await graph.write('acme', {
        entities: [
          {
            type: 'session',
            id: session,
            session,
            properties: { created_at: '2026-01-01T00:00:00.000Z', workspace_id: 'acme' },
          },
          {
            type: 'conversation',
            id: 'conversation_1',
            session,
            properties: { context: ['short', 'long'], token_count: 12 },
          },
          ...['code', 'file', 'data', 'concept', 'task'].map((category, at) => item(at, category, 2 * at + 1)),
          { type: 'file_reference', id: 'file_1', session, properties: { path: 'a.ts', hash: 'ab', last_modified: 5 } },
          {
            type: 'workspace_state',
            id: 'workspace_state_1',
            session,
            properties: { active_project: 'a', enabled_mcps: ['git'], settings: {} },
          },
        ],
        relationships: [
          of(session, 'SESSION_CONTINUES', 'session_0'),
          of(session, 'SESSION_HAS_CONVERSATION', 'conversation_1'),
          of(session, 'SESSION_IN_WORKSPACE', 'acme'),
          of('conversation_1', 'CONVERSATION_REFERENCES_ITEM', 'context_1_0'),
          of('conversation_1', 'CONVERSATION_REFERENCES_FILE', 'file_1'),
          of(session, 'SESSION_HAS_WORKSPACE_STATE', 'workspace_state_1'),
        ],
      })
      const important = {
        types: ['context_item'],
        filters: [{ property: 'importance', op: 'gte', value: 5 }],
        sort: [{ by: 'importance', order: 'desc' }],
      } as const
      expect(
        (await graph.queryEntities('acme', important)).entities.map(({ properties }) => properties.category),
      ).toEqual(['task', 'concept', 'data'])
      expect((await graph.queryRelationships('acme', { from: session })).total).toBe(4)
      expect(await graph.erase('acme', session)).toBe(9)
      expect(await graph.queryRelationships('acme')).toEqual({ relationships: [], total: 0 })
      await graph.close()
    },
  )

  verifies('H-01', 'keeps an entity of two sessions until both are erased', async () => {
    const graph = await open()
    const file = { type: 'file_reference', id: 'file_1', properties: { path: 'a.ts' } }
    await graph.write('acme', {
      entities: [{ ...file, session: 's1', sources: ['m1'] }, { ...person('only'), session: 's1' }, person('nobody')],
    })
    expect(await graph.write('acme', { entities: [{ ...file, session: 's2' }] })).toEqual({
      written: 0,
      unchanged: 1,
      dropped: 0,
    })
    expect((await graph.queryEntities('acme', { session: 's2' })).entities.map(({ id }) => id)).toEqual(['file_1'])
    expect(await graph.erase('acme', 's1')).toBe(1)
    expect((await graph.queryEntities('acme')).entities.map(({ id }) => id)).toEqual(['file_1', 'nobody'])
    expect(await graph.erase('acme', 's2')).toBe(1)
    expect((await graph.queryEntities('acme')).entities.map(({ id }) => id)).toEqual(['nobody'])
    await graph.close()
  })

  it('after close rejects with closed', async () => {
    const graph = await open()
    const written = graph.write('acme', { entities: [person('ann')] })
    await graph.close()
    expect(await written).toMatchObject({ written: 1 })
    await expect(graph.getEntity('acme', 'ann')).rejects.toMatchObject({ code: 'closed' })
    await expect(graph.write('acme', {})).rejects.toMatchObject({ code: 'closed' })
  })
})
