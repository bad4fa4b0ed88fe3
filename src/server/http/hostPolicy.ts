import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { checkOption, shortenText } from '../../domain/error.ts'
import { HttpError } from './httpError.ts'

/** Host names and web origins that may reach the server. */
export type HostPolicy = {
  /** The address the server listens on. */
  readonly listenAddress: string
  /** Host names of the server besides the loopback ones. */
  readonly hosts: readonly string[]
  /** Allowed origins of web pages and extensions, such as `https://chat.example.com` or `chrome-extension://abc…`. */
  readonly origins: readonly string[]
}

const allowedMethods = 'GET, POST, PUT, PATCH, DELETE'
const exposedHeaders = [
  'retry-after',
  'x-request-id',
  ...['degraded', 'history', 'key', 'memory', 'profile', 'receipt', 'tokens'].map((name) => `x-threadkeep-${name}`),
].join(', ')

/**
 * Validates and normalizes a policy.
 *
 * @throws {MemoryError} `bad-option` for a malformed name or origin.
 *
 * @example
 * parseHostPolicy({ listenAddress: '127.0.0.1', names: ['memory.local'], origins: ['https://chat.example.com'] })
 */
export function parseHostPolicy({ listenAddress, hosts, origins }: HostPolicy): HostPolicy {
  for (const name of hosts) {
    const isName = parseHost(name) !== undefined && !name.includes('*')
    checkOption('allowed host', name, isName, 'a name such as memory.example.com')
  }
  for (const origin of origins) {
    const isOrigin = /^[a-z][a-z0-9+.-]*:\/\/[^\s/*?#@]+$/i.test(origin)
    checkOption('allowed origin', origin, isOrigin, 'an origin such as https://chat.example.com, without a path')
  }
  return {
    listenAddress,
    hosts: hosts.map((name) => parseHost(name) ?? ''),
    origins: origins.map((origin) => origin.toLowerCase()),
  }
}

/**
 * Refuses requests whose Host header is not a name of this server. With DNS rebinding a web page can resolve its own
 * name to this machine, and the browser treats both as one origin; only the Host header tells them apart.
 */
export function checkHost(host: string | undefined, policy: HostPolicy): void {
  const accepted = acceptedHosts.get(policy)
  if (host !== undefined && accepted?.has(host) === true) return
  validateHost(host, policy)
  if (host === undefined) return
  if (accepted === undefined) acceptedHosts.set(policy, new Set([host]))
  else if (accepted.size < maxAcceptedHosts) accepted.add(host)
}

/** Host headers that were accepted before: nearly all requests use one of a few. */
const acceptedHosts = new WeakMap<HostPolicy, Set<string>>()
const maxAcceptedHosts = 100

function validateHost(host: string | undefined, policy: HostPolicy): void {
  const isLocal = isLoopback(policy.listenAddress)
  // A public server cannot know its names; once names are configured, they are the complete list.
  if (!isLocal && policy.hosts.length === 0) return
  const name = parseHost(host ?? '')
  if (name !== undefined && (isLoopback(name) || policy.hosts.includes(name))) return
  // IP literals are immune to DNS rebinding.
  if (name !== undefined && !isLocal && isIP(stripBrackets(name)) !== 0) return
  const requested = JSON.stringify(shortenText(host ?? '', 80))
  throw new HttpError(
    421,
    'misdirected_request',
    `This server does not answer to the host ${requested}. Use localhost or 127.0.0.1, or add the name to the allowed hosts.`,
  )
}

/**
 * Returns the foreign origin of a request when it is allowed, and undefined for same-origin pages and clients other
 * than browsers. Throws 403 for all other origins.
 */
export function checkOrigin(method: string, headers: IncomingHttpHeaders, policy: HostPolicy): string | undefined {
  const { origin } = headers
  if (origin === undefined) return checkFetchMetadata(method, headers)
  if (policy.origins.includes(origin.toLowerCase())) return origin
  if (isSameOrigin(origin, headers.host)) return undefined
  throw originNotAllowed(origin)
}

/** True for a CORS preflight request. */
export const isPreflight = (method: string, headers: IncomingHttpHeaders): boolean =>
  method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined

/** CORS headers of a response. Credentials mode is off: requests authenticate with keys, not cookies. */
export const corsHeaders = (origin: string): Record<string, string> => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': exposedHeaders,
  vary: 'origin',
})

/** CORS headers of the response to a preflight request. */
export function preflightHeaders(origin: string, headers: IncomingHttpHeaders): Record<string, string> {
  const requested = headers['access-control-request-headers'] ?? ''
  const isHeaderList = /^[\w-]+(?: *, *[\w-]+){0,63}$/.test(requested)
  return {
    ...corsHeaders(origin),
    'access-control-allow-methods': allowedMethods,
    ...(isHeaderList && { 'access-control-allow-headers': requested }),
    // Private Network Access: a public page needs extra permission for a server on a local network.
    ...(headers['access-control-request-private-network'] === 'true' && {
      'access-control-allow-private-network': 'true',
    }),
    'access-control-max-age': '600',
    vary: 'origin, access-control-request-headers, access-control-request-private-network',
  }
}

/** Refuses cross-site requests without an Origin header (images, scripts), except following a link. */
function checkFetchMetadata(method: string, headers: IncomingHttpHeaders): undefined {
  const site = headers['sec-fetch-site']
  if (site !== 'cross-site' && site !== 'same-site') return undefined
  if (method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document')
    return undefined
  throw originNotAllowed('another site')
}

/** Ignores the scheme: behind a TLS proxy the server does not know it. */
const isSameOrigin = (origin: string, host: string | undefined): boolean =>
  host !== undefined && [`http://${host}`, `https://${host}`].some((own) => own.toLowerCase() === origin.toLowerCase())

const originNotAllowed = (origin: string): HttpError =>
  new HttpError(
    403,
    'origin_not_allowed',
    `Web pages of ${shortenText(origin, 80)} may not use this server. Add that origin to the allowed origins.`,
  )

/** The name in a Host header, in lower case and without port. */
function parseHost(host: string): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]*[a-z0-9_-])?)\.?(?::\d{1,5})?$/.exec(host.toLowerCase())?.[1]
}

const stripBrackets = (name: string): string => name.replace(/^\[(.*)\]$/, '$1')

/** True for a name or address of this machine. */
export const isLoopback = (name: string): boolean => {
  const plain = stripBrackets(name)
  return plain === 'localhost' || plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))
}
