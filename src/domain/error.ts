import { isJsonValue, maxJsonDepth, stringifyStart } from './stringify.ts'

/** Codes of `MemoryError`. The set is closed: every error the engine throws carries one of them. */
export type ErrorCode =
  | 'bad-key'
  | 'bad-message'
  | 'bad-profile'
  | 'bad-option'
  | 'budget-too-small'
  | 'conflict'
  | 'erased'
  | 'moved'
  | 'full'
  | 'disk-full'
  | 'file-changed'
  | 'not-durable'
  | 'busy'
  | 'corrupt'
  | 'bad-store'
  | 'bad-secret'
  | 'bad-bundle'
  | 'closed'
  | 'upstream'
  | 'timeout'
  | 'aborted'

type ErrorDetails = {
  cause?: unknown
  /** Field or option the message is about. */
  param?: string
  /** With `budget-too-small`: the smallest budget that works. */
  minimum?: number
  /** With `upstream`: HTTP status of the provider's response. */
  status?: number
  /** With `moved`: key of the session that continues this one. */
  to?: string
}

/**
 * The only error type the engine throws. Branch on `code`; `message` names the problem and the remedy.
 *
 * @example
 * try { parseKey('no spaces allowed') } catch (error) {
 *   if (error instanceof MemoryError && error.code === 'bad-key') console.error(error.message)
 * }
 */
export class MemoryError extends Error {
  override readonly name = 'MemoryError'
  readonly code: ErrorCode
  /** Field or option the message is about. */
  readonly param: string | undefined
  /** With `budget-too-small`: the smallest budget that works. */
  readonly minimum: number | undefined
  /** With `upstream`: HTTP status of the provider's response. */
  readonly status: number | undefined
  /** With `moved`: key of the session that continues this one. */
  readonly to: string | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.param = details.param
    this.minimum = details.minimum
    this.status = details.status
    this.to = details.to
  }
}

/** True for an error of the engine with one of these codes. */
export const hasErrorCode = (error: unknown, ...codes: readonly ErrorCode[]): error is MemoryError =>
  error instanceof MemoryError && codes.includes(error.code)

/**
 * Messages for clients of a server, by codes whose own messages are for its operator: they name local files, and quote
 * the database.
 */
const clientMessages: Readonly<Partial<Record<ErrorCode, string>>> = {
  busy: 'The store is busy; the request may not be stored. Try again in a moment.',
  'disk-full': 'The store is full; nothing was stored. The operator must free some space.',
  'file-changed':
    'The file of the store was deleted or replaced; nothing was stored. The operator must put it back or restart the server.',
  'not-durable': 'The store cannot be written to; the request may not be stored. Try again in a moment.',
  corrupt: 'The stored data is damaged. The operator must run threadkeep doctor.',
  'bad-store': 'The store cannot be used. The log of the server has details.',
  'bad-secret': 'The store cannot be used. The log of the server has details.',
  closed: 'The server is shutting down or was reconfigured. Try again in a moment.',
}

/**
 * Returns the message of a fault that concerns the operator, in words for a client; undefined for errors whose own
 * message is for the client. `busy` with a parameter and `not-durable` without a cause are about the client's request.
 */
export function describeStoreFault({ code, param, cause }: MemoryError): string | undefined {
  if ((code === 'busy' && param !== undefined) || (code === 'not-durable' && cause === undefined)) return undefined
  return clientMessages[code]
}

/** Creates the error for a store URL that is not supported here; a password in the URL is not repeated. */
export const createUnknownStoreError = (url: string, supported: string, param = 'store'): MemoryError =>
  new MemoryError('bad-option', `${param} is ${JSON.stringify(maskStoreUrl(url))}; it must be ${supported}.`, { param })

/**
 * Returns the URL of a store for messages: without user, password and parameters of a server. Everything up to the last
 * `@` goes, because characters of a password may not be escaped and slashes may be missing.
 */
