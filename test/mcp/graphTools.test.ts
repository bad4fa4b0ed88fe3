import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Clock } from '../../src/domain/ports.ts'
import { openGraph } from '../../src/graph/graph.ts'
import type { Graph } from '../../src/graph/types.ts'
import { graphTools } from '../../src/mcp/tools/graph.ts'
import type { ToolInvocation } from '../../src/mcp/tools/tool.ts'
import { requireGraph } from '../graph/fixtures.ts'
import { verifies } from '../requirements/verifies.ts'
import { createEmptyStores } from '../support/postgres.ts'

type CallTool = (
  name: string,
  input: Readonly<Record<string, unknown>>,
  workspace?: string,
) => Promise<Record<string, unknown>>

/** Opens a graph with a clock; `callTool` checks every result against the output schema. */
async function createHarness(
  open: (clock: Clock) => Promise<Graph>,
): Promise<{ readonly callTool: CallTool; readonly close: () => Promise<void> }> {
  let now = Date.UTC(2026, 0, 1)
  const graph = await open(() => (now += 1_000))
  const callTool: CallTool = async (name, input, workspace = 'acme') => {
    const tool = graphTools.find((one) => one.name === name)
    if (tool === undefined) throw new Error(`There is no tool ${name}.`)
    const invocation = {
      context: { graph },
      workspace,
      signal: new AbortController().signal,
    } as unknown as ToolInvocation
    const { text, structured } = await tool.run(tool.input.parse(input), invocation)
    expect(text).not.toBe('')
    return tool.output.strict().parse(structured)
  }
  return { callTool, close: () => graph.close() }
}

const openPostgres = createEmptyStores()

describe.each([
  { name: 'RAM', open: (clock: Clock) => openGraph('ram:', { clock }) },
  { name: 'PostgreSQL', open: async (clock: Clock) => requireGraph(await openPostgres(), clock) },
])('graph tools on $name', ({ open }) => {
  verifies(
    'H-06',
    'are upsert_entity, create_relationship, query_entities and query_relationships, with titles, hints and schemas without $ref',
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

  verifies('H-06', 'store an entity, replace it, and report when nothing changed', async () => {
    const { callTool, close } = await createHarness(open)
    const ann = { type: 'person', id: 'ann', properties: { city: 'Oslo' } }
    expect(await callTool('upsert_entity', ann)).toEqual({ id: 'ann', changed: true })
    expect(await callTool('upsert_entity', ann)).toEqual({ id: 'ann', changed: false })
    expect(await callTool('upsert_entity', { ...ann, properties: { age: 41 } })).toEqual({ id: 'ann', changed: true })
    expect(await callTool('query_entities', {})).toEqual({
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

  verifies('H-06', 'do not change the type of a saved session', async () => {
    const { callTool, close } = await createHarness(open)
    await callTool('upsert_entity', { type: 'session', id: 'session_1', properties: { title: 'One' } })
    await expect(callTool('upsert_entity', { type: 'note', id: 'session_1', properties: {} })).rejects.toThrow(
      '"session_1" is a saved session, whose type cannot be changed. Choose another id.',
    )
    expect(await callTool('upsert_entity', { type: 'session', id: 'session_1', properties: { title: 'Two' } })).toEqual(
      {
        id: 'session_1',
        changed: true,
      },
    )
    await close()
  })

  verifies('H-06', 'relate entities of one workspace only', async () => {
    const { callTool, close } = await createHarness(open)
    for (const id of ['ann', 'oslo']) await callTool('upsert_entity', { type: 'thing', id, properties: {} })
    await callTool('upsert_entity', { type: 'thing', id: 'secret', properties: {} }, 'other')
    const lives = { from_id: 'ann', to_id: 'oslo', type: 'LIVES_IN', properties: { since: 2020 } }
    const { id } = await callTool('create_relationship', lives)
    expect(await callTool('create_relationship', lives)).toEqual({ id, changed: false })
    const missing = (id: string): string =>
      `There is no entity "${id}" in this workspace. Create it with upsert_entity first.`
    await expect(callTool('create_relationship', { ...lives, to_id: 'secret' })).rejects.toThrow(missing('secret'))
    await expect(callTool('create_relationship', { ...lives, from_id: 'nowhere' })).rejects.toThrow(missing('nowhere'))
    expect(await callTool('query_relationships', { from_id: 'ann' })).toEqual({
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
    expect(await callTool('query_relationships', { to_id: 'ann' })).toEqual({ relationships: [], total: 0 })
    await close()
  })

  verifies('H-06', 'filter by type and properties, sort, page and count', async () => {
    const { callTool, close } = await createHarness(open)
    for (const [at, age] of [30, 10, 20].entries())
      await callTool('upsert_entity', { type: 'person', id: `p${at}`, properties: { age } })
    await callTool('upsert_entity', { type: 'place', id: 'oslo', properties: { age: 900 } })
    const found = async (query: Readonly<Record<string, unknown>>) => {
      const { entities, total } = await callTool('query_entities', query)
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

  it('reject arguments that do not match their schemas', async () => {
    const { callTool, close } = await createHarness(open)
    await expect(callTool('query_entities', { limit: 1_001 })).rejects.toThrow('1000')
    await expect(callTool('query_entities', { filters: [{ property: 'a', op: 'like', value: 'b' }] })).rejects.toThrow(
      'op',
    )
    await expect(callTool('query_entities', { filters: [{ property: 'a', op: 'lt', value: [] }] })).rejects.toThrow(
      'a number or a text',
    )
    await expect(callTool('upsert_entity', { type: '', id: 'x', properties: {} })).rejects.toThrow('type')
    await close()
  })
})
