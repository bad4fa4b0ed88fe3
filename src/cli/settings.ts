import { MemoryError } from '../domain/error.ts'
import type { Profile } from '../domain/profile.ts'

/** The variables a process is given. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A flag, else the first of these variables that is set; an empty one is not. */
export function setting(
  flag: string | undefined,
  environment: Environment,
  ...names: readonly string[]
): string | undefined {
  const values = [flag, ...names.map((name) => environment[name])].map((value) => value?.trim())
  return values.find((value) => value !== undefined && value !== '')
}

/** A whole number from text, or an error that names what it is for. */
export function wholeNumber(text: string, name: string, least: number, most: number = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text.trim()) ? Number(text) : Number.NaN
  if (value >= least && value <= most) return value
  const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `from ${least} to ${most}`
  throw new MemoryError(
    'bad-option',
    `${name} is ${JSON.stringify(text.slice(0, 40))}; it must be a whole number, ${range}.`,
    { param: name },
  )
}

/** The profile of this name, with another budget if one is given. */
export async function profileWith(name: string, budget: string | undefined): Promise<Profile> {
  const { profileOf } = await import('../open.ts')
  const profile = profileOf(name)
  return budget === undefined ? profile : { ...profile, budget: wholeNumber(budget, 'budget', 1) }
}

/** A time from text, or an error that names what it is for. */
export function dateOf(text: string, name: string): number {
  const at = Date.parse(text)
  if (!Number.isNaN(at)) return at
  throw new MemoryError(
    'bad-option',
    `${name} is ${JSON.stringify(text)}; it must be a date such as 2026-03-01 or 2026-03-01T12:00:00Z.`,
    { param: name },
  )
}
