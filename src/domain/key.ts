import { MemoryError } from './error.ts'

declare const parsed: unique symbol

/** `example.com:42`, `acme:+15551234567`; an empty `id` names the scope's own memory. Only `parseKey` makes one. */
export type Key = { readonly scope: Scope; readonly id: string; readonly [parsed]: true }
/** A tenant, a domain or a workspace. */
export type Scope = string

const letters = /^[A-Za-z0-9_+\-.@]+$/
const reserved = ['.', '..', '__proto__', 'constructor', 'prototype']
const longest = { scope: 64, session: 128 }

/**
 * Reads `scope` or `scope:session`, split at the first colon. Nothing is normalised, so that no two texts give one key.
 *
 * @example
 * parseKey('acme:+15551234567') // { scope: 'acme', id: '+15551234567' }
 */
export function parseKey(text: string | Key): Key {
  if (typeof text !== 'string') return parsedBefore(text)
  const colon = text.indexOf(':')
  const scope = colon < 0 ? text : text.slice(0, colon)
  check('scope', scope, text)
  if (colon < 0) return makeKey(scope, '')
  const id = text.slice(colon + 1)
  check('session', id, text)
  return makeKey(scope, id)
}

/** The key that was last written as text: whoever does something for a session looks up one thing after the other by it. */
let last = { scope: '', id: '', text: '' }

/** The text a key was parsed from. */
export function formatKey({ scope, id }: Pick<Key, 'scope' | 'id'>): string {
  if (id !== last.id || scope !== last.scope) last = { scope, id, text: id === '' ? scope : `${scope}:${id}` }
  return last.text
}

/** The key of the scope's own memory. */
export const scopeKey = (key: Key): Key => makeKey(key.scope, '')

/**
 * What the engine keeps for itself beside the sessions of a scope: its files, the branches and receipts of a session, what
 * is to be delivered. A colon in the session half is refused from outside, so nobody can name one of these.
 */
export const filesKey = (scope: Scope): Key => makeKey(scope, ':files')
export const outboxKey = (scope: Scope): Key => makeKey(scope, ':outbox')
export const personKey = (scope: Scope, person: string): Key =>
  makeKey(scope, `:person:${check('session', person, person)}`)
export const receiptsKey = (key: Key): Key => makeKey(key.scope, `${key.id}:receipts`)
export const branchKey = (key: Key, number: number): Key => makeKey(key.scope, `${key.id}:${number}`)

/** Whether a key names something of the engine's own. */
export const isInner = (key: Pick<Key, 'id'>): boolean => key.id.includes(':')

/** Reads a key as `formatKey` writes it, also of what the engine keeps for itself: for stores and bundles, never for what a client sends. */
export function parseStoredKey(text: string): Key {
  const [, scope = '', id = ''] = inner.exec(text) ?? []
  return scope === '' ? parseKey(text) : makeKey(scope, id)
}

const inner = /^([\w+\-.@]{1,64}):((?:[\w+\-.@]{0,128}:){1,2}[\w+\-.@]{1,128})$/

/** A key that came through JSON, or from a caller without types, is checked again. */
function parsedBefore(key: Key): Key {
  if (typeof key?.scope !== 'string' || typeof key.id !== 'string') {
    throw new MemoryError('bad-key', `The key is ${JSON.stringify(key)}; it must be text such as acme:+15551234567.`, {
      param: 'key',
    })
  }
  check('scope', key.scope, key.scope)
  if (key.id !== '') check('session', key.id, key.id)
  return key
}

const makeKey = (scope: string, id: string): Key => ({ scope, id }) as Key

function check(half: 'scope' | 'session', value: string, whole: string): string {
  const fault = faultOf(half, value)
  if (fault === undefined) return value
  throw new MemoryError(
    'bad-key',
    `The ${half} of key ${JSON.stringify(shown(whole))} ${fault}. Write scope or scope:session, for example acme:+15551234567.`,
    { param: 'key' },
  )
}

function faultOf(half: 'scope' | 'session', value: string): string | undefined {
  if (value === '') return 'is empty'
  if (value.length > longest[half]) return `is longer than ${longest[half]} characters`
  if (!letters.test(value)) return 'may hold only the letters A-Z and a-z, digits and _ + - . @'
  if (reserved.includes(value)) return `is the reserved word ${value}`
  return undefined
}

const shown = (text: string): string => (text.length > 80 ? `${text.slice(0, 80)}…` : text)
