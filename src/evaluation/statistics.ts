/** Returns a percentile of ascending numbers; NaN if there are none. */
export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN

/** Returns the mean; NaN if there are no numbers. */
export const mean = (numbers: readonly number[]): number =>
  numbers.reduce((sum, number) => sum + number, 0) / numbers.length

/** Latency percentiles in milliseconds. */
export type Latency = { readonly p50: number; readonly p95: number }

export function summariseLatency(milliseconds: readonly number[]): Latency {
  const sorted = [...milliseconds].sort((a, b) => a - b)
  return { p50: percentile(sorted, 0.5), p95: percentile(sorted, 0.95) }
}

/** Returns at most `limit` items, spread evenly over the list. */
export const sampleEvenly = <T>(items: readonly T[], limit: number): readonly T[] =>
  items.length <= limit
    ? items
    : Array.from({ length: limit }, (_, index) => items[Math.floor((index * items.length) / limit)] as T)

/** Formats a share as a percentage with one decimal; `–` if it is not a number. */
export const formatPercent = (share: number): string => (Number.isNaN(share) ? '–' : (100 * share).toFixed(1))
