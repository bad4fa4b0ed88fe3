import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { importReferenceFile, serializeReferenceFile } from '../../src/graph/reference.ts'
import { startProgram } from '../cli/command.ts'
import { referenceServer } from '../mcp/referenceServer.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const ann = { name: 'Ann', entityType: 'person', observations: ['likes tea', 'likes tea'] }
const again = { name: 'Ann', entityType: 'robot', observations: [] }
const knows = { from: 'Ann', to: 'nobody', relationType: 'knows' }

const entity = (node: object): object => ({ type: 'entity', ...node })
const relation = (link: object): object => ({ type: 'relation', ...link })

/** Writes lines to a new file of the reference server. */
function referenceFile(...items: readonly (object | string)[]): string {
  const path = fresh('.jsonl')
  writeFileSync(path, items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))).join('\n'))
  return path
}

describe('import of a reference server file', () => {
  verifies('S-04', 'keeps the order and the duplicates of the file', async () => {
    const graph = await openGraph('ram:')
    const path = referenceFile(relation(knows), entity(ann), '', entity(again), relation(knows))
    expect(await importReferenceFile(graph.nodes, 'acme', path)).toEqual({ entities: 2, relations: 2 })
    expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [ann, again], relations: [knows, knows] })
    await graph.close()
  })

  it.each([
    ['truncated JSON', '{"type":"entity","name":"Bo'],
    ['an observation that is no text', entity({ name: 'Cy', entityType: 'person', observations: [1] })],
    ['null', 'null'],
    ['an unknown type', { type: 'other' }],
  ])('with %s in a line names the line and imports nothing', async (_, line) => {
    const graph = await openGraph('ram:')
    const path = referenceFile(entity(ann), '\r', line)
    await expect(importReferenceFile(graph.nodes, 'acme', path)).rejects.toMatchObject({
      code: 'bad-bundle',
      message: `${path}, line 3 is neither an entity nor a relation of the reference memory server. Nothing was imported.`,
    })
    expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [], relations: [] })
    await graph.close()
  })

  verifies('S-04', 'skips a missing file and a workspace that has nodes', async () => {
    const path = referenceFile(entity(ann), relation(knows))
    const graph = await openGraph('ram:')
    expect(await importReferenceFile(graph.nodes, 'acme', fresh('.jsonl'))).toBeUndefined()
    await graph.nodes.createEntities('mine', [again])
    expect(await importReferenceFile(graph.nodes, 'mine', path)).toBeUndefined()
    expect(await graph.nodes.readGraph('mine')).toEqual({ entities: [again], relations: [] })
    await expect(importReferenceFile(graph.nodes, 'acme', '/')).rejects.toMatchObject({
      code: 'bad-option',
      param: 'import',
    })
    await graph.close()
  })

  verifies('S-04', 'with importOnce happens once: deleted nodes do not come back', async () => {
    const file = fresh()
    const nodeGraph = { entities: [ann], relations: [knows] }
    const graph = await openGraph(`sqlite:${file}`)
    expect(await graph.nodes.importOnce('acme', nodeGraph)).toBe(true)
    await graph.nodes.deleteEntities('acme', ['Ann'])
    await graph.close()
    const reopened = await openGraph(`sqlite:${file}`)
    expect(await reopened.nodes.importOnce('acme', nodeGraph)).toBe(false)
    expect(await reopened.nodes.readGraph('acme')).toEqual({ entities: [], relations: [] })
    await reopened.nodes.createEntities('mine', [again])
    expect(await reopened.nodes.importOnce('mine', nodeGraph)).toBe(false)
    expect(await reopened.nodes.readGraph('mine')).toEqual({ entities: [again], relations: [] })
    await reopened.close()
  })
})

describe('export to a reference server file', () => {
  verifies('S-04', 'has the bytes the reference server writes, and the reference server reads it', async () => {
    const [path, copy] = [fresh('.jsonl'), fresh('.jsonl')]
    await using reference = await referenceServer(path)
    const odd = { name: 'ü \u2028"\n', entityType: '', observations: ['', 'two\nlines', '\ud83d'] }
    await reference.call('create_entities', { entities: [ann, ann, odd] })
    await reference.call('create_relations', { relations: [knows, { ...knows, to: odd.name }] })
    const graph = await openGraph('ram:')
    await importReferenceFile(graph.nodes, 'acme', path)
    const text = serializeReferenceFile(await graph.nodes.readGraph('acme'))
    expect(text).toBe(readFileSync(path, 'utf8'))
    await graph.nodes.createEntities('acme', [{ name: 'Bo', entityType: 'cat', observations: ['purrs'] }])
    writeFileSync(copy, serializeReferenceFile(await graph.nodes.readGraph('acme')))
    await using readingCopy = await referenceServer(copy)
    expect((await readingCopy.call('read_graph', {})).structuredContent).toEqual(await graph.nodes.readGraph('acme'))
    await graph.close()
  })

  it('is written by threadkeep export --format server-memory', async () => {
    const [file, path] = [fresh(), fresh('.jsonl')]
    const graph = await openGraph(`sqlite:${file}`)
    await graph.nodes.createEntities('default', [ann])
    await graph.nodes.createRelations('mine', [knows])
    await graph.close()
    const runExport = (...args: readonly string[]) =>
      startProgram('src/cli/main.ts', ['export', '--format', ...args], { THREADKEEP_STORE: `sqlite:${file}` }).result
    expect(await runExport('server-memory')).toEqual({ code: 0, stdout: JSON.stringify(entity(ann)), stderr: '' })
    expect((await runExport('server-memory', '--scope', 'mine', '--out', path)).stdout).toBe(
      `Exported 0 entities and 1 relation to ${path}.\n`,
    )
    expect(readFileSync(path, 'utf8')).toBe(JSON.stringify(relation(knows)))
    expect((await runExport('server-memory', '--scope', 'nobody')).stderr).toContain(
      'Scope nobody has no nodes. Choose another with --scope.',
    )
    expect((await runExport('server-memory', '--key', 'default:ann')).stderr).toContain('nodes belong to a scope')
    expect((await runExport('server-memory', '--passphrase-file', path)).stderr).toContain(
      'The server-memory format is plain text',
    )
    expect((await runExport('xml')).stderr).toContain('it must be bundle or server-memory')
  })
})
