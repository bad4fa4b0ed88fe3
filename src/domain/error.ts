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

/** Creates the error for a store URL that is not supported here; a password in the URL is not repeated. */
export const createUnknownStoreError = (url: string, supported: string): MemoryError =>
  new MemoryError(
    'bad-option',
    `store is ${JSON.stringify(url.replace(/\/\/[^@/]*@/, '//…@'))}; it must be ${supported}.`,
    { param: 'store' },
  )

/** Throws `bad-option` unless `isValid`; `expected` completes the sentence "it must be …". */
export function checkOption(param: string, value: unknown, isValid: boolean, expected: string): void {
  if (!isValid)
    throw new MemoryError('bad-option', `${param} is ${JSON.stringify(value)}; it must be ${expected}.`, { param })
}
