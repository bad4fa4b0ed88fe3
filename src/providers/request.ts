import { checkOptions, type OptionChecks } from '../domain/checkOptions.ts'
import type { Millis } from '../domain/entry.ts'
import { anyFunction, type Check, integerAtLeast, MemoryError, positiveNumber } from '../domain/error.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import { parseRetryAfter, type RetryPolicy, retryDelay } from '../domain/retry.ts'
import { parseJson } from '../text/json.ts'
import {
  applyDeadline,
  type Deadline,
  defaultTimeouts,
  sleep,
  startDeadline,
  type TimedBody,
  type Timeouts,
} from './deadline.ts'
import { extractErrorCode, extractNetworkCode, type SettingNames, statusError, unreachableError } from './errors.ts'
import { stripQuery } from './url.ts'

/** Waits between two attempts; rejects when the signal aborts. */
export type Sleep = (ms: Millis, signal: AbortSignal) => Promise<void>

/** Timeouts and retries of requests to a provider. */
export type RequestOptions = {
  /** Default: 120 s to the first byte, 60 s between chunks, 600 s in total. */
  readonly timeouts?: Partial<Timeouts> | undefined
  /** Replaces the delay between attempts, for tests. */
  readonly sleep?: Sleep | undefined
  /** Maximum number of attempts while the upstream is rate limiting or failing. Default: 3. */
  readonly maxAttempts?: number | undefined
}

const timeoutsCheck: Check = (value) =>
  checkOptions<Partial<Timeouts>>('timeouts', value, {
    firstByte: positiveNumber,
    idle: positiveNumber,
    total: positiveNumber,
  })

export const requestOptionChecks: OptionChecks<RequestOptions> = {
  timeouts: timeoutsCheck,
  sleep: anyFunction,
  maxAttempts: integerAtLeast(1),
}

export type PostRequest = RequestOptions & {
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  /** The requested model, named in errors. */
  readonly model: string
  readonly settings: SettingNames
  readonly signal?: AbortSignal | undefined
}

/** A successful response; its body is subject to the deadline of the request. */
export type ModelResponse = TimedBody & {
  /** Without the query; for error messages. */
  readonly url: string
  readonly contentType: string
}

type Failure = { readonly error: MemoryError; readonly isRetryable: boolean; readonly retryAfter?: Millis | undefined }

const defaultRetryPolicy: RetryPolicy = { tries: 3, baseDelay: 500, maxDelay: 30_000, factor: 3 }
const maxErrorBodyBytes = 65_536
/** Errors of pooled connections that the server closed while they were idle. */
const staleConnectionCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])

/**
 * Posts JSON and resolves when a successful response has started. Retries when the upstream is rate limiting or
 * failing.
 *
 * @throws MemoryError `upstream`, `timeout`, `aborted`, or `bad-option` for a header that cannot be sent.
 *
 * @example
 * const response = await post(buildEndpointUrl(baseUrl, '/chat/completions'), { headers, body, model, settings, signal })
 */
export async function post(url: URL, request: PostRequest): Promise<ModelResponse> {
  const displayUrl = stripQuery(url)
  const timeouts = { ...defaultTimeouts, ...request.timeouts }
  const init = buildRequestInit(request)
  const deadline = startDeadline(displayUrl, timeouts.total, request.signal)
  try {
    const response = await withRetries(displayUrl, request, deadline, () => {
      deadline.startStep(
        timeouts.firstByte,
        `${displayUrl} did not answer within ${timeouts.firstByte} ms. Try again, or raise the first-byte timeout.`,
      )
      return fetch(url, { ...init, signal: deadline.signal })
    })
    const contentType = response.headers.get('content-type') ?? ''
    return { url: displayUrl, contentType, ...applyDeadline(response, displayUrl, deadline, timeouts.idle) }
  } catch (error) {
    deadline.dispose()
    throw deadline.signal.aborted ? deadline.signal.reason : error
  }
}

