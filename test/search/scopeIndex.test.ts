import { expect, it } from 'vitest'
import type { Fact } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { ScopeIndex } from '../../src/search/scopeIndex.ts'
import { newFact } from '../../src/stores/conformance/fixtures.ts'

const key = parseKey('acme:ann')
const entryCount = 900
const createFacts = (word: string): readonly Fact[] =>
  Array.from({ length: entryCount }, (_, at) => newFact(`f${at}`, `${word} ${at} is in order ${at % 7}.`))

it('a search index with replaced derived entries › indexes all again in steps, as a new one does', () => {
  const [before, after] = [createFacts('customer'), createFacts('invoice')]
  const changed = [...after.slice(0, 9), ...before.slice(9)]
  const [index, fresh] = [new ScopeIndex(), new ScopeIndex()]
  index.setDerived(key, before)
  index.setDerived(key, changed)
  fresh.setDerived(key, changed)
  const query = { text: 'customer 700 order', limit: 20 }
  const countSteps = (): number => [...index.searchInSteps(query)].length
  const [first, second] = [countSteps(), countSteps()]
  expect(first - second).toBeGreaterThanOrEqual(entryCount)
  expect(index.search(query)).toEqual(fresh.search(query))
})
