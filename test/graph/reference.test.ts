import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { openGraph } from '../../src/graph/graph.ts'
import { importNodes, takeInReference } from '../../src/graph/reference.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/places.ts'

const fresh = freshFiles()
const ann = { name: 'Ann', entityType: 'person', observations: ['likes tea', 'likes tea'] }
const again = { name: 'Ann', entityType: 'robot', observations: [] }
const knows = { from: 'Ann', to: 'nobody', relationType: 'knows' }

const lines = (...items: readonly (object | string)[]): string => items.map((item) => (typeof item === 'string' ? item : JSON.stringify(item))).join('\n')
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
    expect(await importNodes(graph.nodes, 'acme', text)).toEqual({ entities: 1, relations: 0, warnings: [1, 2, 4, 5].map(left) })
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
    await expect(takeInReference(later.nodes, 'acme', '/')).rejects.toMatchObject({ code: 'bad-option', param: 'MEMORY_FILE_PATH' })
    await later.close()
  })
})