/** Reads a body as text; returns undefined and cancels it when it is longer than `maxBytes`. */
export async function readText(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const decoder = new TextDecoder()
  const reader = body.getReader()
  let text = ''
  let size = 0
  for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
    size += chunk.value.length
    if (size > maxBytes) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(chunk.value, { stream: true })
  }
  return text + decoder.decode()
}

function buildRequestInit(request: PostRequest): RequestInit {
  const headers = {
    'content-type': 'application/json',
    accept: 'text/event-stream, application/json',
    ...request.headers,
  }
  for (const [name, value] of Object.entries(headers)) {
    // Checked here because the platform's error would quote the value, which may be a key.
    if (!/^[\x20-\x7e]*$/.test(value)) {
      throw new MemoryError(
        'bad-option',
        `The ${name} header holds characters that cannot be sent. Check ${request.settings.apiKey} for stray line ends.`,
        { param: 'headers' },
      )
    }
  }
  // Redirects are not followed: a redirected POST loses its body and would send the key to an unknown host.
  return { method: 'POST', headers, body: JSON.stringify(request.body), redirect: 'manual' }
}

async function withRetries(
  url: string,
  request: PostRequest,
  deadline: Deadline,
  send: () => Promise<Response>,
): Promise<Response> {
  const policy = { ...defaultRetryPolicy, tries: request.maxAttempts ?? defaultRetryPolicy.tries }
  for (let attempt = 1; ; attempt++) {
    deadline.signal.throwIfAborted()
    const result = await sendOnce(url, request, attempt, send)
    if (result instanceof Response) return result
    deadline.endStep()
    const delay = result.isRetryable ? retryDelay(attempt, policy, result.retryAfter) : undefined
    if (delay === undefined) throw result.error
    await (request.sleep ?? sleep)(delay, deadline.signal)
  }
}

async function sendOnce(
  url: string,
  { model, settings }: PostRequest,
  attempt: number,
  send: () => Promise<Response>,
): Promise<Response | Failure> {
  let response: Response
  try {
    response = await send()
  } catch (error) {
    return {
      error: unreachableError(url, error, settings),
      isRetryable: staleConnectionCodes.has(extractNetworkCode(error)),
    }
  }
  if (response.ok) return response
  const errorCode = await readErrorCode(response)
  return {
    error: statusError(url, { status: response.status, errorCode, attempts: attempt, model, settings }),
    isRetryable: isRetryableStatus(response.status, errorCode),
    retryAfter: parseRetryAfter((name) => response.headers.get(name)),
  }
}

function isRetryableStatus(status: number, errorCode: string): boolean {
  if (status === 429) return errorCode !== 'insufficient_quota'
  return status >= 500 && status !== 501
}

/** Reads the provider's error code from an error response; '' when there is none or the body is too long. */
async function readErrorCode(response: Response): Promise<string> {
  if (response.body === null) return ''
  const text = await readText(response.body, maxErrorBodyBytes).catch(() => '')
  return extractErrorCode(parseJson(text ?? ''))
}

/**
 * Rewrites tool calls and their results as plain text. Providers reject calls of tools that the request does not
 * define, and requests to a `Model` define none.
 */
export function flattenToolCalls(messages: readonly ChatMessage[]): ChatMessage[] {
  const toolNames = new Map<string, string>()
  return messages.map((message) => {
    if (message.role === 'tool') {
      const toolName = toolNames.get(message.tool_call_id) ?? 'a tool'
      return { role: 'user', content: `(result of ${toolName}) ${message.content}` }
    }
    if (message.role !== 'assistant' || message.tool_calls === undefined) return message
    for (const call of message.tool_calls) toolNames.set(call.id, call.function.name)
    const calls = message.tool_calls.map((call) => `(called ${call.function.name} with ${call.function.arguments})`)
    return { role: 'assistant', content: [message.content ?? '', ...calls].filter((part) => part !== '').join('\n') }
  })
}
