import { isPassword } from './namedValues.ts'
import { createRule, noMatches, type RangeMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isGenerated, isPlaceholder } from './values.ts'

/** Private members of a JSON Web Key; `k` is one in symmetric keys only. */
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi']
export const minMemberCharacters = 8

/** Returns the names of the members of a JSON Web Key that are secrets; none for a public key. */
export const privateMembersOf = (keyType: unknown): readonly string[] =>
  keyType === 'oct' ? ['k'] : keyType === 'RSA' || keyType === 'EC' || keyType === 'OKP' ? privateMembers : []
/** Secrets of keys of all types: a text may have several without braces between them. */
const secretMembers = ['k', ...privateMembers]

/** An object with a key of 16,384 bits has about 14,000 characters. */
const maxObjectCharacters = 16_000
const keyType = /kty\\{0,3}["']?\s{0,8}:\s{0,8}\\{0,3}["'](oct|RSA|EC|OKP)(?!\w)/iy
const member = /(?<![\w$])(\w{1,2})\\{0,3}["'`]?\s{0,8}:\s{0,8}\\{0,3}["'`]([\w+/=-]{8,6000})/g

/** Finds the private members of the object around a `kty`, or in the text around it if the object is longer. */
function findKeyMembers(text: string, at: number): readonly SecretMatch[] | RangeMatches {
  keyType.lastIndex = at
  if (!keyType.test(text)) return noMatches
  const before = text.slice(Math.max(0, at - maxObjectCharacters), at)
  const from = at - before.length + Math.max(before.lastIndexOf('{'), before.lastIndexOf('}')) + 1
  const after = text.slice(at, at + maxObjectCharacters)
  const length = after.search(/[{}]/)
  const end = at + (length < 0 ? after.length : length)
  const matches = [...text.slice(from, end).matchAll(member)].flatMap(
    ({ 0: whole, 1: name = '', 2: value = '', index }): readonly SecretMatch[] => {
      const start = from + index + whole.length - value.length
      return secretMembers.includes(name) && value.length >= minMemberCharacters && !isPlaceholder(value)
        ? [{ kind: 'key', start, end: start + value.length }]
        : []
    },
  )
  return { matches, reached: length < 0 ? at + after.length / 2 : end }
}

/** Line of a `.pgpass` file: host, port, database, user and password. Colons in them are escaped. */
const field = String.raw`(?:[^\s:\\"'⟨]|\\.){1,64}`
const host = String.raw`(?:\\:|[\w.*/[\]-]){1,80}`
/** Sign after the quotation mark around a line in code, JSON or a table. */
const afterQuote = String.raw`(?:[\s"'\`,;}\])]|\\[nr]|$)`
const password = String.raw`((?:[^\s:\\⟨"'\`]|\\(?![nr])[^\n]|["'](?!${afterQuote})){4,200})(?=["'\`]${afterQuote}|\s|\\[nr]|$)`
/** Comment up to the end of its line. An end within the line would be tried at each sign: exponential time. */
const comment = String.raw`#(?:[^\n\\]|\\(?![nr])){0,80}(?=\n|\\[nr]|$)`
const beforeLine = String.raw`(?:\s|\\[nrt]|["'\`:$>#]|${comment}|(?:cat|pgpass)(?: |(?! ))){0,8}?`
const pgpassLine = new RegExp(String.raw`${beforeLine}${host}:(?:\d{1,5}|\*):${field}:${field}:${password}`, 'y')
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

const secretKind = /kind:[ \t]{1,4}["']?Secret["']?[ \t]*(?:\r?\n|$)/y
const dataBlock = /^([ \t]*)(?:stringData|data):[ \t]*\r?\n((?:\1[ \t][^\n]*(?:\n|$))+)/gm
const dataField = /^[ \t]+["']?[\w.-]{1,100}["']?:[ \t]+["']?([^\s"'|>⟨][^\s"'⟨]{3,})/gm
const maxManifestCharacters = 8_000

/** Finds the data of a Kubernetes manifest of the kind `Secret`. */
function findManifestData(text: string, at: number): readonly SecretMatch[] | RangeMatches {
  secretKind.lastIndex = at
  if (!secretKind.test(text)) return noMatches
  const before = text.slice(Math.max(0, at - maxManifestCharacters), at)
  const from = at - before.length + before.lastIndexOf('\n---') + 1
  const after = text.slice(at, at + maxManifestCharacters)
  const length = after.indexOf('\n---')
  const end = length < 0 ? at + after.length : at + length
  const matches = [...text.slice(from, end).matchAll(dataBlock)].flatMap(({ 0: block, 2: fields = '', index }) =>
    [...fields.matchAll(dataField)].flatMap((field): readonly SecretMatch[] => {
      const { 0: line, 1: value = '' } = field
      const start = from + index + block.length - fields.length + field.index + line.length - value.length
      return isPlaceholder(value) ? [] : [{ kind: 'key', start, end: start + value.length }]
    }),
  )
  // A block at the end may be cut off, so that one of the next triggers reads it again.
  return { matches, reached: length < 0 ? at + after.length / 2 : end }
}

/** Hashes of passwords in the form of `crypt`, as in `/etc/shadow` and `.htpasswd`. */
const hashSchemes = ['$1$', '$2a$', '$2b$', '$2y$', '$5$', '$6$', '$y$', '$apr1$', '$argon2', '$scrypt$', '$pbkdf2']

export const fileRules: readonly SecretRule[] = [
  { name: 'Kubernetes Secret', triggers: ['kind: secret', 'kind: "secret'], find: findManifestData },
  createRule(
    'password hash',
    'password',
    hashSchemes,
    /\$(?:[12567y]|2[aby]|apr1|argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,12})\$[\w./$=,+-]{20,300}/,
  ),
  createRule('SAML response', 'token', ['samlresponse'], /samlresponse(?:=|["'] value=["'])([\w+/%=-]{40,20000})/i),
  createRule(
    'otpauth export',
    'key',
    ['otpauth-migration:'],
    /otpauth-migration:\/\/offline\?data=([\w+/%=-]{20,4000})/,
  ),
  createRule(
    'registry login',
    'password',
    ['auth'],
    /(?<=[_"'])auth\\{0,3}["']?[ \t]{0,2}[=:][ \t]{0,2}\\{0,3}["']?([A-Za-z0-9+/]{16,400}={0,2})(?![\w+/=-])/,
    isGenerated,
  ),
  createRule(
    'Terraform variable',
    'password',
    ['variable "', 'variable \\"'],
    /variable \\{0,3}"\w{0,60}(?:passw|secret|token|_key)\w{0,20}\\{0,3}" ?\{[^{}]{0,400}?default[ \t]{0,12}= ?\\{0,3}"([^"\n\\⟨]{4,200})/,
    (value) => !isPlaceholder(value),
  ),
  { name: 'JSON Web Key', triggers: ['kty'], find: findKeyMembers },
  createRule(
    'pgpass',
    'password',
    [':5432:', ':5433:', ':6432:', ':*:'],
    new RegExp(String.raw`(?<=(?:^|[\s"'\`,;|]|\\n)${host}):(?:\d{4}|\*):${field}:${field}:${password}`),
    // A plain word may be the text of a message: `file:5432:5:error:message`.
    (value) => isPassword(value, 'assigned', false, false) && !isPlaceholder(value),
  ),
  { name: 'pgpass file', triggers: ['pgpass'], find: findPgpassLines },
  createRule(
    'WiFi code',
    'password',
    ['wifi:'],
    /(?<!\w)WIFI:(?:[A-OQ-Z]\w{0,3}:(?:[^;\\\n]|\\+[^\\\n]){0,100};){0,6}P:((?:[^;\\\n⟨]|\\+[^\\\n]){1,100})(?=;|$)/,
    (value) => !/^(?:[<⟨]|[{$]\{|(?:\*+|\.+|x+|password)$)|your|…/i.test(value),
  ),
]
