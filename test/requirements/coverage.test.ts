import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseSource, root } from '../shape/source.ts'
import { citations, citedIn } from './citations.ts'
import { featuresPage } from './features.ts'
import { rows } from './rows.ts'

const cited = citations()
const kept = rows.filter((row) => row.status === 'kept')

describe('the requirements', () => {
  it('have each id once', () => expect(rows.map((row) => row.id)).toEqual([...new Set(rows.map((row) => row.id))]))
  it('that are kept have a test', () =>
    expect(kept.filter((row) => !cited.has(row.id)).map((row) => row.id)).toEqual([]))
  it('that are kept name files that exist', () => {
    const missing = kept.flatMap((row) =>
      row.in.filter((file) => !existsSync(root + file)).map((file) => `${row.id} ${file}`),
    )
    expect(missing).toEqual([])
  })
  it('are the only ones that tests cite', () => {
    const known = new Set(rows.map((row) => row.id))
    expect([...cited].filter(([id]) => !known.has(id)).map(([id, files]) => `${id} in ${files.join(', ')}`)).toEqual([])
  })
  it('stand in FEATURES.md as they are; otherwise run: npm run features', () =>
    expect(readFileSync(`${root}FEATURES.md`, 'utf8')).toBe(featuresPage(cited)))
})

describe('a citation', () => {
  const read = (text: string) => citedIn(parseSource('test/a.test.ts', text))

  it('is an id or a list of ids, not one in a comment', () =>
    expect(
      read(
        "verifies('E-01', 'a', f)\nverifies(\n  ['E-02', 'X-01'],\n  'b', f)\n// verifies('E-03', 'c', f)\nverifies('E-01', 'd', f)",
      ),
    ).toEqual(['E-01', 'E-02', 'X-01']))
  it('is written out', () =>
    expect(() => read('\nverifies(id, "a", f)')).toThrow('test/a.test.ts:2 cites a row without writing its id'))
})
