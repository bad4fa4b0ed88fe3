import { isPassword } from './namedValues.ts'
import { createRule, noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isPlaceholder } from './values.ts'

/** Private members of a JSON Web Key; `k` is one in symmetric keys only. */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi']
export const minMemberCharacters = 8

/** Returns the names of the members of a JSON Web Key that are secrets; none for a public key. */
export const privateMembersOf = (keyType: unknown): readonly string[] =>
  keyType === 'oct' ? ['k'] : keyType === 'RSA' || keyType === 'EC' || keyType === 'OKP' ? privateMembers : []

/** An object with a key of 16,384 bits has about 14,000 characters. */
const maxObjectCharacters = 16_000
const keyType = /kty\\{0,3}["']?\s{0,8}:\s{0,8}\\{0,3}["'](oct|RSA|EC|OKP)(?!\w)/iy
const member = /(?<![\w$])(\w{1,2})\\{0,3}["'`]?\s{0,8}:\s{0,8}\\{0,3}["'`]([\w+/=-]{8,6000})/g

/** Finds the private members of the object around a `kty`. */
function findKeyMembers(text: string, at: number): readonly SecretMatch[] | number {
  keyType.lastIndex = at
  const match = keyType.exec(text)
  if (match === null) return noMatches
  const names = privateMembersOf(match[1])
  const before = text.slice(Math.max(0, at - maxObjectCharacters), at)
  const from = at - before.length + Math.max(before.lastIndexOf('{'), before.lastIndexOf('}')) + 1
  const after = text.slice(at, at + maxObjectCharacters)
  const length = after.search(/[{}]/)
  const end = at + (length < 0 ? after.length : length)
  const found = [...text.slice(from, end).matchAll(member)].flatMap(
    ({ 0: whole, 1: name = '', 2: value = '', index }): readonly SecretMatch[] => {
      const start = from + index + whole.length - value.length
      return names.includes(name) && value.length >= minMemberCharacters && !isPlaceholder(value)
        ? [{ kind: 'key', start, end: start + value.length }]
        : []
    },
  )
  return found.length > 0 ? found : end
}

/** Line of a `.pgpass` file: host, port, database, user and password. Colons in them are escaped. */
const field = String.raw`(?:[^\s:\\"'⟨]|\\.){1,64}`
const host = String.raw`(?:\\:|[\w.*/[\]-]){1,80}`
const password = String.raw`((?:[^\s:\\⟨"'\`]|\\(?![nr])[^\n]|["'](?![\s"'\`]|$)){4,200})(?=["'\`]?(?:\s|\\[nr]|$))`
const pgpassLine = new RegExp(
  String.raw`(?:\s|\\[nrt]|["'\`:$>#]|(?:cat|#[^\n]{0,80}|pgpass) ?){0,8}?${host}:(?:\d{1,5}|\*):${field}:${field}:${password}`,
  'y',
)
const maxLines = 100

/** Finds the passwords of the lines after the name of the file. */
function findPgpassLines(text: string, at: number): readonly SecretMatch[] {
  const found: SecretMatch[] = []
  pgpassLine.lastIndex = at
  for (let count = 0; count < maxLines; count++) {
    const value = pgpassLine.exec(text)?.[1]
    if (value === undefined) break
    const end = pgpassLine.lastIndex
    if (!isPlaceholder(value)) found.push({ kind: 'password', start: end - value.length, end })
  }
  return found
}

export const fileRules: readonly SecretRule[] = [
  { name: 'JSON Web Key', triggers: ['kty'], find: findKeyMembers },
  createRule(
    'pgpass',
    'password',
    [':5432:', ':5433:', ':6432:', ':*:'],
    new RegExp(String.raw`(?<=(?:^|[\s"'\`]|\\n)${host}):(?:\d{4}|\*):${field}:${field}:${password}`),
    // A plain word may be the text of a message: `file:5432:5:error:message`.
    (value) => isPassword(value, 'assigned', false, false) && !isPlaceholder(value),
  ),
  { name: 'pgpass file', triggers: ['pgpass'], find: findPgpassLines },
  createRule(
    'WiFi code',
    'password',
    ['wifi:'],
    /(?<!\w)WIFI:(?:[A-OQ-Z]\w{0,3}:(?:[^;\\\n]|\\+[^\n]){0,100};){0,6}P:((?:[^;\\\n⟨]|\\+[^\n]){1,100})(?=;|$)/,
    (value) => !/^(?:[<⟨]|[{$]\{|(?:\*+|\.+|x+|password)$)|your|…/i.test(value),
  ),
]
