/** The closed set of things that can go wrong; every error the engine throws carries one of them. */
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

type Details = {
  cause?: unknown
  /** The field or option the message is about. */
  param?: string
  /** With `budget-too-small`: the smallest budget that would do. */
  minimum?: number
  /** With `upstream`: the HTTP status the provider answered with. */
  status?: number
  /** With `moved`: the key under which the session goes on. */
  to?: string
}

/**
 * The one error type of the engine.
 *
 * @example
 * try { parseKey('no spaces allowed') } catch (error) {
 *   if (error instanceof MemoryError && error.code === 'bad-key') console.error(error.message)
 * }
 */
export class MemoryError extends Error {
  override readonly name = 'MemoryError'
  readonly code: ErrorCode
  readonly param: string | undefined
  readonly minimum: number | undefined
  readonly status: number | undefined
  readonly to: string | undefined

  constructor(code: ErrorCode, message: string, details: Details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.param = details.param
    this.minimum = details.minimum
    this.status = details.status
    this.to = details.to
  }
}

/** For a store URL that cannot be opened here; a password in it is not repeated. */
export const unknownStore = (url: string, known: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `store is ${JSON.stringify(url.replace(/\/\/[^@/]*@/, '//…@'))}; it must be ${known}.`,
    { param: 'store' },
  )

/** Refuses an option that does not hold what it must. */
export function check(param: string, value: unknown, holds: boolean, right: string): void {
  if (!holds)
    throw new MemoryError('bad-option', `${param} is ${JSON.stringify(value)}; it must be ${right}.`, { param })
}
