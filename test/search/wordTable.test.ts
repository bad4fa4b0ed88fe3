import { describe, expect, it } from 'vitest'
import { PackedWordTable } from '../../src/search/wordTable.ts'
import { wordTable } from '../../src/stores/textAnalysis.ts'

describe('the word table', () => {
  it('of this package › knows words of related meaning, without the word itself', () => {
    const related = new Map(
      Array.from(
        wordTable().relatedStems('kid', () => true),
        ({ stem, similarity }) => [stem, similarity] as const,
      ),
    )
    expect(related.get('child') ?? related.get('children')).toBeGreaterThan(0.6)
    expect(related.has('kid')).toBe(false)
    expect(related.has('engin')).toBe(false)
    expect([...wordTable().relatedStems('zzyzx', () => true)]).toEqual([])
  })

  it.each([
    ['few', 'kid'],
    ['many', 'invoic'],
  ])('asked for known stems only, of %s related ones › returns these, the first time and later', (_, stem) => {
    const table = wordTable()
    const isKnown = (row: number): boolean => row % 7 === 0
    const list = (isAsked: (row: number) => boolean) =>
      Array.from(table.relatedStems(stem, isAsked), (related) => [related.row, related.stem, related.similarity])
    const [known, all, again] = [list(isKnown), list(() => true), list(isKnown)]
    expect(known.length).toBeGreaterThan(5)
    expect(known).toEqual(all.filter(([row]) => isKnown(row as number)))
    expect(again).toEqual(known)
  })

  it('adds the weighted vector of a stem to a sum', () => {
    const table = wordTable()
    const [once, twice] = [new Float32Array(table.dimensions), new Float32Array(table.dimensions)]
    const row = table.rowOf('river') as number
    table.addTo(once, row)
    table.addTo(twice, row, 2)
    expect(once.some((value) => value !== 0)).toBe(true)
    expect([...twice]).toEqual([...once].map((value) => 2 * value))
  })

  it('vectors of few and of many texts › have the same cosines', () => {
    const table = wordTable()
    const vectors = table.createVectors()
    const [river, kid] = ['river', 'kid'].map((stem) => {
      const vector = new Float32Array(table.dimensions)
      table.addTo(vector, table.rowOf(stem) as number)
      return vector
    }) as [Float32Array, Float32Array]
    for (const vector of [river, kid]) vectors.add(vector)
    const few = [...vectors.scores(river)]
    for (let count = 0; count < 600; count++) expect(vectors.add(kid)).toBe(count + 2)
    const many = [...vectors.scores(river)]
    expect(few[0]).toBeCloseTo(1, 5)
    expect(many.slice(0, 2).map((cosine, at) => Math.abs(cosine - (few[at] as number)) < 1e-5)).toEqual([true, true])
    expect(many[601]).toBeCloseTo(few[1] as number, 5)
  })

  it.each([0, 10, 24, 5_000])('of %d other bytes › is refused', (length) => {
    expect(() => new PackedWordTable(new Uint8Array(length))).toThrow('This is not a word table.')
  })
})
