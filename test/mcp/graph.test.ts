import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { openGraph } from '../../src/graph/graph.ts'
import type { Call } from '../../src/mcp/tool.ts'
import { graphTools } from '../../src/mcp/tools/graph.ts'
import { verifies } from '../requirements/verifies.ts'

type Ask = (
  name: string,
  input: Readonly<Record<string, unknown>>,
  workspace?: string,
) => Promise<Record<string, unknown>>

/** Asks the tools of a new graph in RAM; what they answer fits their output schema. */
async function asking(): Promise<{ readonly ask: Ask; readonly close: () => Promise<void> }> {
  let now = Date.UTC(2026, 0, 1)
  const graph = await openGraph('ram:', { clock: () => (now += 1_000) })
  const ask: Ask = async (name, input, workspace = 'acme') => {
    const tool = graphTools.find((one) => one.name === name)
    if (tool === undefined) throw new Error(`There is no tool ${name}.`)
    const call = { desk: { graph }, workspace, signal: new AbortController().signal } as unknown as Call
    const { text, structured } = await tool.run(tool.input.parse(input), call)
    expect(text).not.toBe('')
    return tool.output.strict().parse(structured)
  }
  return { ask, close: () => graph.close() }
}

describe('the tools of the graph', () => {
  verifies(
    'H-06',
    'are upsert_entity, create_relationship, query_entities and query_relationships, with titles, hints and schemas that need no reference',
    () => {
      expect(
        graphTools.map(({ name, title, annotations }) => [
          name,
          title,
          annotations.readOnlyHint,
          annotations.idempotentHint,
        ]),
      ).toEqual([
        ['upsert_entity', 'Create or update an entity', false, true],
        ['create_relationship', 'Relate two entities', false, true],
        ['query_entities', 'Find entities', true, true],
        ['query_relationships', 'Find relationships', true, true],
      ])
      for (const { input, output } of graphTools)
        expect(JSON.stringify([z.toJSONSchema(input), z.toJSONSchema(output)])).not.toContain('$ref')
    },
  )

  verifies('H-06', 'store an entity, replace it, and say when there was nothing to store', async () => {
    const { ask, close } = await asking()
    const ann = { type: 'person', id: 'ann', properties: { city: 'Oslo' } }
    expect(await ask('upsert_entity', ann)).toEqual({ id: 'ann', changed: true })
    expect(await ask('upsert_entity', ann)).toEqual({ id: 'ann', changed: false })
    expect(await ask('upsert_entity', { ...ann, properties: { age: 41 } })).toEqual({ id: 'ann', changed: true })
    expect(await ask('query_entities', {})).toEqual({
      entities: [
        {
          type: 'person',
          id: 'ann',
          properties: { age: 41 },
          created_at: '2026-01-01T00:00:01.000Z',
          updated_at: '2026-01-01T00:00:03.000Z',
        },
      ],
      total: 1,
    })
    await close()
  })

  verifies('H-06', 'let nothing else take the place of a saved session', async () => {
    const { ask, close } = await asking()
    await ask('upsert_entity', { type: 'session', id: 'session_1', properties: { title: 'One' } })
    await expect(ask('upsert_entity', { type: 'note', id: 'session_1', properties: {} })).rejects.toThrow(
      '"session_1" is a saved session, and stays one. Choose another id.',
    )
    expect(await ask('upsert_entity', { type: 'session', id: 'session_1', properties: { title: 'Two' } })).toEqual({
      id: 'session_1',
      changed: true,
    })
    await close()
  })

  verifies('H-06', 'relate entities of one workspace only', async () => {
    const { ask, close } = await asking()
    for (const id of ['ann', 'oslo']) await ask('upsert_entity', { type: 'thing', id, properties: {} })
    await ask('upsert_entity', { type: 'thing', id: 'secret', properties: {} }, 'other')
    const lives = { from_id: 'ann', to_id: 'oslo', type: 'LIVES_IN', properties: { since: 2020 } }
    const { id } = await ask('create_relationship', lives)
    expect(await ask('create_relationship', lives)).toEqual({ id, changed: false })
    const missing = (id: string): string =>
      `There is no entity "${id}" in this workspace. Create it with upsert_entity first.`
    await expect(ask('create_relationship', { ...lives, to_id: 'secret' })).rejects.toThrow(missing('secret'))
    await expect(ask('create_relationship', { ...lives, from_id: 'nowhere' })).rejects.toThrow(missing('nowhere'))
    expect(await ask('query_relationships', { from_id: 'ann' })).toEqual({
      relationships: [
        {
          id,
          type: 'LIVES_IN',
          from_id: 'ann',
          to_id: 'oslo',
          properties: { since: 2020 },
          created_at: '2026-01-01T00:00:04.000Z',
          updated_at: '2026-01-01T00:00:04.000Z',
        },
      ],
      total: 1,
    })
    expect(await ask('query_relationships', { to_id: 'ann' })).toEqual({ relationships: [], total: 0 })
    await close()
  })

  verifies('H-06', 'find by type and properties, sorted, page by page, with the total', async () => {
    const { ask, close } = await asking()
    for (const [at, age] of [30, 10, 20].entries())
      await ask('upsert_entity', { type: 'person', id: `p${at}`, properties: { age } })
    await ask('upsert_entity', { type: 'place', id: 'oslo', properties: { age: 900 } })
    const found = async (query: Readonly<Record<string, unknown>>) => {
      const { entities, total } = await ask('query_entities', query)
      return [(entities as { id: string }[]).map(({ id }) => id), total]
    }
    const old = [{ property: 'age', op: 'gte', value: 20 }]
    expect(await found({ types: ['person'], filters: old, sort: [{ by: 'age', order: 'desc' }], limit: 1 })).toEqual([
      ['p0'],
      2,
    ])
    expect(
      await found({ types: ['person'], filters: old, sort: [{ by: 'age', order: 'desc' }], limit: 1, offset: 1 }),
    ).toEqual([['p2'], 2])
    expect(await found({ sort: [{ by: 'created_at', order: 'desc' }], limit: 2 })).toEqual([['oslo', 'p2'], 4])
    expect(await found({ types: ['nothing'] })).toEqual([[], 0])
    await close()
  })

  it('refuse what their schemas do not allow', async () => {
    const { ask, close } = await asking()
    await expect(ask('query_entities', { limit: 1_001 })).rejects.toThrow('1000')
    await expect(ask('query_entities', { filters: [{ property: 'a', op: 'like', value: 'b' }] })).rejects.toThrow('op')
    await expect(ask('query_entities', { filters: [{ property: 'a', op: 'lt', value: [] }] })).rejects.toThrow(
      'a number or a text',
    )
    await expect(ask('upsert_entity', { type: '', id: 'x', properties: {} })).rejects.toThrow('type')
    await close()
  })
})
