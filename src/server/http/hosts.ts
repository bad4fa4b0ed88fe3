import type { IncomingHttpHeaders } from 'node:http'
import { isIP } from 'node:net'
import { check } from '../../domain/error.ts'
import { Refusal } from './problem.ts'

/** Under which names a server is asked, and from which web pages. */
export type Doors = {
  /** The address it listens on. */
  readonly listening: string
  /** Names it is known by besides those of its own machine. */
  readonly names: readonly string[]
  /** Origins of web pages and extensions that may ask it, such as `https://chat.example.com` or `chrome-extension://abc…`. */
  readonly origins: readonly string[]
}

const methods = 'GET, POST, PUT, PATCH, DELETE'
const exposed = [
  'retry-after',
  'x-request-id',
  ...['degraded', 'key', 'memory', 'profile', 'receipt', 'tokens'].map((name) => `x-threadkeep-${name}`),
].join(', ')

/**
 * Checks what an operator allows, so that a mistake is found at the start and not by an attacker.
 *
 * @example
 * doorsOf({ listening: '127.0.0.1', names: ['memory.local'], origins: ['https://chat.example.com'] })
 */
export function doorsOf({ listening, names, origins }: Doors): Doors {
  for (const name of names)
    check('allowed host', name, hostOf(name) !== undefined && !name.includes('*'), 'a name such as memory.example.com')
  for (const origin of origins)
    check(
      'allowed origin',
      origin,
      /^[a-z][a-z0-9+.-]*:\/\/[^\s/*?#@]+$/i.test(origin),
      'an origin such as https://chat.example.com, without a path',
    )
  return {
    listening,
    names: names.map((name) => hostOf(name) ?? ''),
    origins: origins.map((origin) => origin.toLowerCase()),
  }
}

/**
 * Refuses requests under a name that is not the server's own. A web page whose name leads first to its own server and then
 * to this machine (DNS rebinding) counts as the same origin for a browser: only the name gives it away.
 */
export function checkHost(host: string | undefined, doors: Doors): void {
  const known = admitted.get(doors)
  if (host !== undefined && known?.has(host) === true) return
  examine(host, doors)
  if (host === undefined) return
  if (known === undefined) admitted.set(doors, new Set([host]))
  else if (known.size < mostAdmitted) known.add(host)
}

/** Names that were let in before: nearly all requests come by one of a few. */
const admitted = new WeakMap<Doors, Set<string>>()
const mostAdmitted = 100

function examine(host: string | undefined, doors: Doors): void {
  const isLocal = isLoopback(doors.listening)
  // Reachable from elsewhere, a server cannot know its names; but where it was told them, they are all.
  if (!isLocal && doors.names.length === 0) return
  const name = hostOf(host ?? '')
  if (name !== undefined && (isLoopback(name) || doors.names.includes(name))) return
  // Nobody can make an address lead elsewhere.
  if (name !== undefined && !isLocal && isIP(bare(name)) !== 0) return
  const asked = JSON.stringify((host ?? '').slice(0, 80))
  throw new Refusal(
    421,
    'misdirected_request',
    `This server is not ${asked}. Ask it as localhost or 127.0.0.1, or have that name added to its allowed hosts.`,
  )
}

/**
 * The foreign origin a request comes from, if that one is allowed; `undefined` for the server's own pages and for clients
 * that are no browsers. All others are refused.
 */
export function checkOrigin(method: string, headers: IncomingHttpHeaders, doors: Doors): string | undefined {
  const { origin } = headers
  if (origin === undefined) return checkSite(method, headers)
  if (doors.origins.includes(origin.toLowerCase())) return origin
  if (isSame(origin, headers.host)) return undefined
  throw foreign(origin)
}

/** Whether a browser asks what it may ask. */
export const isPreflight = (method: string, headers: IncomingHttpHeaders): boolean =>
  method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined

/** What an allowed origin is told with an answer. No cookies: who asks is told by a key. */
export const corsHeaders = (origin: string): Record<string, string> => ({
  'access-control-allow-origin': origin,
  'access-control-expose-headers': exposed,
  vary: 'origin',
})

/** What an allowed origin is told before it asks. */
export function preflightHeaders(origin: string, headers: IncomingHttpHeaders): Record<string, string> {
  const wanted = headers['access-control-request-headers'] ?? ''
  const isPlain = /^[\w-]+(?: *, *[\w-]+){0,63}$/.test(wanted)
  return {
    ...corsHeaders(origin),
    'access-control-allow-methods': methods,
    ...(isPlain ? { 'access-control-allow-headers': wanted } : {}),
    // A page on the internet that asks a machine of the local network needs leave of its own.
    ...(headers['access-control-request-private-network'] === 'true'
      ? { 'access-control-allow-private-network': 'true' }
      : {}),
    'access-control-max-age': '600',
    vary: 'origin, access-control-request-headers, access-control-request-private-network',
  }
}

/** A browser names no origin for pictures, scripts and links, but says whether they are wanted by another site; a link may be followed. */
function checkSite(method: string, headers: IncomingHttpHeaders): undefined {
  const site = headers['sec-fetch-site']
  if (site !== 'cross-site' && site !== 'same-site') return undefined
  if (method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document')
    return undefined
  throw foreign('another site')
}

/** The scheme does not count: behind a proxy that speaks TLS this server does not know it. */
const isSame = (origin: string, host: string | undefined): boolean =>
  host !== undefined && [`http://${host}`, `https://${host}`].some((own) => own.toLowerCase() === origin.toLowerCase())

const foreign = (origin: string): Refusal =>
  new Refusal(
    403,
    'origin_not_allowed',
    `Web pages of ${origin.slice(0, 80)} may not ask this server. Have that origin added to its allowed origins.`,
  )

/** The name in a Host header, in lower case and without its port; `undefined` for what is no name. */
function hostOf(host: string): string | undefined {
  return /^(\[[0-9a-f:.]+\]|[a-z0-9](?:[a-z0-9._-]*[a-z0-9_-])?)\.?(?::\d{1,5})?$/.exec(host.toLowerCase())?.[1]
}

const bare = (name: string): string => name.replace(/^\[(.*)\]$/, '$1')

/** Whether a name or address leads to this machine and nowhere else. */
export const isLoopback = (name: string): boolean => {
  const plain = bare(name)
  return plain === 'localhost' || plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'))
}
