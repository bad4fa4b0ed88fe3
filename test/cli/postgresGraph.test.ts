import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { verifies } from '../requirements/verifies.ts'
import { getPostgres } from '../support/postgres.ts'
import { createCliHarness } from './cliHarness.ts'

const { folder, run, output, json } = createCliHarness('postgres-graph')
const ann = { name: 'Ann', entityType: 'person', observations: ['likes tea'] }
const knows = { from: 'Ann', to: 'Bob', relationType: 'knows' }

describe('commands that use the graph, on a PostgreSQL store', () => {
  verifies(['H-05', 'S-02', 'X-05'], 'save, list, show, restore, export and forget', async () => {
    const url = await (await getPostgres()).createDatabase()
    const store = ['--store', url]
    const graph = await openGraph(url)
    await graph.nodes.importOnce('billing', { entities: [ann], relations: [knows] })

    const chat = join(folder, 'chat.txt')
    writeFileSync(chat, 'User: The login page fails with E-4711.\nAssistant: It is the umlaut.\n')
    const saved = await run(['save', chat, '--workspace', 'billing', '--title', 'Umlaut', '--json', ...store])
    const { sessionId } = JSON.parse(saved.stdout) as { sessionId: string }
    expect(await json('sessions', 'list', 'billing', ...store)).toMatchObject({
      items: [{ key: `billing:${sessionId}`, title: 'Umlaut', messages: 2 }],
    })
    expect(await json('sessions', 'show', `billing:${sessionId}`, ...store)).toMatchObject({
      saved: { sessionId, chain: [{ sessionId }] },
    })
    expect(await json('restore', `billing:${sessionId}`, '--workspace', 'billing', ...store)).toMatchObject({
      continues: sessionId,
      context: expect.stringContaining('E-4711'),
    })
    expect(await output('export', '--format', 'server-memory', '--scope', 'billing', ...store)).toBe(
      [
        { type: 'entity', ...ann },
        { type: 'relation', ...knows },
      ]
        .map((line) => JSON.stringify(line))
        .join('\n'),
    )

    const preview = await output('forget', 'billing', '--text', 'tea', '--dry-run', ...store)
    expect(preview).toContain('person Ann')
    await output('forget', 'billing', '--text', 'tea', '--yes', ...store)
    expect(await graph.nodes.readGraph('billing')).toEqual({
      entities: [{ ...ann, observations: [] }],
      relations: [knows],
    })
    await output('forget', 'billing', '--scope', '--yes', ...store)
    expect(await graph.nodes.readGraph('billing')).toEqual({ entities: [], relations: [] })
    expect(await graph.queryEntities('billing')).toEqual({ entities: [], total: 0 })
    await graph.close()
  })
})
