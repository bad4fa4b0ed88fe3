import { type ErrorCode, MemoryError } from '../../domain/error.ts'

/** What a client is told when a request fails, in OpenAI's shape. */
export type Problem = {
  readonly status: number
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string | null
  }
}

type Details = {
  /** OpenAI's word for the kind of error; by the status when left out. */
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A request the server itself turns down: it never reached memory or a model. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: number
  readonly code: string
  readonly param: string | null
  readonly type: string
  /** What the client is told beside the error, such as when to come again. */
  readonly headers: Readonly<Record<string, string>>

  constructor(status: number, code: string, message: string, param: string | null = null, details: Details = {}) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.type = details.type ?? kinds[status] ?? 'invalid_request_error'
    this.headers = details.headers ?? {}
  }
}

const kinds: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  503: 'server_error',
}

/** The one answer for what is not there and for what is somebody else's: nobody learns which of the two it is. */
export const notFound = (): Refusal =>
  new Refusal(404, 'not_found', 'There is no such thing here, or this key may not see it.')

const wrong = [400, 'invalid_request_error'] as const
const meanings: Readonly<Partial<Record<ErrorCode, readonly [status: number, type: string]>>> = {
  'bad-key': wrong,
  'bad-message': wrong,
  'bad-option': wrong,
  'bad-profile': wrong,
  'budget-too-small': wrong,
  full: [429, 'rate_limit_error'],
  erased: [409, 'conflict_error'],
  conflict: [409, 'conflict_error'],
  moved: [410, 'moved_error'],
  closed: [503, 'server_error'],
  busy: [503, 'server_error'],
  'not-durable': [503, 'server_error'],
  upstream: [502, 'upstream_error'],
  timeout: [504, 'timeout_error'],
}

/** The answer to a request that failed; what nobody foresaw is told without its details, which may hold anything. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Refusal) {
    return {
      status: error.status,
      error: { message: error.message, type: error.type, param: error.param, code: error.code },
    }
  }
  const [status, type] = (error instanceof MemoryError ? meanings[error.code] : undefined) ?? [500, 'server_error']
  if (!(error instanceof MemoryError) || status === 500) {
    return {
      status: 500,
      error: {
        message: 'Something went wrong inside Threadkeep. Its log has more under this x-request-id.',
        type,
        param: null,
        code: 'internal',
      },
    }
  }
  return { status, error: { message: error.message, type, param: error.param ?? null, code: error.code } }
}

/** A fault as the operator sees it: where it happened, never what was said, because messages of the platform quote their input. */
export function traceOf(error: unknown): string {
  if (error instanceof MemoryError) return `${error.code}: ${error.message}`
  if (!(error instanceof Error)) return typeof error
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '))
  return [error.name, ...frames.slice(0, 5).map((frame) => frame.trim())].join(' ')
}
