import { z } from 'zod'
import type { Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'

/** US dollars for a million tokens; without `cached`, what comes from the provider's cache costs what the rest does. */
export type Rate = { readonly input: number; readonly cached?: number | undefined; readonly output: number }
/** With `upTo` the rate holds for prompts of at most so many tokens; longer ones cost what `beyond` says, or nobody knows what. */
export type Price = Rate & { readonly upTo?: Tokens | undefined; readonly beyond?: Rate | undefined }
/**
 * Prices by the names of models as of a day. A name stands for the model and its dated snapshots; one that ends with `*`
 * for everything that begins so. The longest that fits counts.
 */
export type PriceTable = { readonly asOf: string; readonly models: Readonly<Record<string, Price>> }

/** What the upstream counted; `prompt` is all of it, what came from the cache too. */
export type Usage = {
  readonly prompt: Tokens
  readonly cached?: Tokens | undefined
  readonly completion?: Tokens | undefined
}
export type Cost = { readonly input: number; readonly output: number; readonly total: number; readonly currency: 'USD' }
/** What memory spares: tokens that were not sent, and those a provider may take from its cache because they came before. */
export type Saving = { readonly unsent: number; readonly cacheable: number; readonly currency: 'USD' }

const dollars = z.number().nonnegative()
const rate = { input: dollars, cached: dollars.optional(), output: dollars }
const tokens = z.number().int().positive()
const table = z.strictObject({
  asOf: z.iso.date(),
  models: z.record(
    z.string().min(1),
    z.strictObject({ ...rate, upTo: tokens.optional(), beyond: z.strictObject(rate).optional() }),
  ),
})

/**
 * Checks a table of prices of one's own, as it stands in a JSON file.
 *
 * @example
 * parsePrices({ asOf: '2026-11-01', models: { 'my-model*': { input: 0.5, cached: 0.05, output: 2 } } })
 */
export function parsePrices(value: unknown): PriceTable {
  const parsed = table.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const at = ['prices', ...(issue?.path ?? [])].join('.')
  const right =
    'Write { "asOf": "2026-11-01", "models": { "my-model*": { "input": 0.5, "cached": 0.05, "output": 2 } } }, in US dollars for a million tokens.'
  throw new MemoryError('bad-option', `${at}: ${issue?.message ?? 'is no table of prices'}. ${right}`, {
    param: 'prices',
  })
}

/**
 * What a request has cost, or undefined for a model that has no price: never a guess. What a provider asks for filling
 * its cache, for other tiers or for tools of its own is not part of it.
 *
 * @example
 * costOf(publishedPrices, 'gpt-5.4-mini', { prompt: 1_000_000, completion: 1_000_000 })?.total // 5.25
 */
export function costOf(
  prices: PriceTable,
  model: string,
  { prompt, cached = 0, completion = 0 }: Usage,
): Cost | undefined {
  const rates = rateFor(prices, model, prompt)
  if (rates === undefined) return undefined
  const fromCache = Math.min(cached, prompt)
  const input = (prompt - fromCache) * rates.input + fromCache * (rates.cached ?? rates.input)
  const output = completion * rates.output
  return { input: inDollars(input), output: inDollars(output), total: inDollars(input + output), currency: 'USD' }
}

/** What memory spares at the prices of a model: at most, because the tokens that were not sent might have come from a cache as well. */
export function savedBy(
  prices: PriceTable,
  model: string,
  spared: { readonly saved: Tokens; readonly cacheable: Tokens },
): Saving | undefined {
  const rates = rateFor(prices, model, 0)
  if (rates === undefined) return undefined
  const cacheable = spared.cacheable * (rates.input - (rates.cached ?? rates.input))
  return { unsent: inDollars(spared.saved * rates.input), cacheable: inDollars(cacheable), currency: 'USD' }
}

/** What may follow a name that stands for a model and its snapshots: a date, a number of a release, `latest`. */
const snapshot = /^(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest))?$/

function rateFor(prices: PriceTable, model: string, prompt: Tokens): Rate | undefined {
  const price = priceOf(prices, model)
  return price?.upTo !== undefined && prompt > price.upTo ? price.beyond : price
}

/** The prices of models that were asked for, by table: a server asks for the same few all the time. */
const known = new WeakMap<PriceTable, Map<string, Price | undefined>>()
const mostKnown = 1_000

function priceOf(prices: PriceTable, model: string): Price | undefined {
  const ofTable = known.get(prices) ?? new Map<string, Price | undefined>()
  if (ofTable.has(model)) return ofTable.get(model)
  const price = priceIn(prices, model)
  if (ofTable.size >= mostKnown) ofTable.clear()
  known.set(prices, ofTable.set(model, price))
  return price
}

function priceIn({ models }: PriceTable, model: string): Price | undefined {
  const fits = (name: string): boolean =>
    name.endsWith('*')
      ? model.startsWith(name.slice(0, -1))
      : model.startsWith(name) && snapshot.test(model.slice(name.length))
  const [name] = Object.keys(models)
    .filter(fits)
    .sort((a, b) => b.length - a.length)
  return name === undefined ? undefined : models[name]
}

/** Tokens times their price for a million, in dollars, without the dust that fractions leave behind. */
const inDollars = (micros: number): number => Math.round(micros * 1e4) / 1e10
