import { describe, expect, it } from 'vitest'
import {
  clipToFit,
  countTokens,
  createPassage,
  findLargestFitting,
  packPassages,
  rememberLast,
  renderPassages,
} from '../../bench/peers/passages.ts'

const day = 86_400_000
const passages = Array.from({ length: 40 }, (_, order) =>
  createPassage(
    {
      id: `m${order}`,
      at: Date.UTC(2024, 4, 8) + Math.floor(order / 10) * day,
      speaker: order % 2 === 0 ? 'Ada' : 'Ben',
      role: 'user',
      text: `Message ${order} tells of ${'the garden and the sea, '.repeat(1 + (order % 4))}and ends.`,
      group: null,
    },
    order,
  ),
)

describe('packed passages', () => {
  it.each([60, 200, 500])('with a budget of %i tokens › fill it without exceeding it', (budget) => {
    const tokens = countTokens(packPassages(passages.toReversed(), budget))
    expect(tokens).toBeLessThanOrEqual(budget)
    expect(tokens).toBeGreaterThan(budget - 30)
  })

  it('in any order of rank › are shown in reading order with a line for each day', () => {
    const text = renderPassages([passages[11], passages[0], passages[1]] as typeof passages)
    expect(text.split('\n').map((line) => line.slice(0, 14))).toEqual([
      '[8 May 2024]',
      'Ada: Message 0',
      'Ben: Message 1',
      '[9 May 2024]',
      'Ben: Message 1',
    ])
  })

  it('with a best passage that does not fit › show the next ones', () => {
    const long = { ...(passages[0] as (typeof passages)[number]), line: 'word '.repeat(500), tokens: 500 }
    expect(packPassages([long, ...passages.slice(1, 3)], 100)).toContain('Message 1')
  })

  it('with a single passage that does not fit › are clipped to the budget', () => {
    const long = { ...(passages[0] as (typeof passages)[number]), line: 'word '.repeat(500), tokens: 500 }
    const text = packPassages([long], 100)
    expect(countTokens(text)).toBeLessThanOrEqual(100)
    expect(countTokens(text)).toBeGreaterThan(95)
  })
})

describe('a clipped text', () => {
  it('that fits › stays as it is', () => expect(clipToFit('one two three', 10)).toBe('one two three'))
  it('without a budget › is empty', () => expect(clipToFit('one two three', -1)).toBe(''))
  it('that does not fit › keeps its beginning', () => expect(clipToFit('one two three four', 2)).toBe('one two'))
})

describe('the largest fitting number of results', () => {
  const search = async (tokensOf: (size: number) => number, max: number) => {
    const asked: number[] = []
    const size = await findLargestFitting({ max, budget: 1_000, tokensPerResult: 40 }, async (count) => {
      asked.push(count)
      return tokensOf(count)
    })
    return { size, asked }
  }

  it('with equal results › is found with few queries', async () => {
    const { size, asked } = await search((count) => count * 37, 500)
    expect(size).toBe(27)
    expect(asked.length).toBeLessThanOrEqual(4)
  })
  it('with uneven results › is exact', async () => expect((await search((count) => count ** 2, 500)).size).toBe(31))
  it('with results that all fit › is the maximum', async () => expect((await search(() => 5, 12)).size).toBe(12))
  it('with a first result that does not fit › is 0', async () => expect((await search(() => 5_000, 12)).size).toBe(0))
  it('without results › is 0', async () => expect((await search(() => 5, 0)).size).toBe(0))
})

describe('a remembered search', () => {
  it('with the same query again › runs once', async () => {
    const queries: string[] = []
    const search = rememberLast(async (query) => queries.push(query))
    for (const query of ['a', 'a', 'b', 'b', 'a']) await search(query)
    expect(queries).toEqual(['a', 'b', 'a'])
  })
})
