import { MemoryError, shortenText } from '../../domain/error.ts'
import { type Key, parseKey } from '../../domain/key.ts'
import { HttpError } from './httpError.ts'

/** Decoded values of the `{name}` segments of a path. */
export type Params = Readonly<Record<string, string>>

type Route<T> = {
  /** Method and path template, such as `GET /api/sessions/{key}`. */
  readonly name: string
  readonly path: string
  readonly pattern: RegExp
  readonly paramNames: readonly string[]
  readonly handler: T
}
type RouteMatch<T> = Pick<Route<T>, 'name' | 'path' | 'handler'> & { readonly params: Params }

/** Route for paths that no other route has. */
export type Fallback<T> = {
  readonly path: string
  readonly handler: T
  readonly accepts: (method: string, path: string) => boolean
  /** Path of the own route that a server with looser rules would see in a path. It stays unknown if there is one. */
  readonly toOwnPath: (path: string) => string
}

/** Finds the handler of a request by method and path, such as `POST /v1/{key}/chat/completions`. */
export class Router<T> {
  private readonly routesByMethod = new Map<string, Route<T>[]>()

  private readonly fallback: Fallback<T> | undefined

  constructor(handlers: Readonly<Record<string, T>>, fallback?: Fallback<T>) {
    this.fallback = fallback
    for (const [name, handler] of Object.entries(handlers)) {
      const [method = '', path = ''] = name.split(' ')
      const routes = this.routesByMethod.get(method) ?? []
      const paramNames = [...path.matchAll(paramSegment)].map(([, param]) => param as string)
      this.routesByMethod.set(method, [...routes, { name, path, pattern: toPattern(path), paramNames, handler }])
    }
  }

  /** Throws 405 with the allowed methods, or 404 if there is no fallback either. */
  find(method: string, requestPath: string): RouteMatch<T> {
    // Node omits the body of responses to HEAD.
    for (const route of this.routesByMethod.get(method === 'HEAD' ? 'GET' : method) ?? []) {
      const match = route.pattern.exec(requestPath)
      if (match === null) continue
      const { name, path, handler, paramNames } = route
      return { name, path, handler, params: readParams(paramNames, match) }
    }
    return this.findFallback(method, requestPath)
  }

  private findFallback(method: string, path: string): RouteMatch<T> {
    const { fallback } = this
    const isOpen = fallback?.accepts(method, path) === true && this.methodsOf(path).length === 0
    if (!isOpen || this.methodsOf(fallback.toOwnPath(path)).length > 0) throw this.noRoute(method, path)
    return { name: fallback.path, path: fallback.path, handler: fallback.handler, params: {} }
  }

  /** Methods of the routes that match a path. */
  private methodsOf(path: string): readonly string[] {
    return [...this.routesByMethod].flatMap(([method, routes]) =>
      routes.some(({ pattern }) => pattern.test(path)) ? [method] : [],
    )
  }

  private noRoute(method: string, path: string): HttpError {
    const methods = this.methodsOf(path)
    if (methods.length > 0) {
      const message = `${shortenText(path, 200)} takes ${methods.join(' and ')}, not ${method}.`
      return new HttpError(405, 'method_not_allowed', message, null, { headers: { allow: methods.join(', ') } })
    }
    const message = `Unknown URL: ${method} ${shortenText(path, 200)}. GET /openapi.json lists all URLs.`
    return new HttpError(404, 'unknown_url', message)
  }
}

type RequestTarget = { readonly url?: string | undefined }

/** Path of a request, as it was sent. */
export const pathOf = ({ url = '' }: RequestTarget): string =>
  url.includes('?') ? url.slice(0, url.indexOf('?')) : url

/** Query string of a request without `?`, as it was sent. */
export const queryStringOf = ({ url = '' }: RequestTarget): string =>
  url.includes('?') ? url.slice(url.indexOf('?') + 1) : ''

const paramSegment = /\{(\w+)\}/g

/** Request targets may be absolute URLs: matching starts at the first slash of the path. Params are never empty. */
const toPattern = (path: string): RegExp =>
  new RegExp(`^[^/]*${path.replaceAll('.', '\\.').replaceAll(paramSegment, '([^/]+)')}$`)

function readParams(names: readonly string[], match: readonly string[]): Params {
  const params: Record<string, string> = {}
  names.forEach((name, index) => {
    params[name] = decodeSegment(match[index + 1] as string)
  })
  return params
}

/** Decodes once; a key that is still encoded afterwards is invalid. */
function decodeSegment(segment: string): string {
  if (!segment.includes('%')) return segment
  try {
    return decodeURIComponent(segment)
  } catch (cause) {
    throw new MemoryError(
      'bad-key',
      'The key in the URL is not URL-encoded correctly. Write scope or scope:session, for example acme:+15551234567.',
      { param: 'key', cause },
    )
  }
}

/** The key in a path, validated. */
export const readPathKey = ({ key }: Params): Key | undefined => (key === undefined ? undefined : parseKey(key))
