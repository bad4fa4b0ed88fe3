import { MemoryError } from '../../domain/error.ts'

/** Fields of an error of PostgreSQL or of the network. */
type DriverError = { readonly code?: unknown; readonly message?: unknown; readonly severity?: unknown }

/** Stage of an operation in which it failed. */
export type Stage = 'connect' | 'run'

/** SQLSTATE of the server, or code of the network error; empty if there is none. */
const codeOf = (error: unknown): string => {
  const { code } = (typeof error === 'object' && error !== null ? error : {}) as DriverError
  return typeof code === 'string' ? code : ''
}

const isSqlState = (code: string): boolean => /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('E')

/** Errors after which the server closes the connection: class 08, and shutdowns. */
const endsConnection = (code: string): boolean =>
  code.startsWith('08') || ['57P01', '57P02', '57P03', '57P05', '25P03'].includes(code)

/** True if the server rolled the statement back: it answered with an error and did not close the connection. */
const isRolledBack = (error: unknown): boolean => {
  const code = codeOf(error)
  return isSqlState(code) && !endsConnection(code)
}

/** True if the connection must not be used again. */
export const breaksConnection = (error: unknown): boolean => !isRolledBack(error)

/** True if the change was certainly not applied. */
export const isNotApplied = (error: unknown, stage: Stage): boolean => stage === 'connect' || isRolledBack(error)

const transientStates = ['40001', '40P01', '53300', '57P03', '57P01', '57P02', '57P05', '25P03']
const lastingNetworkErrors = [
  'ENOTFOUND',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'CERT_HAS_EXPIRED',
  'ERR_TLS_CERT_ALTNAME_INVALID',
]

/** True if the same statement may succeed a moment later. */
export function isTransient(error: unknown): boolean {
  if (error instanceof MemoryError) return false
  const code = codeOf(error)
  if (isRefusedParameter(messageOf(error))) return false
  if (isSqlState(code)) return transientStates.includes(code) || code.startsWith('08')
  return !lastingNetworkErrors.includes(code) && !isTlsError(error)
}

const isTlsError = (error: unknown): boolean => /SSL|TLS|certificate|SASL|password/i.test(messageOf(error))
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Converts a driver error. `name` is the address of the database without its password. The cause is reduced to code and
 * message: details of the server quote rows.
 */
export function toMemoryError(error: unknown, name: string, stage: Stage): MemoryError {
  if (error instanceof MemoryError) return error
  const code = codeOf(error)
  const text = messageOf(error)
  const cause = Object.assign(new Error(text), { code })
  const create = (...[errorCode, message]: ConstructorParameters<typeof MemoryError>): MemoryError =>
    new MemoryError(errorCode, message, { cause })
  const known = describeSqlState(code, name, text) ?? describeRefusal(name, text)
  if (known !== undefined) return create(...known)
  if (stage === 'connect')
    return create(
      isTransient(error) ? 'busy' : 'bad-store',
      `${name} cannot be reached (${code || text}); nothing was stored. Check the address, the network and TLS settings, and that the server is running.`,
    )
  if (!isSqlState(code) || endsConnection(code))
    return create(
      'not-durable',
      `The connection to ${name} was lost (${code || text}); the change may not be stored. Try again.`,
    )
  return create('not-durable', `${name} failed: ${text} (${code}). Nothing was stored.`)
}

/** Describes failed connections that have no SQLSTATE of their own. */
function describeRefusal(name: string, text: string): KnownError | undefined {
  if (isMissingPassword(text))
    return ['bad-store', `${name} asks for a password. Put it into the URL, or set PGPASSWORD.`]
  if (isRefusedParameter(text))
    return [
      'bad-store',
      `${name} refuses a setting of the connection (${text}). Behind PgBouncer, set ignore_startup_parameters; see "URL and options" in docs/postgres.md.`,
    ]
  return undefined
}

const isMissingPassword = (text: string): boolean => /password must be a (?:non-empty )?string/.test(text)
/** Error of PgBouncer for a parameter that it does not track. All its errors have the same code. */
const isRefusedParameter = (text: string): boolean => text.startsWith('unsupported startup parameter')

type KnownError = [code: MemoryError['code'], message: string]

function describeSqlState(code: string, name: string, text: string): KnownError | undefined {
  switch (code) {
    case '28P01':
    case '28000':
      return ['bad-store', `${name} refuses the user or password. Check both, and pg_hba.conf on the server.`]
    case '3D000':
      return ['bad-store', `The database of ${name} does not exist. Create it with createdb.`]
    case '42501':
      return ['bad-store', `The user of ${name} lacks a privilege (${text}). See "Roles" in docs/postgres.md.`]
    case '3F000':
    case '42P01':
    case '42883':
      return ['bad-store', `The tables of ${name} are missing or incomplete (${text}). Open the store again.`]
    case '53100':
      return ['disk-full', `The disk of ${name} is full; nothing was stored. Free some space and try again.`]
    case '25006':
      return ['not-durable', `${name} is read-only (a replica?); nothing was stored. Connect to the primary server.`]
    case '55P03':
    case '57014':
    case '40001':
    case '40P01':
      return ['busy', `${name} is busy (${text}); nothing was stored. Try again.`]
    case '53300':
      return ['busy', `${name} has too many connections; nothing was stored. Lower max_connections of the stores.`]
    case '54000':
    case '22P05':
      return [
        'bad-message',
        `A message exceeds the limits of ${name} (${text}); nothing was stored. Split the message.`,
      ]
    case 'XX001':
    case 'XX002':
      return ['corrupt', `${name} is damaged (${text}). Restore a backup.`]
    default:
      return undefined
  }
}
