import type { Millis } from './entry.ts'

/** Attempts in all and the delays between them. */
export type RetryPolicy = {
  readonly tries: number
  /** Delay after the first attempt. */
  readonly baseDelay: Millis
  /** Instead of a longer delay there is no retry. */
  readonly maxDelay: Millis
  /** Growth of the delay with each attempt. Default: 2. */
  readonly factor?: number
}

/** Returns the delay after a number of failed attempts. */
export const backoffDelay = (attempts: number, baseDelay: Millis, factor = 2): Millis =>
  baseDelay * factor ** (attempts - 1)

/**
 * Returns the delay before the next attempt, or undefined when there should be none. `retryAfter` is the server's wish;
 * without one, `random` sets the jitter: the delay is between half and all of the backoff.
 */
export function retryDelay(
  attempts: number,
  { tries, baseDelay, maxDelay, factor }: RetryPolicy,
  retryAfter: Millis | undefined,
  random = (): number => 1,
): Millis | undefined {
  if (attempts >= tries) return undefined
  const delay = retryAfter ?? backoffDelay(attempts, baseDelay, factor) * (0.5 + random() / 2)
  return delay <= maxDelay ? delay : undefined
}

/**
 * Parses the delay that a server asks for: `retry-after-ms`, or `retry-after` in seconds or as a date. A date is
 * compared with the server's own `date`, else with `now`.
 */
export function parseRetryAfter(
  header: (name: string) => string | null | undefined,
  now = Number.NaN,
): Millis | undefined {
  const exact = Number.parseFloat(header('retry-after-ms') ?? '')
  if (exact >= 0) return exact
  const text = header('retry-after')?.trim() ?? ''
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000
  // Date.parse would read an invalid number such as -3 as a year, so a date must contain letters.
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN
  const serverTime = Date.parse(header('date') ?? '')
  const delay = date - (Number.isNaN(serverTime) ? now : serverTime)
  return Number.isNaN(delay) ? undefined : Math.max(0, delay)
}
