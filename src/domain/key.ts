import { describeValue, MemoryError } from './error.ts'

declare const brand: unique symbol

/**
 * Parsed session key such as `example.com:42` or `acme:+15551234567`. An empty `id` names the scope's own memory. Only
 * `parseKey` creates keys.
 */
export type Key = { readonly scope: Scope; readonly id: string; readonly [brand]: true }
/** Tenant, domain or workspace. */
export type Scope = string

const allowedCharacters = /^[A-Za-z0-9_+\-.@]+$/
const reservedNames = ['.', '..', '__proto__', 'constructor', 'prototype']
const maxCharacters = { scope: 64, session: 128 }

/**
 * Parses `scope` or `scope:session`, split at the first colon. Nothing is normalised, so two different texts never give
 * the same key.
 *
 * @throws MemoryError `bad-key` if a part is empty, too long (64 characters for the scope, 128 for the session), a
 * reserved name, or has characters other than letters, digits and `_ + - . @`.
 * @example
 * parseKey('acme:+15551234567') // { scope: 'acme', id: '+15551234567' }
 */
export function parseKey(text: string | Key): Key {
  if (typeof text !== 'string') return revalidateKey(text)
  const colon = text.indexOf(':')
  const scope = colon < 0 ? text : text.slice(0, colon)
  checkPart('scope', scope, text)
  if (colon < 0) return makeKey(scope, '')
  const id = text.slice(colon + 1)
  checkPart('session', id, text)
  return makeKey(scope, id)
}

/**
 * Parses a scope.
 *
 * @throws MemoryError `bad-key` for the key of a session, which would stand for its whole tenant.
 */
export function parseScope(text: string): Scope {
  const { scope, id } = parseKey(text)
  if (id === '') return scope
  throw new MemoryError('bad-key', `${text} is a session, not a tenant. Use ${scope}.`, { param: 'scope' })
}

/** The key formatted last: one operation on a session formats the same key several times in a row. */
let lastFormatted = { scope: '', id: '', text: '' }

/** Formats a key as the text it was parsed from. */
export function formatKey({ scope, id }: Pick<Key, 'scope' | 'id'>): string {
  if (id !== lastFormatted.id || scope !== lastFormatted.scope)
    lastFormatted = { scope, id, text: id === '' ? scope : `${scope}:${id}` }
  return lastFormatted.text
}

/** Tells whether a formatted key names a scope or one of its sessions. */
export const isInScope = (key: string, scope: Scope): boolean => key === scope || key.startsWith(`${scope}:`)

/** Returns the key of the scope's own memory. */
export const scopeKey = (key: Key): Key => makeKey(key.scope, '')

// Keys of internal sessions: files, outbox and graph of a scope, the key of its table, persons, and the branches of a
// session. `parseKey` rejects a colon in the session part, so clients cannot name them.
export const filesKey = (scope: Scope): Key => makeKey(scope, ':files')
/** Session that holds the key of the encrypted rows of a scope, and nothing else. */
export const encryptedTableKey = (scope: Scope): Key => makeKey(scope, ':table')
export const outboxKey = (scope: Scope): Key => makeKey(scope, ':outbox')
/** Returns the key of the session that owns the graph of a scope: erasing the session erases the graph. */
export const graphKey = (scope: Scope): Key => makeKey(scope, ':graph')
export const personKey = (scope: Scope, person: string): Key =>
  makeKey(scope, `:person:${checkPart('session', person, person)}`)
/** Returns the key of the memory that holds the knowledge of a scope or, with `person`, of a person. */
export const knowledgeKey = (key: Key, person?: string): Key =>
  person === undefined ? scopeKey(key) : personKey(key.scope, person)
export const branchKey = (key: Key, number: number): Key => makeKey(key.scope, `${key.id}:${number}`)

/** Tells whether a key names an internal session of the engine. */
export const isInternalKey = (key: Pick<Key, 'id'>): boolean => key.id.includes(':')

/** Parses a key written by `formatKey`, internal keys included. For stores and bundles only, never for client input. */
export function parseStoredKey(text: string): Key {
  const [, scope = '', id = ''] = internalKey.exec(text) ?? []
  return scope === '' ? parseKey(text) : makeKey(scope, id)
}

const internalKey = /^([\w+\-.@]{1,64}):((?:[\w+\-.@]{0,128}:){1,2}[\w+\-.@]{1,128})$/

/** Checks a key object again: it may come from JSON or from an untyped caller. */
function revalidateKey(key: Key): Key {
  if (typeof key?.scope !== 'string' || typeof key.id !== 'string') {
    throw new MemoryError(
      'bad-key',
      `The key is ${describeValue(key, 80)}; it must be text such as acme:+15551234567.`,
      {
        param: 'key',
      },
    )
  }
  checkPart('scope', key.scope, key.scope)
  if (key.id !== '') checkPart('session', key.id, key.id)
  return key
}

const makeKey = (scope: string, id: string): Key => ({ scope, id }) as Key

function checkPart(part: 'scope' | 'session', value: string, input: string): string {
  const problem = findProblem(part, value)
  if (problem === undefined) return value
  throw new MemoryError(
    'bad-key',
    `The ${part} of key ${JSON.stringify(shorten(input))} ${problem}. Write scope or scope:session, for example acme:+15551234567.`,
    { param: 'key' },
  )
}

function findProblem(part: 'scope' | 'session', value: string): string | undefined {
  if (value === '') return 'is empty'
  if (value.length > maxCharacters[part]) return `is longer than ${maxCharacters[part]} characters`
  if (!allowedCharacters.test(value)) return 'may hold only the letters A-Z and a-z, digits and _ + - . @'
  if (reservedNames.includes(value)) return `is the reserved word ${value}`
  return undefined
}

const shorten = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text)
