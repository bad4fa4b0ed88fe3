import { MemoryError } from './error.ts'

/** Levels of nesting that JSON of callers may have. */
export const maxJsonDepth = 100

/** Tells whether parsed JSON has more than a number of nested lists and objects. */
export function exceedsDepth(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((item) => exceedsDepth(item, levels - 1))
  // Takes half as long as `Object.values` for an object of many fields.
  for (const name in value) if (exceedsDepth(value[name as keyof typeof value], levels - 1)) return true
  return false
}

export const createDepthError = (param?: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `The JSON is nested deeper than ${maxJsonDepth} levels. Send deep data as text.`,
    param === undefined ? {} : { param },
  )
