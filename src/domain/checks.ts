import { MemoryError } from './error.ts'

/** Checks plain data against a shape, naming the field at fault and what would be right. */
export type Check = (value: unknown, at: string) => void

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const shown = (value: unknown): string =>
  value === undefined ? 'missing' : (JSON.stringify(value)?.slice(0, 60) ?? typeof value)

export function reject(at: string, value: unknown, right: string): never {
  throw new MemoryError('bad-profile', `${at} is ${shown(value)}; it must be ${right}.`, { param: at })
}

export const text: Check = (value, at) => {
  if (typeof value !== 'string' || value === '') reject(at, value, 'text that is not empty')
}

export const flag: Check = (value, at) => {
  if (typeof value !== 'boolean') reject(at, value, 'true or false')
}

/** A whole number of at least `least`. */
export const whole =
  (least: number): Check =>
  (value, at) => {
    if (!Number.isSafeInteger(value) || (value as number) < least) reject(at, value, `a whole number, ${least} or more`)
  }

/** A part of the budget: more than 0 (or 0 itself where that makes sense) and at most 1. */
export const part =
  (orNone = false): Check =>
  (value, at) => {
    if (typeof value !== 'number' || !(value <= 1) || !(orNone ? value >= 0 : value > 0))
      reject(at, value, `a number ${orNone ? 'from 0' : 'above 0'} up to 1, a part of the budget`)
  }

export const number: Check = (value, at) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) reject(at, value, 'a number')
}

export const oneOf =
  (...choices: readonly string[]): Check =>
  (value, at) => {
    if (typeof value !== 'string' || !choices.includes(value)) reject(at, value, `one of ${choices.join(', ')}`)
  }

export const listOf =
  (check: Check, least = 0): Check =>
  (value, at) => {
    if (!Array.isArray(value) || value.length < least)
      reject(at, value, least > 0 ? `a list with at least ${least} entry` : 'a list')
    value.forEach((item, place) => {
      check(item, `${at}[${place}]`)
    })
  }

/** An object with exactly these fields; those whose name ends with `?` may be missing. */
export function fields(shape: Readonly<Record<string, Check>>): Check {
  const known = new Map(
    Object.entries(shape).map(([name, check]) => [name.replace(/\?$/, ''), { check, optional: name.endsWith('?') }]),
  )
  return (value, at) => {
    if (!isObject(value)) reject(at, value, `an object with ${[...known.keys()].join(', ')}`)
    for (const name of Object.keys(value))
      if (!known.has(name))
        reject(`${at}.${name}`, value[name], `left out: ${at} has only ${[...known.keys()].join(', ')}`)
    for (const [name, { check, optional }] of known)
      if (!(optional && value[name] === undefined)) check(value[name], `${at}.${name}`)
  }
}
