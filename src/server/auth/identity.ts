import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Millis } from '../../domain/entry.ts'
import { isObject, MemoryError } from '../../domain/error.ts'
import { type Key, parseKey, type Scope } from '../../domain/key.ts'
import { HttpError, notFound } from '../http/httpError.ts'
import { allowsScope, type Credential, onlyScope } from './credential.ts'
import type { Credentials } from './credentials.ts'

/** Everything in a request that determines its session key. */
export type KeySources = {
  /** The key in the path. */
  readonly path?: Key | undefined
  /** The header `x-threadkeep-key`. */
  readonly header?: string | undefined
  /** The session named in the body. */
  readonly sessionHint?: string | undefined
  /** Credential of the caller; without one, every scope is allowed. */
  readonly credential?: Credential | undefined
  /** Scope of sessions that are named without one. */
  readonly defaultScope?: Scope | undefined
}

/**
 * Authenticates a request. Returns undefined when the server requires no keys.
 *
 * @throws {HttpError} 401 without a valid key. The message does not reveal whether the key is unknown, expired or
 * revoked.
 */
export function authenticate(
  credentials: Credentials | undefined,
  headers: IncomingHttpHeaders,
  now: Millis,
): Credential | undefined {
  if (credentials === undefined || !credentials.isRequired(now)) return undefined
  const key = readApiKey(headers)
  const credential = credentials.authenticate(key, now)
  if (credential !== undefined) return credential
  const message =
    key === undefined
      ? 'A Threadkeep key is missing. Send one as Authorization: Bearer tk_…, or in the header x-api-key or x-threadkeep-api-key.'
      : 'This Threadkeep key is not valid. Ask the operator of this server for a new one.'
  throw new HttpError(401, 'invalid_api_key', message, null, { headers: { 'www-authenticate': 'Bearer' } })
}

/**
 * The Threadkeep key of a request. The shared headers may instead contain a key of the model provider, which is
 * ignored.
 */
export function readApiKey(headers: IncomingHttpHeaders): string | undefined {
  const own = headers['x-threadkeep-api-key']
  if (own !== undefined) return String(own).trim()
  const bearer = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
  return [bearer, headers['x-api-key']].find((key): key is string => typeof key === 'string' && key.startsWith('tk_'))
}

/** The session named in a body: the most explicit of the fields that clients use for it. */
export function readSessionHint({
  metadata,
  prompt_cache_key: cacheKey,
  user,
}: Readonly<Record<string, unknown>>): string | undefined {
  const fields = isObject(metadata) ? metadata : undefined
  return nonBlank(fields?.threadkeep_session) ?? nonBlank(fields?.session_id) ?? nonBlank(cacheKey) ?? nonBlank(user)
}

const nonBlank = (text: unknown): string | undefined =>
  typeof text === 'string' && text.trim() !== '' ? text : undefined

/**
 * Resolves the session key of a request: from its path, else its header, else its body; undefined when none names one.
 * A body never names a scope.
 *
 * @throws {HttpError} 404 for a scope that the credential does not allow.
 *
 * @example
 * resolveKey({ header: ':ann', credential: { scopes: ['acme'], … } }) // acme:ann
 */
export function resolveKey(sources: KeySources): Key | undefined {
  const key = sources.path ?? keyFromHeader(sources) ?? keyFromBody(sources)
  if (key !== undefined && sources.credential !== undefined && !allowsScope(sources.credential, key.scope))
    throw notFound()
  return key
}

function keyFromHeader(sources: KeySources): Key | undefined {
  const text = sources.header?.trim() ?? ''
  if (text === '') return undefined
  if (text.startsWith(':')) return parseKey(`${implicitScope(sources) ?? ''}${text}`)
  const sole = sources.credential === undefined ? undefined : onlyScope(sources.credential)
  // The name of the only scope means the tenant, not a session of the same name.
  return parseKey(text.includes(':') || sole === undefined || text === sole ? text : `${sole}:${text}`)
}

function keyFromBody(sources: KeySources): Key | undefined {
  const [session, scope] = [sources.sessionHint ?? '', implicitScope(sources)]
  if (session.trim() === '' || scope === undefined) return undefined
  return tryParseSession(scope, session) ?? parseKey(`${scope}:${hashSessionId(session)}`)
}

/** The scope of sessions that are named without one. */
function implicitScope({ credential, defaultScope }: KeySources): Scope | undefined {
  if (credential === undefined) return defaultScope
  return (
    onlyScope(credential) ??
    (defaultScope !== undefined && allowsScope(credential, defaultScope) ? defaultScope : undefined)
  )
}

function tryParseSession(scope: Scope, id: string): Key | undefined {
  try {
    return parseKey(`${scope}:${id}`)
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'bad-key') return undefined
    throw error
  }
}

/** Turns free text of a client into a valid session id. */
const hashSessionId = (text: string): string => `u.${hash('sha256', text, 'base64url').slice(0, 22)}`
