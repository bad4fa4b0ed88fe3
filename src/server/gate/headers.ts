import type { IncomingHttpHeaders } from 'node:http'
import { MemoryError } from '../../domain/error.ts'

/** A model server and the key that was given for it. The key goes to this origin and to no other. */
export type Upstream = { readonly origin: string; readonly protocol: 'openai' | 'anthropic'; readonly key?: string | undefined }

/** What of a client's headers is passed on; others may concern this server only or give something away. */
const forwarded: Readonly<Record<Upstream['protocol'], readonly string[]>> = {
  openai: ['accept', 'openai-beta', 'traceparent', 'tracestate', 'user-agent', 'x-client-request-id'],
  anthropic: ['accept', 'anthropic-beta', 'anthropic-dangerous-direct-browser-access', 'anthropic-version', 'traceparent', 'tracestate', 'user-agent', 'x-app'],
}

/** What belongs to a client's own key: the account it is for. Beside another key it would choose whose account pays. */
const account: Readonly<Record<Upstream['protocol'], readonly string[]>> = { openai: ['openai-organization', 'openai-project'], anthropic: [] }

/** What is passed back of the upstream's. The account that a key belongs to is nobody's business. */
const returned: Readonly<Record<Upstream['protocol'], RegExp>> = {
  openai: /^(?:content-type|retry-after|retry-after-ms|x-should-retry|openai-(?!organization$|project$)[a-z-]{1,64}|x-ratelimit-[a-z-]{1,64})$/,
  anthropic: /^(?:content-type|retry-after|retry-after-ms|x-should-retry|request-id|anthropic-(?!organization-id$)[a-z-]{1,64})$/,
}

/**
 * The headers of a request to a model server: what the protocol needs of the client's, and a key. Throws if the address is
 * not the one that the key was given for.
 *
 * @example
 * requestHeaders({ origin: 'https://api.openai.com', protocol: 'openai', key: 'sk-…' }, url, request.headers, true)
 */
export function requestHeaders(upstream: Upstream, url: Pick<URL, 'origin'>, client: IncomingHttpHeaders, hasCredentials: boolean): Record<string, string> {
  if (url.origin !== upstream.origin) {
    throw new MemoryError('bad-option', `The key for ${upstream.origin} is not sent to ${url.origin}. Give each model server its own key.`, {
      param: 'upstream',
    })
  }
  // What is passed on piece by piece must be readable piece by piece.
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  if (upstream.protocol === 'anthropic') headers['anthropic-version'] = '2023-06-01'
  return Object.assign(chosen(client, forwarded[upstream.protocol], headers), keyHeaders(upstream, client, hasCredentials))
}

/**
 * The key a model server is asked with. Where clients bring Threadkeep keys, it is the configured one and never the
 * client's; elsewhere the client's own, else the configured one. A Threadkeep key is never sent to anybody.
 */
export function keyHeaders(upstream: Upstream, client: IncomingHttpHeaders, hasCredentials: boolean): Record<string, string> {
  const own = hasCredentials ? {} : clientKeys(upstream.protocol, client)
  if (Object.keys(own).length > 0) return { ...own, ...chosen(client, account[upstream.protocol]) }
  if (upstream.key === undefined) return {}
  return upstream.protocol === 'anthropic' ? { 'x-api-key': upstream.key } : { authorization: `Bearer ${upstream.key}` }
}

/** The headers of an answer that a client gets to see. */
export function returnedHeaders(protocol: Upstream['protocol'], given: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const found: Record<string, string> = {}
  for (const name in given) if (given[name] !== undefined && returned[protocol].test(name)) found[name] = String(given[name])
  return found
}

/** A client may ask in one protocol what is answered in another, and then brings its key in the other's header. */
function clientKeys(protocol: Upstream['protocol'], client: IncomingHttpHeaders): Record<string, string> {
  if (protocol === 'anthropic') return chosen(client, ['authorization', 'x-api-key'])
  const own = chosen(client, ['api-key', 'authorization'])
  const { 'x-api-key': key } = chosen(client, ['x-api-key'])
  return key === undefined || Object.keys(own).length > 0 ? own : { authorization: `Bearer ${key}` }
}

/** Adds the headers of these names to those that were found before. */
function chosen(client: IncomingHttpHeaders, names: readonly string[], found: Record<string, string> = {}): Record<string, string> {
  for (const name of names) {
    const value = client[name]
    if (typeof value === 'string' && value !== '' && !holdsKey(value)) found[name] = value
  }
  return found
}

/** Also a mistyped key of ours is ours, wherever it was put. */
const holdsKey = (value: string): boolean => /\btk_/i.test(value)
