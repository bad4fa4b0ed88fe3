import { z } from 'zod'
import type { Tokens } from '../../domain/entry.ts'
import { MemoryError } from '../../domain/error.ts'

/** US dollars per million tokens. Without `cached`, cached input costs as much as other input. */
export type Rate = { readonly input: number; readonly cached?: number | undefined; readonly output: number }
/**
 * With `upTo`, the rate applies to prompts of at most that many tokens, and `beyond` to longer ones; their
 * price is unknown without it.
 */
export type Price = Rate & { readonly upTo?: Tokens | undefined; readonly beyond?: Rate | undefined }
/**
 * Prices by model name as of a date. A name matches the model and its dated snapshots; a name that ends with `*`
 * matches every name with that prefix. The longest match wins.
 */
export type PriceTable = { readonly asOf: string; readonly models: Readonly<Record<string, Price>> }

/** Token counts of the upstream; `prompt` includes the cached tokens. */
export type BilledTokens = {
  readonly prompt: Tokens
  readonly cached?: Tokens | undefined
  readonly completion?: Tokens | undefined
}
export type Cost = { readonly input: number; readonly output: number; readonly total: number; readonly currency: 'USD' }

const dollars = z.number().nonnegative()
const rate = { input: dollars, cached: dollars.optional(), output: dollars }
const tokens = z.number().int().positive()
const priceTable = z.strictObject({
  asOf: z.iso.date(),
  models: z.record(
    z.string().min(1),
    z.strictObject({ ...rate, upTo: tokens.optional(), beyond: z.strictObject(rate).optional() }),
  ),
})

/**
 * Validates a price table, such as the content of a JSON file.
 *
 * @throws {MemoryError} `bad-option` that names the invalid field.
 *
 * @example
 * parsePrices({ asOf: '2026-11-01', models: { 'my-model*': { input: 0.5, cached: 0.05, output: 2 } } })
 */
export function parsePrices(value: unknown): PriceTable {
  const parsed = priceTable.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const path = ['prices', ...(issue?.path ?? [])].join('.')
  const remedy =
    'Write { "asOf": "2026-11-01", "models": { "my-model*": { "input": 0.5, "cached": 0.05, "output": 2 } } }, in US dollars per million tokens.'
  throw new MemoryError('bad-option', `${path}: ${issue?.message ?? 'is not a price table'}. ${remedy}`, {
    param: 'prices',
  })
}

/**
 * Computes the cost of a request; undefined for a model without a price. Does not include charges for cache writes,
 * other service tiers or the provider's tools.
 *
 * @example
 * computeRequestCost(publishedPrices, 'gpt-5.4-mini', { prompt: 1_000_000, completion: 1_000_000 })?.total // 5.25
 */
export function computeRequestCost(
  prices: PriceTable,
  model: string,
  { prompt, cached = 0, completion = 0 }: BilledTokens,
): Cost | undefined {
  const rates = findRate(prices, model, prompt)
  if (rates === undefined) return undefined
  const fromCache = Math.min(cached, prompt)
  const input = (prompt - fromCache) * rates.input + fromCache * (rates.cached ?? rates.input)
  const output = completion * rates.output
  return { input: toDollars(input), output: toDollars(output), total: toDollars(input + output), currency: 'USD' }
}

/**
 * Computes what the whole history would have cost as the prompt, minus what the prompt costs, both without caching.
 * Negative when memory added more than it left out.
 */
export function computeSaving(
  prices: PriceTable,
  model: string,
  { history, shown }: { readonly history: Tokens; readonly shown: Tokens },
): number | undefined {
  const [full, sent] = [
    computeRequestCost(prices, model, { prompt: history }),
    computeRequestCost(prices, model, { prompt: shown }),
  ]
  return full === undefined || sent === undefined ? undefined : roundDollars(full.input - sent.input)
}

/** Computes how much less the prompt cost because of the tokens that the upstream reports as cached. */
export function computeCacheDiscount(
  prices: PriceTable,
  model: string,
  { prompt, cached }: BilledTokens,
): number | undefined {
  const [full, billed] = [
    computeRequestCost(prices, model, { prompt }),
    computeRequestCost(prices, model, { prompt, cached }),
  ]
  return full === undefined || billed === undefined ? undefined : roundDollars(full.input - billed.input)
}

/** Suffix of a dated snapshot: a date, a release number, or `latest`. */
const snapshotSuffix = /^(?:[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|latest))?$/

function findRate(prices: PriceTable, model: string, prompt: Tokens): Rate | undefined {
  const price = findPrice(prices, model)
  return price?.upTo !== undefined && prompt > price.upTo ? price.beyond : price
}

/** Resolved prices by table and model: a server looks up the same few with every request. */
const priceCache = new WeakMap<PriceTable, Map<string, Price | undefined>>()
const maxCachedModels = 1_000
/** Clients choose the names of models. */
const maxCachedNameLength = 200

function findPrice(prices: PriceTable, model: string): Price | undefined {
  const cached = priceCache.get(prices) ?? new Map<string, Price | undefined>()
  if (cached.has(model)) return cached.get(model)
  const price = matchPrice(prices, model)
  if (model.length > maxCachedNameLength) return price
  if (cached.size >= maxCachedModels) cached.clear()
  priceCache.set(prices, cached.set(model, price))
  return price
}

function matchPrice({ models }: PriceTable, model: string): Price | undefined {
  const matches = (name: string): boolean =>
    name.endsWith('*')
      ? model.startsWith(name.slice(0, -1))
      : model.startsWith(name) && snapshotSuffix.test(model.slice(name.length))
  const [name] = Object.keys(models)
    .filter(matches)
    .sort((a, b) => b.length - a.length)
  return name === undefined ? undefined : models[name]
}

/** Converts tokens × dollars per million to dollars. */
const toDollars = (micros: number): number => roundDollars(micros / 1e6)

/** Rounds to 10 decimals to remove floating-point noise. */
export const roundDollars = (dollars: number): number => Math.round(dollars * 1e10) / 1e10
