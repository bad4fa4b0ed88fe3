import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseSource, root } from '../shape/source.ts'
import { findCitations, listCitedIds } from './citations.ts'
import { renderFeatures } from './features.ts'
import { rows } from './rows.ts'

const cited = findCitations()
const kept = rows.filter((row) => row.status === 'kept')

describe('requirement rows', () => {
  it('have unique ids', () => expect(rows.map((row) => row.id)).toEqual([...new Set(rows.map((row) => row.id))]))
  it('with status kept are cited by a test', () =>
    expect(kept.filter((row) => !cited.has(row.id)).map((row) => row.id)).toEqual([]))
  it('with status kept name existing files, each once', () => {
    const wrong = kept.flatMap((row) =>
      row.in
        .filter((file, index) => !existsSync(root + file) || row.in.indexOf(file) !== index)
        .map((file) => `${row.id} ${file}`),
    )
    expect(wrong).toEqual([])
  })
  it('are the only ids that tests cite', () => {
    const known = new Set(rows.map((row) => row.id))
    expect([...cited].filter(([id]) => !known.has(id)).map(([id, files]) => `${id} in ${files.join(', ')}`)).toEqual([])
  })
  it('match FEATURES.md (run npm run features to update it)', () =>
    expect(readFileSync(`${root}FEATURES.md`, 'utf8')).toBe(renderFeatures(cited)))
})

describe('listCitedIds', () => {
  const list = (text: string) => listCitedIds(parseSource('test/a.test.ts', text))

  it('returns single ids and lists of ids, without those in comments', () =>
    expect(
      list(
        "verifies('E-01', 'a', f)\nverifies(\n  ['E-02', 'X-01'],\n  'b', f)\n// verifies('E-03', 'c', f)\nverifies('E-01', 'd', f)",
      ),
    ).toEqual(['E-01', 'E-02', 'X-01']))
  it('with a computed id throws', () =>
    expect(() => list('\nverifies(id, "a", f)')).toThrow('test/a.test.ts:2: pass the row id to verifies as a literal.'))
})
