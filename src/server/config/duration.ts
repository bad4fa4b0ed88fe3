import { z } from 'zod'
import type { Millis } from '../../domain/entry.ts'

const units: Readonly<Record<string, Millis>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** What a duration must be, in the words of an error. */
export const durationRight = 'a number of milliseconds, or text such as 500ms, 30s, 15m, 24h or 7d'

/**
 * A time in milliseconds, from a number of them or from text with its unit; undefined for what is neither.
 *
 * @example
 * durationOf('24h') // 86_400_000
 */
export function durationOf(value: unknown): Millis | undefined {
  const [, count, unit = ''] = typeof value === 'string' ? (/^(\d{1,9})(ms|[smhd])$/.exec(value.trim()) ?? []) : []
  const millis = count === undefined ? value : Number(count) * (units[unit] ?? 0)
  return typeof millis === 'number' && Number.isSafeInteger(millis) && millis >= 1 ? millis : undefined
}

/** A duration in a configuration; inside it is milliseconds. */
export const duration = z
  .custom<Millis | string>((value) => durationOf(value) !== undefined, durationRight)
  .transform((value) => durationOf(value) as Millis)
