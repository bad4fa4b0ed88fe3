import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { exportNodes, importNodes, takeInReference } from '../../src/graph/reference.ts'
import { start } from '../cli/command.ts'
import { referenceServer } from '../mcp/referenceServer.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'

const fresh = freshFiles()
const ann = { name: 'Ann', entityType: 'person', observations: ['likes tea', 'likes tea'] }
const again = { name: 'Ann', entityType: 'robot', observations: [] }
const knows = { from: 'Ann', to: 'nobody', relationType: 'knows' }

const lines = (...items: readonly (object | string)[]): string =>
  items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))).join('\n')
const entity = (node: object): object => ({ type: 'entity', ...node })
const relation = (link: object): object => ({ type: 'relation', ...link })

describe('the file of the reference memory server', () => {
  verifies('S-04', 'is taken in as the reference would read it, in order and with what it has twice', async () => {
    const graph = await openGraph('ram:')
    const text = lines(relation(knows), entity(ann), '', entity(again), relation(knows))
    expect(await importNodes(graph.nodes, 'acme', text)).toEqual({ entities: 2, relations: 2, warnings: [] })
    expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [ann, again], relations: [knows, knows] })
    await graph.close()
  })

  it('loses only the lines that cannot be read, and says which', async () => {
    const graph = await openGraph('ram:')
    const text = lines(
      '{"type":"entity","name":"Bo',
      entity({ name: 'Cy', entityType: 'person', observations: [1] }),
      entity(ann),
      'null',
      { type: 'other' },
      '\r',
    )
    const left = (line: number): string => `Line ${line} is neither an entity nor a relation and was left out.`
    expect(await importNodes(graph.nodes, 'acme', text)).toEqual({
      entities: 1,
      relations: 0,
      warnings: [1, 2, 4, 5].map(left),
    })
    expect(await graph.nodes.readGraph('acme')).toEqual({ entities: [ann], relations: [] })
    await graph.close()
  })

  verifies('S-04', 'begins an empty workspace once: what is deleted or was there before stays so', async () => {
    const [file, path] = [fresh(), fresh('.jsonl')]
    writeFileSync(path, lines(entity(ann), relation(knows)))
    const graph = await openGraph(`sqlite:${file}`)
    expect(await takeInReference(graph.nodes, 'acme', fresh('.jsonl'))).toBeUndefined()
    expect(await takeInReference(graph.nodes, 'acme', path)).toEqual({ entities: 1, relations: 1, warnings: [] })
    await graph.nodes.deleteEntities('acme', ['Ann'])
    await graph.close()
    const later = await openGraph(`sqlite:${file}`)
    expect(await takeInReference(later.nodes, 'acme', path)).toBeUndefined()
    expect(await later.nodes.readGraph('acme')).toEqual({ entities: [], relations: [] })
    await later.nodes.createEntities('mine', [again])
    expect(await takeInReference(later.nodes, 'mine', path)).toBeUndefined()
    expect(await later.nodes.readGraph('mine')).toEqual({ entities: [again], relations: [] })
    await expect(takeInReference(later.nodes, 'acme', '/')).rejects.toMatchObject({
      code: 'bad-option',
      param: 'MEMORY_FILE_PATH',
    })
    await later.close()
  })

  verifies('S-04', 'is written to the byte as the reference writes it, and read by it as the same graph', async () => {
    const [path, copy] = [fresh('.jsonl'), fresh('.jsonl')]
    await using reference = await referenceServer(path)
    const odd = { name: 'ü \u2028"\n', entityType: '', observations: ['', 'two\nlines', '\ud83d'] }
    await reference.call('create_entities', { entities: [ann, ann, odd] })
    await reference.call('create_relations', { relations: [knows, { ...knows, to: odd.name }] })
    const graph = await openGraph('ram:')
    await importNodes(graph.nodes, 'acme', readFileSync(path, 'utf8'))
    const text = exportNodes(await graph.nodes.readGraph('acme'))
    expect(text).toBe(readFileSync(path, 'utf8'))
    await graph.nodes.createEntities('acme', [{ name: 'Bo', entityType: 'cat', observations: ['purrs'] }])
    writeFileSync(copy, exportNodes(await graph.nodes.readGraph('acme')))
    await using again = await referenceServer(copy)
    expect((await again.call('read_graph', {})).structuredContent).toEqual(await graph.nodes.readGraph('acme'))
    await graph.close()
  })

  it('is what threadkeep export --format server-memory writes', async () => {
    const [file, path] = [fresh(), fresh('.jsonl')]
    const graph = await openGraph(`sqlite:${file}`)
    await graph.nodes.createEntities('default', [ann])
    await graph.nodes.createRelations('mine', [knows])
    await graph.close()
    const exporting = (...args: readonly string[]) =>
      start('src/cli/main.ts', ['export', '--format', ...args], { THREADKEEP_STORE: `sqlite:${file}` }).ended
    expect(await exporting('server-memory')).toEqual({ code: 0, stdout: JSON.stringify(entity(ann)), stderr: '' })
    expect((await exporting('server-memory', '--scope', 'mine', '--out', path)).stdout).toBe(
      `0 entities and 1 relation are in ${path}.\n`,
    )
    expect(readFileSync(path, 'utf8')).toBe(JSON.stringify(relation(knows)))
    expect((await exporting('server-memory', '--scope', 'nobody')).stderr).toContain(
      'Scope nobody has no nodes. Name another with --scope.',
    )
    expect((await exporting('server-memory', '--key', 'default:ann')).stderr).toContain('nodes belong to a scope')
    expect((await exporting('server-memory', '--passphrase-file', path)).stderr).toContain(
      'server-memory reads plain text only',
    )
    expect((await exporting('xml')).stderr).toContain('it must be bundle or server-memory')
  })
})
