import { describe, expect, it } from 'vitest'
import {
  computeCacheDiscount,
  computeRequestCost,
  computeSaving,
  type PriceTable,
  parsePrices,
} from '../../../src/server/observability/prices.ts'
import { publishedPrices } from '../../../src/server/observability/publishedPrices.ts'
import { verifies } from '../../requirements/verifies.ts'

const table: PriceTable = {
  asOf: '2026-11-01',
  models: {
    luna: { input: 2, cached: 0.5, output: 10 },
    'luna-mini': { input: 0.2, output: 1 },
    'luna-2024-05-13': { input: 4, output: 20 },
    'own-*': { input: 1, output: 1 },
    'own-large': { input: 3, output: 9 },
    tiered: { input: 1, cached: 0.1, output: 5, upTo: 200_000, beyond: { input: 2, cached: 0.2, output: 8 } },
    'short-only': { input: 1, output: 5, upTo: 200_000 },
  },
}
const million = 1_000_000
const input = (model: string, prompt = million) => computeRequestCost(table, model, { prompt })?.input

describe('computeRequestCost', () => {
  verifies('S-10', 'prices cached tokens at their own rate', () => {
    expect(computeRequestCost(table, 'luna', { prompt: million, cached: 600_000, completion: 50_000 })).toEqual({
      input: 1.1,
      output: 0.5,
      total: 1.6,
      currency: 'USD',
    })
  })

  it('without a cached rate prices cached tokens as input', () =>
    expect(computeRequestCost(table, 'luna-mini', { prompt: million, cached: million })).toEqual({
      input: 0.2,
      output: 0,
      total: 0.2,
      currency: 'USD',
    }))

  it('never counts more cached tokens than prompt tokens', () =>
    expect(computeRequestCost(table, 'luna', { prompt: 1_000, cached: 5_000 })?.input).toBe(0.0005))

  it('rounds away floating-point noise', () =>
    expect(computeRequestCost(table, 'luna', { prompt: 100_000, completion: 10_000 })?.total).toBe(0.3))

  it('uses the longest matching name', () => {
    expect(input('luna')).toBe(2)
    expect(input('luna-mini')).toBe(0.2)
    expect(input('own-small')).toBe(1)
    expect(input('own-large')).toBe(3)
  })

  it('prices snapshots like their model, unless they have a price of their own', () => {
    expect(
      ['luna-2024-11-20', 'luna-20250929', 'luna@20250929', 'luna-latest', 'luna-0613', 'luna-001'].map((name) =>
        input(name),
      ),
    ).toEqual(Array(6).fill(2))
    expect(input('luna-2024-05-13')).toBe(4)
  })

  verifies('S-10', 'without a price returns undefined', () => {
    const unknown = [
      '',
      'sol',
      'lun',
      'luna-pro',
      'luna-2',
      'luna.5',
      'luna-mini-vision',
      'hosted/luna',
      'LUNA',
      'constructor',
      '__proto__',
    ]
    expect(unknown.map((name) => [name, computeRequestCost(table, name, { prompt: 1 })])).toEqual(
      unknown.map((name) => [name, undefined]),
    )
    expect(computeSaving(table, 'sol', { history: 2, shown: 1 })).toBeUndefined()
  })

  it('uses the rate for long prompts, or none when it is unknown', () => {
    expect(input('tiered', 200_000)).toBe(0.2)
    expect(input('tiered', 200_001)).toBe(0.400002)
    expect(computeRequestCost(table, 'tiered', { prompt: million, cached: million, completion: million })?.total).toBe(
      8.2,
    )
    expect(input('short-only', 200_000)).toBe(0.2)
    expect(input('short-only', 200_001)).toBeUndefined()
  })
})

describe('computeSaving', () => {
  verifies('S-10', 'returns the cost of the history minus that of the prompt, which may be more', () => {
    expect(computeSaving(table, 'luna', { history: 2 * million, shown: million })).toBe(2)
    expect(computeSaving(table, 'luna', { history: million, shown: 2 * million })).toBe(-2)
  })

  it('uses the rate of each length', () => {
    expect(computeSaving(table, 'tiered', { history: 200_001, shown: 200_000 })).toBe(0.200002)
    expect(computeSaving(table, 'short-only', { history: 200_001, shown: 200_000 })).toBeUndefined()
  })
})

describe('computeCacheDiscount', () => {
  it('is the difference to the price of uncached tokens', () => {
    expect(computeCacheDiscount(table, 'luna', { prompt: million, cached: 100_000 })).toBe(0.15)
    expect(computeCacheDiscount(table, 'luna-mini', { prompt: million, cached: million })).toBe(0)
    expect(computeCacheDiscount(table, 'sol', { prompt: million, cached: million })).toBeUndefined()
  })
})

describe('publishedPrices', () => {
  it('is a valid, dated table', () => {
    expect(parsePrices(publishedPrices)).toEqual(publishedPrices)
    expect(publishedPrices.asOf).toMatch(/^\d{4}-\d\d-\d\d$/)
    const odd = Object.entries(publishedPrices.models).filter(([, { input, cached = 0, output, upTo, beyond }]) => {
      const isOrdered = cached < input && input < output
      return (
        !isOrdered || (beyond !== undefined && (upTo === undefined || beyond.input <= input || beyond.output <= output))
      )
    })
    expect(odd).toEqual([])
  })

  it('has models of four providers, and matches their snapshots', () => {
    const names = ['gpt-5.4-2026-03-05', 'claude-sonnet-4-5-20250929', 'gemini-2.5-pro', 'grok-4.3-latest']
    expect(names.map((name) => computeRequestCost(publishedPrices, name, { prompt: 100_000 })?.total)).toEqual([
      0.25, 0.3, 0.125, 0.125,
    ])
  })
})

describe('parsePrices', () => {
  verifies('S-10', 'accepts a custom table and names an invalid field', () => {
    const own = { asOf: '2026-11-01', models: { 'my-model*': { input: 0.5, output: 2 } } }
    expect(computeRequestCost(parsePrices(own), 'my-model-v3', { prompt: million })?.total).toBe(0.5)
    const invalid = [
      [{ ...own, models: { 'my-model': { input: -1, output: 2 } } }, 'prices.models.my-model.input: '],
      [{ ...own, models: { 'my-model': { input: 1 } } }, 'prices.models.my-model.output: '],
      [{ ...own, models: { 'my-model': { input: 1, output: 2, price: 3 } } }, 'prices.models.my-model: '],
      [{ ...own, asOf: 'today' }, 'prices.asOf: '],
      ['free', 'prices: '],
    ] as const
    for (const [value, start] of invalid) {
      expect(() => parsePrices(value)).toThrow(
        expect.objectContaining({ code: 'bad-option', param: 'prices', message: expect.stringContaining(start) }),
      )
    }
    expect(() => parsePrices({ ...own, asOf: 'today' })).toThrow('Write { "asOf": "2026-11-01"')
  })
})
