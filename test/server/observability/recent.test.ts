import { describe, expect, it } from 'vitest'
import { Recent } from '../../../src/server/observability/recent.ts'

describe('what was used last', () => {
  const using = (most: number, ...names: readonly string[]): Recent<{ uses: number }> => {
    const recent = new Recent(most, () => ({ uses: 0 }))
    for (const name of names) recent.used(name).uses++
    return recent
  }
  const kept = (recent: Recent<{ uses: number }>) =>
    ['a', 'b', 'c', 'd', 'e'].filter((name) => recent.get(name) !== undefined).join('')

  it('stays, and what was not used for the longest time goes', () => {
    expect(kept(using(3, 'a', 'b', 'c', 'a', 'd'))).toBe('acd')
    expect(kept(using(3, 'a', 'b', 'c', 'b', 'b', 'a', 'd', 'e'))).toBe('ade')
    expect(using(3, 'a', 'b', 'a').get('a')).toEqual({ uses: 2 })
  })

  it('is not what was only looked at', () => {
    const recent = using(2, 'a', 'b')
    recent.get('a')
    recent.used('c')
    expect(kept(recent)).toBe('bc')
  })

  it.each([
    ['a', 'cde'],
    ['b', 'cde'],
    ['c', 'bde'],
  ])('is in the same order after %s has gone from among three', (gone, left) => {
    const recent = using(3, 'a', 'b', 'c')
    recent.drop((name) => name === gone)
    for (const name of ['d', 'e']) recent.used(name)
    expect(kept(recent)).toBe(left)
  })

  it('begins anew after everything has gone', () => {
    const recent = using(2, 'a', 'b')
    recent.drop(() => true)
    for (const name of ['c', 'd', 'e']) recent.used(name)
    expect(kept(recent)).toBe('de')
  })
})
