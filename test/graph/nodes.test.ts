import { describe, expect, it } from 'vitest'
import { verifies } from '../requirements/verifies.ts'
import { graphBackends } from './fixtures.ts'

const node = (name: string, ...observations: readonly string[]) => ({ name, entityType: 'thing', observations })
const link = (from: string, to: string, relationType = 'knows') => ({ from, to, relationType })

describe.each(graphBackends())('nodes in $name', ({ open }) => {
  verifies(
    'S-04',
    'created with an existing name are skipped, with a name given twice in one call are both kept',
    async () => {
      const { nodes, close } = await openNodes(open)
      expect(await nodes.createEntities('w', [node('a', 'first'), node('a', 'second')])).toEqual([
        node('a', 'first'),
        node('a', 'second'),
      ])
      expect(await nodes.createEntities('w', [node('a', 'third'), node('b')])).toEqual([node('b')])
      expect(await nodes.createRelations('w', [link('a', 'b'), link('a', 'b')])).toEqual([
        link('a', 'b'),
        link('a', 'b'),
      ])
      expect(await nodes.createRelations('w', [link('a', 'b'), link('b', 'a')])).toEqual([link('b', 'a')])
      expect(await nodes.readGraph('w')).toEqual({
        entities: [node('a', 'first'), node('a', 'second'), node('b')],
        relations: [link('a', 'b'), link('a', 'b'), link('b', 'a')],
      })
      await close()
    },
  )

  verifies('S-04', 'changed by several calls at once › are changed in the order of the calls', async () => {
    const { nodes, close } = await openNodes(open)
    // Masking pauses after 200 nodes.
    const many = Array.from({ length: 201 }, (_, index) => node(`n${index}`))
    await Promise.all([
      nodes.createEntities('w', many),
      nodes.addObservations('w', [{ entityName: 'n200', contents: ['seen'] }]),
      nodes.deleteEntities('w', ['n0']),
      nodes.createEntities('w', [node('n0', 'again')]),
    ])
    const { entities } = await nodes.openNodes('w', ['n0', 'n200'])
    expect(entities).toEqual([node('n200', 'seen'), node('n0', 'again')])
    await close()
  })

  verifies('S-04', 'get new observations on the first node of a name, all or none', async () => {
    const { nodes, close } = await openNodes(open)
    await nodes.createEntities('w', [node('a', 'old'), node('a')])
    expect(
      await nodes.addObservations('w', [
        { entityName: 'a', contents: ['old', 'new', 'new'] },
        { entityName: 'a', contents: ['new', 'newer'] },
      ]),
    ).toEqual([
      { entityName: 'a', addedObservations: ['new', 'new'] },
      { entityName: 'a', addedObservations: ['newer'] },
    ])
    const failing = nodes.addObservations('w', [
      { entityName: 'a', contents: ['lost'] },
      { entityName: 'x', contents: [] },
    ])
    await expect(failing).rejects.toThrow(/^Entity with name x not found$/)
    expect(await nodes.openNodes('w', ['a'])).toEqual({
      entities: [node('a', 'old', 'new', 'new', 'newer'), node('a')],
      relations: [],
    })
    await close()
  })

  verifies('S-04', 'are deleted with their relations, and observations one by one', async () => {
    const { nodes, close } = await openNodes(open)
    await nodes.createEntities('w', [node('a', 'x', 'y', 'x'), node('b'), node('a', 'x')])
    await nodes.createRelations('w', [link('a', 'b'), link('b', 'c'), link('c', 'a')])
    await nodes.deleteObservations('w', [
      { entityName: 'a', observations: ['x', 'nothing'] },
      { entityName: 'nobody', observations: ['x'] },
    ])
    expect((await nodes.readGraph('w')).entities).toEqual([node('a', 'y'), node('b'), node('a', 'x')])
    await nodes.deleteRelations('w', [link('b', 'c', 'likes')])
    await nodes.deleteEntities('w', ['a', 'nobody'])
    expect(await nodes.readGraph('w')).toEqual({ entities: [node('b')], relations: [link('b', 'c')] })
    await close()
  })

  verifies('S-04', 'are found by any part of their name, type or observations, ignoring case', async () => {
    const { nodes, close } = await openNodes(open)
    await nodes.createEntities('w', [
      node('Straße', 'in İzmir'),
      node('b', '100% "sure"', '😀'),
      node('ΟΔΟΣ', 'zero\0byte'),
    ])
    await nodes.createRelations('w', [link('b', 'elsewhere'), link('nobody', 'b'), link('x', 'y')])
    const found = async (query: string) => (await nodes.searchNodes('w', query)).entities.map(({ name }) => name)
    expect(await found('STRASSE')).toEqual([])
    expect(await found('STRAß')).toEqual(['Straße'])
    expect(await found('İZM')).toEqual(['Straße'])
    expect(await found('"SURE"')).toEqual(['b'])
    expect(await found('%')).toEqual(['b'])
    expect(await found('\ud83d')).toEqual(['b'])
    expect(await found('O\0B')).toEqual(['ΟΔΟΣ'])
    expect(await found('byte')).toEqual(['ΟΔΟΣ'])
    expect(await found('οδο')).toEqual(['ΟΔΟΣ'])
    expect(await found('THING')).toEqual(['Straße', 'b', 'ΟΔΟΣ'])
    expect(await found('')).toEqual(['Straße', 'b', 'ΟΔΟΣ'])
    expect((await nodes.searchNodes('w', 'sure')).relations).toEqual([link('b', 'elsewhere'), link('nobody', 'b')])
    await close()
  })

  it('with a long text › are found by every part of it', async () => {
    const { nodes, close } = await openNodes(open)
    const long = `${'x'.repeat(10_000)} a Green walrus ${'y'.repeat(10_000)}`
    const [short, named] = [node('c', 'a green walrus'), node('z'.repeat(9_000), 'none')]
    await nodes.createEntities('w', [node('a', long), node('b', 'other'), short, named])
    await nodes.createEntities('v', [node('a', long)])
    const found = async (query: string) => (await nodes.searchNodes('w', query)).entities
    expect(await found('A GREEN walrus')).toEqual([node('a', long), short])
    expect(await found('zzzzzz')).toEqual([named])
    await nodes.deleteObservations('w', [{ entityName: 'a', observations: [long] }])
    expect(await found('green walrus')).toEqual([short])
    await close()
  })

  it('searched with a long text match all of it, not only its beginning', async () => {
    const { nodes, close } = await openNodes(open)
    const long = 'abcdefghij'.repeat(20)
    await nodes.createEntities('w', [node('a', `${long}1`), node('b', `${long}2`)])
    expect((await nodes.searchNodes('w', `${long}2`)).entities).toEqual([node('b', `${long}2`)])
    await close()
  })

  it('with more observations than one statement reads › return all of them in order', async () => {
    const { nodes, close } = await openNodes(open)
    const texts = (count: number) => Array.from({ length: count }, (_, at) => `text ${at}`)
    const stored = [node('a', ...texts(150)), node('b'), node('c', ...texts(450)), node('d', 'x'.repeat(70_000), 'end')]
    await nodes.createEntities('w', stored)
    await nodes.createEntities('other', [node('a', 'hidden')])
    await nodes.addObservations('w', [{ entityName: 'a', contents: ['later'] }])
    const [first, ...rest] = stored
    const all = [{ ...first, observations: [...(first?.observations ?? []), 'later'] }, ...rest]
    expect((await nodes.readGraph('w')).entities).toEqual(all)
    expect((await nodes.openNodes('w', ['d', 'a', 'c'])).entities).toEqual([all[0], all[2], all[3]])
    expect((await nodes.searchNodes('w', 'text 4')).entities).toEqual([all[0], all[2]])
    await close()
  })

  verifies('R-03', 'with more characters than the result may have › are not returned', async () => {
    const { nodes, close } = await openNodes(open)
    await nodes.createEntities('w', [node('a', 'green'), node('b', 'x'.repeat(300)), node('c', 'green')])
    await nodes.createRelations('w', [link('c', 'y'.repeat(300))])
    const error = {
      code: 'bad-option',
      param: 'maxCharacters',
      message:
        'The result has more than 200 characters. Use search_nodes with a longer query, or open_nodes with fewer names.',
    }
    const limit = { maxCharacters: 200 }
    await expect(nodes.readGraph('w', limit)).rejects.toMatchObject(error)
    await expect(nodes.openNodes('w', ['b'], limit)).rejects.toMatchObject(error)
    await expect(nodes.openNodes('w', ['c'], limit)).rejects.toMatchObject(error)
    await expect(nodes.searchNodes('w', 'xx', limit)).rejects.toMatchObject(error)
    await expect(nodes.searchNodes('w', 'green', limit)).rejects.toMatchObject(error)
    expect(await nodes.openNodes('w', ['a'], limit)).toEqual({ entities: [node('a', 'green')], relations: [] })
    // What was read to search does not count.
    expect(await nodes.searchNodes('w', 'a', limit)).toEqual({ entities: [node('a', 'green')], relations: [] })
    await nodes.deleteEntities('w', ['b', 'c'])
    // Texts of 1, 5 and 5 characters, with three characters around each.
    expect((await nodes.readGraph('w', { maxCharacters: 20 })).entities).toHaveLength(1)
    await expect(nodes.readGraph('w', { maxCharacters: 19 })).rejects.toMatchObject({ code: 'bad-option' })
    await close()
  })
})

async function openNodes(open: ReturnType<typeof graphBackends>[number]['open']) {
  const graph = await open()
  return { nodes: graph.nodes, close: () => graph.close() }
}
