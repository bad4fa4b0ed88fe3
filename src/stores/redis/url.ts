import { readFileSync } from 'node:fs'
import { checkOptions, describeUnknownName, type OptionChecks } from '../../domain/checkOptions.ts'
import { anyText, integerAtLeast, MemoryError, oneOf, rejectField } from '../../domain/error.ts'

/** Settings of a connection that a URL may contain too. */
export type ConnectionOptions = {
  /** Beginning of all keys in Redis; default `threadkeep`. Several installations can share a server. */
  readonly prefix?: string
  /** Time after which a command fails, also while Redis cannot be reached; default 5,000. */
  readonly timeoutMs?: number
  /**
   * `check` (default) refuses servers that persist data or evict keys. `confirmed` states that the operator has made
   * sure of it, for services that do not show their settings.
   */
  readonly settings?: 'check' | 'confirmed'
  /** File with the certificates (PEM) to trust besides those of Node, for `rediss:`. */
  readonly ca?: string
  /** Token of an Upstash database. */
  readonly token?: string
}

const prefixPattern = /^[\w.:-]{1,64}$/

export const connectionOptionChecks: OptionChecks<ConnectionOptions> = {
  prefix: (value, path) => {
    if (typeof value !== 'string' || !prefixPattern.test(value))
      rejectField(path, value, '1 to 64 letters, digits and _ . : -')
  },
  timeoutMs: integerAtLeast(1),
  settings: oneOf('check', 'confirmed'),
  ca: anyText,
  token: anyText,
}

export type Server = { readonly host: string; readonly port: number }
type Credentials = { readonly username?: string; readonly password?: string }

/** Servers to connect to. `master` is the name that sentinels know it by. */
export type ServerTarget = {
  readonly kind: 'server' | 'cluster' | 'sentinel'
  readonly servers: readonly Server[]
  readonly master: string
}

/** Parsed URL of a Redis store. */
export type RedisAddress = Required<Pick<ConnectionOptions, 'prefix' | 'timeoutMs' | 'settings'>> & {
  /** Hosts and ports for error messages, without credentials. */
  readonly shown: string
  readonly target: ServerTarget | { readonly kind: 'rest'; readonly url: string; readonly token: string }
  readonly credentials: Credentials
  readonly database: number
  readonly tls: { readonly ca?: string } | undefined
}

const schemes = /^(redis|rediss)(\+cluster|\+sentinel)?:\/\//
export const redisUrlForms =
  'redis://HOST:PORT, rediss://HOST:PORT, redis+cluster://HOST:PORT,…, redis+sentinel://HOST:PORT,…/MASTER or the https:// URL of Upstash'

/** Tells whether a store URL names a Redis server. */
export const isRedisUrl = (url: string): boolean => schemes.test(url) || /^https?:\/\//.test(url)

/**
 * Parses the URL of a Redis store. Options have precedence over its query.
 *
 * @throws MemoryError `bad-option`; the message does not repeat the URL, which may contain a password.
 */
export function parseRedisUrl(text: string, options: ConnectionOptions = {}): RedisAddress {
  const [, scheme, kind = ''] = schemes.exec(text) ?? []
  const url = parseUrl(scheme === undefined ? text : withOneHost(text))
  const settings = { ...parseQuery(url), ...options }
  checkOptions<ConnectionOptions>('the Redis store', settings, connectionOptionChecks)
  const { prefix = 'threadkeep', timeoutMs = 5_000, settings: check = 'check', ca } = settings
  const common = { prefix, timeoutMs, settings: check, credentials: parseCredentials(url) }
  if (scheme === undefined) return { ...common, ...parseRest(url, settings.token), database: 0, tls: undefined }
  const servers = parseServers(text, kind === '+sentinel' ? 26_379 : 6_379)
  const tls = scheme === 'rediss' ? { ...(ca !== undefined && { ca: readCertificates(ca) }) } : undefined
  const path = decodeURIComponent(url.pathname.slice(1))
  return {
    ...common,
    shown: servers.map(({ host, port }) => `${host}:${port}`).join(','),
    target: {
      kind: kind === '+cluster' ? 'cluster' : kind === '+sentinel' ? 'sentinel' : 'server',
      servers,
      master: path === '' ? 'mymaster' : path,
    },
    database: kind === '' ? parseDatabase(path) : 0,
    tls,
  }
}

/** Describes the location of a store for people, without credentials. */
export const describeRedis = (url: string): string => `Redis at ${parseRedisUrl(url).shown}`

const reject = (problem: string): never => {
  throw new MemoryError('bad-option', `${problem} Use ${redisUrlForms}.`, { param: 'store' })
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url ?? reject('The URL of the Redis store is not valid.')
}

/** Leaves one host, because `URL` accepts no lists. */
const withOneHost = (text: string): string => text.replace(/^([^/]+\/\/(?:[^@/]*@)?)([^/?#,]*)[^/?#]*/, '$1$2')

function parseServers(text: string, defaultPort: number): readonly Server[] {
  const [, hosts = ''] = /^[^/]+\/\/(?:[^@/]*@)?([^/?#]*)/.exec(text) ?? []
  return hosts.split(',').map((part) => {
    const { hostname, port } = parseUrl(`redis://${part}`)
    if (hostname === '') reject('The URL of the Redis store names no host.')
    return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) }
  })
}

function parseCredentials({ username, password }: URL): Credentials {
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password !== '' && { password: decodeURIComponent(password) }),
  }
}

function parseQuery(url: URL): ConnectionOptions {
  const known = Object.keys(connectionOptionChecks)
  const settings: Record<string, unknown> = {}
  for (const [name, value] of url.searchParams) {
    if (!known.includes(name))
      throw new MemoryError(
        'bad-option',
        `Unknown setting in the URL of the Redis store: ${describeUnknownName(name, known)}`,
        { param: 'store' },
      )
    settings[name] = name === 'timeoutMs' ? Number(value) : value
  }
  return settings
}

function parseDatabase(path: string): number {
  if (!/^\d{0,4}$/.test(path)) reject('The path of the URL of the Redis store is not the number of a database.')
  return Number(path)
}

function parseRest(url: URL, token = decodeURIComponent(url.password || url.username)) {
  if (token === '') reject('The URL of an Upstash database needs its token: https://:TOKEN@HOST, or ?token=TOKEN.')
  const { origin, host, pathname } = url
  return { shown: host, target: { kind: 'rest' as const, url: `${origin}${pathname.replace(/\/$/, '')}`, token } }
}

function readCertificates(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return reject(`The file of certificates ${JSON.stringify(file)} cannot be read.`)
  }
}
