import { describe, expect, it } from 'vitest'
import { publishedPrices } from '../../../src/server/observability/prices/published.ts'
import { costOf, type PriceTable, parsePrices, savedBy } from '../../../src/server/observability/prices.ts'
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
const input = (model: string, prompt = million) => costOf(table, model, { prompt })?.input

describe('what a request costs', () => {
  verifies('S-10', 'is told by a table of prices, with what came from the cache at its own price', () => {
    expect(costOf(table, 'luna', { prompt: million, cached: 600_000, completion: 50_000 })).toEqual({
      input: 1.1,
      output: 0.5,
      total: 1.6,
      currency: 'USD',
    })
  })

  it('is the full price where a table has none for the cache', () =>
    expect(costOf(table, 'luna-mini', { prompt: million, cached: million })).toEqual({
      input: 0.2,
      output: 0,
      total: 0.2,
      currency: 'USD',
    }))

  it('never counts more from the cache than was sent', () =>
    expect(costOf(table, 'luna', { prompt: 1_000, cached: 5_000 })?.input).toBe(0.0005))

  it('has no dust of fractions', () =>
    expect(costOf(table, 'luna', { prompt: 100_000, completion: 10_000 })?.total).toBe(0.3))

  it('is that of the longest name that fits', () => {
    expect(input('luna')).toBe(2)
    expect(input('luna-mini')).toBe(0.2)
    expect(input('own-small')).toBe(1)
    expect(input('own-large')).toBe(3)
  })

  it('is that of the model for its snapshots, unless one has a price of its own', () => {
    expect(
      ['luna-2024-11-20', 'luna-20250929', 'luna@20250929', 'luna-latest', 'luna-0613', 'luna-001'].map((name) =>
        input(name),
      ),
    ).toEqual(Array(6).fill(2))
    expect(input('luna-2024-05-13')).toBe(4)
  })

  verifies('S-10', 'is not guessed for a model without a price', () => {
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
    expect(unknown.map((name) => [name, costOf(table, name, { prompt: 1 })])).toEqual(
      unknown.map((name) => [name, undefined]),
    )
    expect(savedBy(table, 'sol', { saved: 1, cacheable: 1 })).toBeUndefined()
  })

  it('is another one for long prompts, or none if nobody says which', () => {
    expect(input('tiered', 200_000)).toBe(0.2)
    expect(input('tiered', 200_001)).toBe(0.400002)
    expect(costOf(table, 'tiered', { prompt: million, cached: million, completion: million })?.total).toBe(8.2)
    expect(input('short-only', 200_000)).toBe(0.2)
    expect(input('short-only', 200_001)).toBeUndefined()
  })
})

describe('what memory spares', () => {
  verifies(
    'S-10',
    'is what the tokens that were not sent would have cost, and what those that came before may cost less',
    () =>
      expect(savedBy(table, 'luna', { saved: million, cacheable: 100_000 })).toEqual({
        unsent: 2,
        cacheable: 0.15,
        currency: 'USD',
      }),
  )

  it('is nothing by a cache that costs the same', () =>
    expect(savedBy(table, 'luna-mini', { saved: 0, cacheable: million })).toEqual({
      unsent: 0,
      cacheable: 0,
      currency: 'USD',
    }))
})

describe('a table of prices', () => {
  it('of well-known models is dated and in order', () => {
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

  it('knows models of four providers, also by their snapshots', () => {
    const names = ['gpt-5.4-2026-03-05', 'claude-sonnet-4-5-20250929', 'gemini-2.5-pro', 'grok-4.3-latest']
    expect(names.map((name) => costOf(publishedPrices, name, { prompt: 100_000 })?.total)).toEqual([
      0.25, 0.3, 0.125, 0.125,
    ])
  })

  verifies('S-10', "may be the user's own, and says what is wrong with it", () => {
    const own = { asOf: '2026-11-01', models: { 'my-model*': { input: 0.5, output: 2 } } }
    expect(costOf(parsePrices(own), 'my-model-v3', { prompt: million })?.total).toBe(0.5)
    const wrong = [
      [{ ...own, models: { 'my-model': { input: -1, output: 2 } } }, 'prices.models.my-model.input: '],
      [{ ...own, models: { 'my-model': { input: 1 } } }, 'prices.models.my-model.output: '],
      [{ ...own, models: { 'my-model': { input: 1, output: 2, price: 3 } } }, 'prices.models.my-model: '],
      [{ ...own, asOf: 'today' }, 'prices.asOf: '],
      ['free', 'prices: '],
    ] as const
    for (const [value, start] of wrong) {
      expect(() => parsePrices(value)).toThrow(
        expect.objectContaining({ code: 'bad-option', param: 'prices', message: expect.stringContaining(start) }),
      )
    }
    expect(() => parsePrices({ ...own, asOf: 'today' })).toThrow('Write { "asOf": "2026-11-01"')
  })
})
