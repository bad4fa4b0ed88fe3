import { describeUnknownName } from '../../domain/checkOptions.ts'
import { MemoryError, shortenText } from '../../domain/error.ts'

/** Settings of a connection that a URL or the options of `postgresStore` give. */
export type ConnectionSettings = {
  /** URL for the driver, with the password. */
  readonly url: string
  /** URL for messages, without password and parameters. */
  readonly name: string
  readonly schema: string
  readonly maxConnections: number
  readonly connectTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly lockTimeoutMs: number
}

export const defaultSettings: Omit<ConnectionSettings, 'url' | 'name'> = {
  schema: 'threadkeep',
  maxConnections: 10,
  connectTimeoutMs: 10_000,
  statementTimeoutMs: 30_000,
  lockTimeoutMs: 10_000,
}

/** Parameters that the driver understands. */
const driverParameters = [
  'sslmode',
  'sslcert',
  'sslkey',
  'sslrootcert',
  'sslnegotiation',
  'uselibpqcompat',
  'application_name',
  'host',
  'options',
]
/** Parameters of our own, with the unit of numbers in milliseconds. */
const ownNumbers = {
  max_connections: ['maxConnections', 1],
  connect_timeout: ['connectTimeoutMs', 1_000],
  statement_timeout: ['statementTimeoutMs', 1],
  lock_timeout: ['lockTimeoutMs', 1],
} as const
const knownParameters = ['schema', ...Object.keys(ownNumbers), ...driverParameters]

const isPostgresUrl = (url: string): boolean => /^postgres(ql)?:\/\//.test(url)

/** Returns the path of a `pglite:` URL, or undefined for any other URL. */
export const parsePgliteUrl = (url: string): string | undefined =>
  url.startsWith('pglite:') ? url.slice('pglite:'.length) || 'threadkeep.pglite' : undefined

/** Tells whether a URL names a PostgreSQL database, on a server or embedded. */
export const isDatabaseUrl = (url: string): boolean => isPostgresUrl(url) || parsePgliteUrl(url) !== undefined

/** Parses a `postgres://` URL. Throws `bad-option` for an invalid one, without repeating its password. */
export function parsePostgresUrl(text: string, defaults: Partial<ConnectionSettings> = {}): ConnectionSettings {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !isPostgresUrl(text))
    throw badUrl(
      'The store URL is not valid. Write postgres://USER:PASSWORD@HOST:5432/DATABASE and encode special characters.',
    )
  const settings: Record<string, string | number> = { ...defaultSettings, ...defaults }
  for (const [name, value] of url.searchParams) {
    if (!knownParameters.includes(name))
      throw badUrl(`Unknown parameter of the store URL: ${describeUnknownName(name, knownParameters)}`)
    if (name === 'schema') settings.schema = checkSchema(value)
    const [field, unitMs] = Object.hasOwn(ownNumbers, name) ? ownNumbers[name as keyof typeof ownNumbers] : []
    if (field !== undefined) settings[field] = parseCount(name, value) * unitMs
  }
  for (const name of ['schema', ...Object.keys(ownNumbers)]) url.searchParams.delete(name)
  return { ...(settings as typeof defaultSettings), url: url.href, name: maskUrl(url) }
}

/** Throws `bad-option` for a name that could not be written without quotes. */
export function checkSchema(name: string): string {
  if (/^[a-z_][a-z0-9_]{0,39}$/.test(name) && !name.startsWith('pg_')) return name
  throw badUrl(
    `The schema is ${JSON.stringify(shortenText(name, 60))}; use up to 40 of a-z, 0-9 and _, and no pg_ at its start.`,
  )
}

function parseCount(name: string, value: string): number {
  if (/^[1-9][0-9]{0,8}$/.test(value)) return Number(value)
  throw badUrl(`${name} is ${JSON.stringify(shortenText(value, 40))}; it must be a whole number, 1 or more.`)
}

function maskUrl({ protocol, username, host, pathname }: URL): string {
  return `${protocol}//${username === '' ? '' : `${username}@`}${host}${pathname}`
}

const badUrl = (message: string): MemoryError => new MemoryError('bad-option', message, { param: 'store' })