export const maskStoreUrl = (url: string, mask = '…'): string =>
  /^(?:sqlite|pglite):/.test(url) ? url : url.replace(/^([\w+.-]*:\/*(?!\/))?.*@/s, `$1${mask}@`).replace(/\?.*/s, '')

/** Characters of a value that an error repeats. */
const maxShownCharacters = 10_000

/** Throws `bad-option` unless `isValid`; `expected` completes the sentence "it must be …". */
export function checkOption(param: string, value: unknown, isValid: boolean, expected: string): void {
  if (isValid) return
  const shown = value === undefined ? 'undefined' : describeValue(value, maxShownCharacters)
  throw new MemoryError('bad-option', `${param} is ${shown}; it must be ${expected}.`, { param })
}

/** Validates a value; `path` names it in the error. */
export type Check = (value: unknown, path: string) => void

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Formats a value for an error message, shortened to `maxCharacters`. */
export const describeValue = (value: unknown, maxCharacters: number): string => {
  if (value === undefined) return 'missing'
  return isJsonValue(value) ? shortenText(stringifyStart(value, maxCharacters + 1), maxCharacters) : typeof value
}

/**
 * Cuts a text that an error repeats. Cuts between words, because errors are masked later, and the start of a secret is
 * not recognised as one.
 *
 * @example
 * shortenText('one two three', 8) // 'one two …'
 */
export function shortenText(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text
  const start = text.slice(0, maxCharacters + 1)
  return `${start.slice(0, start.lastIndexOf(' ') + 1)}…`
}

const maxMessageCharacters = 10_000

/** Cuts the message of an error that repeats a long value. */
export const shortenMessage = (message: string): string => shortenText(message, maxMessageCharacters)

/** Throws `bad-profile`; `expected` completes the sentence "it must be …". */
export function rejectField(path: string, value: unknown, expected: string): never {
  throw new MemoryError('bad-profile', `${path} is ${describeValue(value, 60)}; it must be ${expected}.`, {
    param: path,
  })
}

export const nonEmptyText: Check = (value, path) => {
  if (typeof value !== 'string' || value === '') rejectField(path, value, 'text that is not empty')
}

export const trueOrFalse: Check = (value, path) => {
  if (typeof value !== 'boolean') rejectField(path, value, 'true or false')
}

/** Accepts any text, also an empty one. */
export const anyText: Check = (value, path) => {
  if (typeof value !== 'string') rejectField(path, value, 'text')
}

/** Accepts any value; the method checks it itself. */
export const anyValue: Check = () => undefined

export const anyFunction: Check = (value, path) => {
  if (typeof value !== 'function') rejectField(path, value, 'a function')
}

export const anyObject: Check = (value, path) => {
  if (!isObject(value)) rejectField(path, value, 'an object')
}

export const integerAtLeast =
  (min: number): Check =>
  (value, path) => {
    if (!Number.isSafeInteger(value) || (value as number) < min)
      rejectField(path, value, `a whole number, ${min} or more`)
  }

/** Accepts a share of the budget: above 0 and at most 1, with `orZero` also 0. */
export const share =
  (orZero = false): Check =>
  (value, path) => {
    if (typeof value !== 'number' || !(value <= 1) || !(orZero ? value >= 0 : value > 0))
      rejectField(path, value, `a number ${orZero ? 'from 0' : 'above 0'} up to 1, a part of the budget`)
  }

/** Accepts a number above 0, also Infinity. */
export const positiveNumber: Check = (value, path) => {
  if (typeof value !== 'number' || !(value > 0)) rejectField(path, value, 'a number above 0')
}

export const finiteNumber: Check = (value, path) => {
  if (typeof value !== 'number' || !Number.isFinite(value)) rejectField(path, value, 'a number')
}

export const oneOf =
  (...choices: readonly string[]): Check =>
  (value, path) => {
    if (typeof value !== 'string' || !choices.includes(value)) rejectField(path, value, `one of ${choices.join(', ')}`)
  }

export const listOf =
  (check: Check, minLength = 0): Check =>
  (value, path) => {
    if (!Array.isArray(value) || value.length < minLength)
      rejectField(path, value, minLength > 0 ? `a list with at least ${minLength} entry` : 'a list')
    value.forEach((item, index) => {
      check(item, `${path}[${index}]`)
    })
  }

/** Accepts a missing field. */
export const optional =
  (check: Check): Check =>
  (value, path) => {
    if (value !== undefined) check(value, path)
  }

/**
 * Accepts an object with exactly these fields. A field is optional when its check is `optional(…)` or its name ends
 * with `?`.
 */
export function fields<T>(shape: { readonly [field in keyof T]-?: Check }): Check {
  const checks = new Map<string, Check>(
    Object.entries<Check>(shape).map(([name, check]) =>
      name.endsWith('?') ? [name.slice(0, -1), optional(check)] : [name, check],
    ),
  )
  const names = [...checks.keys()].join(', ')
  return (value, path) => {
    if (!isObject(value)) rejectField(path, value, `an object with ${names}`)
    for (const name of Object.keys(value)) {
      const param = `${path}.${name}`
      if (!checks.has(name))
        throw new MemoryError('bad-profile', `Unknown field ${param}. Use one of: ${names}.`, { param })
    }
    for (const [name, check] of checks) check(value[name], `${path}.${name}`)
  }
}

export const createDepthError = (param?: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `The JSON is nested deeper than ${maxJsonDepth} levels. Send deep data as text.`,
    param === undefined ? {} : { param },
  )
