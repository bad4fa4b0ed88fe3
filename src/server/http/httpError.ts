import { describeStoreFault, type ErrorCode, MemoryError, shortenMessage } from '../../domain/error.ts'
import { normalizeSecrets } from '../../text/secrets.ts'

/** A failed request as the client sees it, in OpenAI's shape. */
export type ErrorResponse = {
  readonly status: number
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string | null
  }
}

type HttpErrorOptions = {
  /** OpenAI's error type; derived from the status when omitted. */
  readonly type?: string
  /** Response headers, such as `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request that the server itself refuses, before it reaches memory or a model. */
export class HttpError extends Error {
  override readonly name = 'HttpError'
  readonly status: number
  readonly code: string
  readonly param: string | null
  readonly type: string
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    code: string,
    message: string,
    param: string | null = null,
    options: HttpErrorOptions = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.type = options.type ?? typeByStatus[status] ?? 'invalid_request_error'
    this.headers = options.headers ?? {}
  }
}

const typeByStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  503: 'server_error',
  507: 'server_error',
}

/** One response for what does not exist and what belongs to another tenant, so that nobody can tell them apart. */
export const notFound = (): HttpError => new HttpError(404, 'not_found', 'Not found, or not visible with this key.')

const invalid = [400, 'invalid_request_error'] as const
const unavailable = [503, 'server_error'] as const
const internal = [500, 'server_error'] as const
/** Status and type of each error. */
export const statusByCode: Readonly<Record<ErrorCode, readonly [status: number, type: string]>> = {
  'bad-key': invalid,
  'bad-message': invalid,
  'bad-option': invalid,
  'bad-profile': invalid,
  'bad-bundle': invalid,
  'budget-too-small': invalid,
  full: [429, 'rate_limit_error'],
  erased: [409, 'conflict_error'],
  conflict: [409, 'conflict_error'],
  moved: [410, 'moved_error'],
  closed: unavailable,
  busy: unavailable,
  'not-durable': unavailable,
  'file-changed': unavailable,
  'disk-full': [507, 'server_error'],
  corrupt: internal,
  'bad-store': internal,
  'bad-secret': internal,
  aborted: internal,
  upstream: [502, 'upstream_error'],
  timeout: [504, 'timeout_error'],
}

/**
 * Converts an error to a response. Secrets it quotes are masked, because clients log errors. Faults of the store are
 * described without paths, unexpected errors without their text, which may quote the request; the log has both.
 */
export function toErrorResponse(error: unknown): ErrorResponse {
  if (error instanceof HttpError) {
    const { status, message, type, param, code } = error
    return {
      status,
      error: { message: normalizeSecrets(shortenMessage(message)), type, param: maskParam(param), code },
    }
  }
  const fault = error instanceof MemoryError ? describeStoreFault(error) : undefined
  const [status, type] = error instanceof MemoryError ? statusByCode[error.code] : internal
  if (!(error instanceof MemoryError) || (status === 500 && fault === undefined)) {
    const message = 'Internal error. The server log has details under this x-request-id.'
    return { status: 500, error: { message, type, param: null, code: 'internal' } }
  }
  if (fault !== undefined) return { status, error: { message: fault, type, param: null, code: error.code } }
  const message = normalizeSecrets(shortenMessage(error.message))
  return { status, error: { message, type, param: maskParam(error.param ?? null), code: error.code } }
}

/** The name of an unknown field is chosen by the client. */
const maskParam = (param: string | null): string | null => (param === null ? null : normalizeSecrets(param))

/** True for errors that the operator must know about: faults of the store and unexpected errors. */
export const isServerFault = (error: unknown): boolean =>
  error instanceof MemoryError
    ? describeStoreFault(error) !== undefined || statusByCode[error.code][0] === 500
    : !(error instanceof HttpError)

/** Seconds after which a client should try again what failed for lack of a store. */
const storeRetryAfterSeconds = 2

/** Headers of an error response. */
export function errorHeaders(error: unknown): Record<string, string> {
  if (error instanceof HttpError) return { ...error.headers }
  const isUnavailable = error instanceof MemoryError && statusByCode[error.code][0] === 503
  return isUnavailable ? { 'retry-after': String(storeRetryAfterSeconds) } : {}
}

/** Describes a fault for the log: name and stack frames, but no message, because platform errors quote their input. */
export function describeFault(error: unknown): string {
  if (error instanceof MemoryError) return `${error.code}: ${normalizeSecrets(shortenMessage(error.message))}`
  if (!(error instanceof Error)) return typeof error
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '))
  return [error.name, ...frames.slice(0, 5).map((frame) => frame.trim())].join(' ')
}
