import type { Access } from './types.ts'

/** A failed request: the server's message, or the failure to reach it. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** HTTP status; 0 when the server could not be reached. */
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

const keyName = 'threadkeep-api-key'

/** The API key of this tab; it is forgotten when the tab is closed. */
const readApiKey = (): string | undefined => sessionStorage.getItem(keyName) ?? undefined

export function saveApiKey(key: string | undefined): void {
  if (key === undefined) sessionStorage.removeItem(keyName)
  else sessionStorage.setItem(keyName, key)
}

/** Headers that authenticate a request. `authorization` stays free: it may carry the key of a model provider. */
export function authHeaders(): Record<string, string> {
  const key = readApiKey()
  return key === undefined ? {} : { 'x-threadkeep-api-key': key }
}

type RequestOptions = {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** Sends a request and returns the response; throws `ApiError` for every failure. */
export async function send(path: string, { method = 'GET', body, signal }: RequestOptions = {}): Promise<Response> {
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers: { ...authHeaders(), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      cache: 'no-store',
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError(0, 'The server cannot be reached.')
  }
  if (response.ok) return response
  throw new ApiError(response.status, await readMessage(response))
}

async function readMessage(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error: { message: string } }
    return error.message
  } catch {
    return `The server answered with status ${response.status}.`
  }
}

/** Sends a request and returns its JSON; undefined for a response without a body. */
export async function request<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(path, options)
  return (response.status === 204 ? undefined : await response.json()) as T
}

/** A path with its segments and query parameters encoded; empty parameters are left out. */
export function apiPath(
  segments: readonly string[],
  query: Readonly<Record<string, string | number | boolean | undefined>> = {},
): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') parameters.set(name, String(value))
  const path = `/${segments.map(encodeURIComponent).join('/')}`
  return parameters.size === 0 ? path : `${path}?${parameters}`
}

/** Reads the rights of the current key. */
export const readAccess = (signal?: AbortSignal): Promise<Access> => request('/api/access', { signal })
