import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { isObject } from '../../domain/checks.ts'
import { MemoryError } from '../../domain/error.ts'
import { type Key, parseKey, type Scope } from '../../domain/key.ts'
import { notFound } from '../http/httpError.ts'
import { allows, type Credential, soleScope } from './credential.ts'

/** What a request says about the session it belongs to, and whose request it is. */
export type Named = {
  /** The key in the address. */
  readonly path?: Key | undefined
  /** The header `x-threadkeep-key`. */
  readonly header?: string | undefined
  /** What the body says about the session. */
  readonly session?: string | undefined
  /** Who asks; without keys everybody may do everything. */
  readonly credential?: Credential | undefined
  /** The scope for sessions named without one, if the operator chose one. */
  readonly defaultScope?: Scope | undefined
}

/** The Threadkeep key a request brings. Keys of other houses, in the headers that both use, are none of ours. */
export function presented(headers: IncomingHttpHeaders): string | undefined {
  const own = headers['x-threadkeep-api-key']
  if (own !== undefined) return String(own).trim()
  const bearer = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1]
  return [bearer, headers['x-api-key']].find((key): key is string => typeof key === 'string' && key.startsWith('tk_'))
}

/** What a body says about the session, by the fields that clients have for it; the plainest word counts. */
export function sessionIn({
  metadata,
  prompt_cache_key: cacheKey,
  user,
}: Readonly<Record<string, unknown>>): string | undefined {
  const about = isObject(metadata) ? metadata : undefined
  return named(about?.threadkeep_session) ?? named(about?.session_id) ?? named(cacheKey) ?? named(user)
}

const named = (text: unknown): string | undefined => (typeof text === 'string' && text.trim() !== '' ? text : undefined)

/**
 * The session a request belongs to: by its address, else by its header, else by its body; `undefined` if it belongs to
 * none. A body never names a scope, and a scope the credential does not open is as if it were not there.
 *
 * @example
 * keyFor({ header: ':ann', credential: { scopes: ['acme'], … } }) // acme:ann
 */
export function keyFor(named: Named): Key | undefined {
  const key = named.path ?? keyInHeader(named) ?? keyInBody(named)
  if (key !== undefined && named.credential !== undefined && !allows(named.credential, key.scope)) throw notFound()
  return key
}

function keyInHeader(named: Named): Key | undefined {
  const text = named.header?.trim() ?? ''
  if (text === '') return undefined
  if (text.startsWith(':')) return parseKey(`${homeOf(named) ?? ''}${text}`)
  const sole = named.credential === undefined ? undefined : soleScope(named.credential)
  // The only scope there is, named by itself, is the tenant and not a session that happens to be called like it.
  return parseKey(text.includes(':') || sole === undefined || text === sole ? text : `${sole}:${text}`)
}

function keyInBody(named: Named): Key | undefined {
  const [session, home] = [named.session ?? '', homeOf(named)]
  if (session.trim() === '' || home === undefined) return undefined
  return sessionOf(home, session) ?? parseKey(`${home}:${hashed(session)}`)
}

/** Where a session belongs that is named without a scope. */
function homeOf({ credential, defaultScope }: Named): Scope | undefined {
  if (credential === undefined) return defaultScope
  return (
    soleScope(credential) ?? (defaultScope !== undefined && allows(credential, defaultScope) ? defaultScope : undefined)
  )
}

function sessionOf(scope: Scope, id: string): Key | undefined {
  try {
    return parseKey(`${scope}:${id}`)
  } catch (error) {
    if (error instanceof MemoryError && error.code === 'bad-key') return undefined
    throw error
  }
}

/** What clients write into these fields was never meant as an id of ours: it is made one. */
const hashed = (text: string): string => `u.${hash('sha256', text, 'base64url').slice(0, 22)}`
