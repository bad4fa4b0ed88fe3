import { MemoryError } from '../domain/error.ts'
import { getPath, getString } from '../text/json.ts'

/** Names of the settings that hold the base URL and the API key, as error messages refer to them. */
export type SettingNames = { readonly baseUrl: string; readonly apiKey: string }

/** An HTTP error response of a provider. */
export type ProviderErrorResponse = {
  readonly status: number
  /** The provider's machine-readable error code, or '' when it sent none. */
  readonly errorCode: string
  /** Number of requests made so far. */
  readonly attempts: number
  readonly model: string
  readonly settings: SettingNames
}

/**
 * Creates the error for an HTTP error response. Names the remedy and never repeats the response body, which may quote
 * keys and messages.
 */
export function statusError(url: string, response: ProviderErrorResponse): MemoryError {
  const status =
    response.errorCode === '' ? `HTTP ${response.status}` : `HTTP ${response.status}, ${response.errorCode}`
  const attempts = response.attempts > 1 ? ` after ${response.attempts} tries` : ''
  return new MemoryError('upstream', `${url} ${explainStatus(response, `(${status})${attempts}`)}`, {
    status: response.status,
  })
}

function explainStatus({ status, errorCode, model, settings }: ProviderErrorResponse, details: string): string {
  if (status === 401 || status === 403) return `refused the key ${details}. Check ${settings.apiKey}.`
  if (status === 404)
    return `has no model ${JSON.stringify(model)} or no such endpoint ${details}. Check the model name and ${settings.baseUrl}.`
  if (errorCode === 'insufficient_quota')
    return `reports that the quota is used up ${details}. Check the plan and billing of the account behind ${settings.apiKey}.`
  if (status === 429) return `receives too many requests ${details}. Wait a while, or raise the limits of the account.`
  if (status >= 500) return `failed ${details}. Try again later; if it is your own server, look at its log.`
  if (status < 400) return `redirects elsewhere ${details}. Give the final address: check ${settings.baseUrl}.`
  return `refused the request ${details}. Check that the model accepts the parameters that were sent.`
}

/** Creates the error for a request that got no response. */
export function unreachableError(url: string, error: unknown, settings: SettingNames): MemoryError {
  const networkCode = extractNetworkCode(error)
  const details = networkCode === '' ? '' : ` (${networkCode})`
  return new MemoryError(
    'upstream',
    `No answer from ${url}${details}. Is the server running? Check ${settings.baseUrl}.`,
    { cause: error },
  )
}

/** Creates the error for a connection that was lost in the middle of a reply. */
export const connectionLostError = (url: string, error: unknown): MemoryError =>
  new MemoryError(
    'upstream',
    `The connection to ${url} broke off in the middle of the reply. Try again; if it is your own server, look at its log.`,
    { cause: error },
  )

/** Creates the error for a stream that closed before the reply was complete. */
export const incompleteReplyError = (url: string): MemoryError =>
  new MemoryError('upstream', `The reply of ${url} ended early: the stream closed before it was complete. Try again.`)

/** Creates the error for a successful response that is not a model reply; `received` names its content. */
export const invalidReplyError = (url: string, received: string): MemoryError =>
  new MemoryError(
    'upstream',
    `${url} sent ${received} instead of a reply. Check that the address is that of a model server.`,
  )

/** Creates the error for a reply that the provider blocked, with the provider's reason. */
export const withheldReplyError = (url: string, reason: string): MemoryError =>
  new MemoryError('upstream', `${url} withheld the reply (${reason}). Rephrase the question, or use another model.`)

/** Finds an error that a provider reports inside a stream event or a JSON body with a success status. */
export function findReportedError(url: string, json: unknown): MemoryError | undefined {
  const error = getPath(json, 'error')
  if (typeof error !== 'string' && (typeof error !== 'object' || error === null)) return undefined
  const errorCode = extractErrorCode(json)
  return new MemoryError(
    'upstream',
    `${url} reported an error${errorCode === '' ? '' : ` (${errorCode})`} instead of going on. Try again later.`,
  )
}

/** Extracts the error code and the parameter it is about. Accepts identifiers only: free text may contain secrets. */
export function extractErrorCode(json: unknown): string {
  const error = getPath(json, 'error')
  const errorCode =
    [getString(error, 'code'), getString(error, 'status'), getString(error, 'type')].find(isIdentifier) ?? ''
  const param = getString(error, 'param')
  return isIdentifier(param) && errorCode !== '' ? `${errorCode}: ${param}` : errorCode
}

/** Allows letters and underscores only, which excludes keys and sentences. */
const isIdentifier = (text: string): boolean => /^[A-Za-z][A-Za-z_]{1,47}$/.test(text)

/** Extracts the system's code of a network failure, such as `ECONNREFUSED`; '' when there is none. */
export function extractNetworkCode(error: unknown): string {
  const code = getString(getPath(error, 'cause'), 'code')
  return /^[A-Z][A-Z0-9_]{1,47}$/.test(code) ? code : ''
}
