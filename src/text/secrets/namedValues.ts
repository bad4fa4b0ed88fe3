import { findMemberValues } from './memberValues.ts'
import { noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isGenerated, isMixed, isPlaceholder, isRandomName } from './values.ts'

/** Names that a short name follows without a joiner: `dbPass`, `rootpw`. Others, as in `bypass`, begin other words. */
const joinedOwner =
  'db|sql|redis|mongo|postgres|cache|kafka|rabbit|amqp|smtp|e?mail|imap|ftp|ldap|vpn|wi-?fi|proxy|http|auth|login|user|admin|root|sudo|my|cert|ssl|key|store'
export const passwordName = String.raw`pass(?:word|wd|wort|phrase|code)|(?<![^\W_])(?:pass|p\/?w|psw|psk|mdp)|(?<=${joinedOwner})p(?:ass|s?w)(?=\W{0,5}[:=])|pwd|kennwort|wachtwoord|contrase[ñn]a|mot de passe|senha|hasło|parola|пароль|密[码碼]|パスワード|비밀번호|identified (?:with [^\s⟨]{1,40} )?by`
export const keyName =
  'secret|(?<!page[_-]?)token|(?<=(?:api|access|secret|private|auth|account|encryption|signing|master|service|admin|license|webhook|session|app|application|subscription|consumer|pre-?shared|fal)[_ -]?)key|authorization|bearer|basic'
// A plural is the name of a list or object: `"passwords": [`.
const nameSuffix = String.raw`(?:s(?=\\{0,3}["'\`]?[ \t]?[:=][ \t]?[[{])|[_-]?(?:\d{1,3}|prod|live|test|dev|value|key_base))?`
// `": `, ` = `, `: str = `; a list entry such as `DB_PASSWORD", "value": `; `("`; `>`
const assignment = String.raw`(?:\\{0,3}["'\`]|\\u002[27]|&(?:quot|apos|#3[49]);)?(?:\[?\])?[ \t]{0,12}(?::[ \t]?[\w.<>|[\]&]{1,30}[ \t]{1,2}=|:=|=>|={1,3}|[:：]|\|\|=?|\?\?=?)[ \t]{0,8}|(?:%2[27])?%3[ad](?:%2[027])?|(?:\\{0,3}["'],(?=\\{0,3}["'])|["']?,?(?:\s|\\n){1,20})\\{0,3}["']?value\\{0,3}["']?:[ \t]{0,4}|\((?=["'\`])|>(?=[^<\s]{1,100}<)`
const statement = String.raw`(?: (?:for|to|of|on|at|in|für|vom|pour|du|des?|para|del|da|do|della|bei|van|voor|от|для) [^\n.?!:;=⟨]{1,60}?)? (?:(?:is|was)(?! (?:set|changed|reset) to )|used to be|ist|lautet|es|est|c['’]est|é|è)(?: now| currently| still| previously| formerly| originally)?:?[ \t]{1,3}| ?(?:[是为為は]|[은는] (?:(?:예전에|이전에|원래) )?)[ ]?`
/** Verbs of sentences about an earlier or a new password. Plain words after them describe it. */
const pastVerb =
  '(?:(?:(?:is|was|has|has been|got) )?(?:set|changed|reset) to|(?:has|had)(?: always)? been|war|wurde auf|lautete|[ée]tait|era|fue|foi|jest|by[łl]o|brzmi(?:ało)?|был)(?: früher| vorher| bisher| mal| avant| antes| prima| wcześniej| раньше)?'
const ideographicVerb = '(?:以前|曾经|原来|之前|现在)是|(?:已经?)?[改换设變变設](?:成|为|為)了?|は以前|を|[를을]'
const namedValue = new RegExp(
  `(?:(${passwordName})|${keyName})${nameSuffix}(?:(${assignment})|(${statement})|(?:['’]s)?[ \\t]{1,3}(?:to |[-–—] |(?:->|→) |${pastVerb} )?|[ ]?(?:${ideographicVerb})[ ]?)`,
  'iy',
)
/** Prefix that makes the name an option: `--db-password`. */
const optionStart = /--[a-z-]{0,20}$/i
/** Prefix that makes the name a variable of a program: `export DB_PASSWORD=`, `docker run -e DB_PASSWORD=`. */
const variableStart = /(?<!\w)(?:export|ENV|ARG|-e|--env|--build-arg|setx?)[ =]["']?\w{0,30}$/
/** Line of a container file that sets a variable without a sign: `ENV DB_PASSWORD value`. */
const environmentLine = /(?:^|\n|\\n)[ \t]{0,8}ENV \w{0,40}$/
const lastOfLine = /^\w{1,40}[ \t]{1,8}(?:[^\s\\]|\\(?!n)){1,200}[ \t\r]{0,4}(?:\n|\\n|["'`]|$)/

/**
 * Relation of a value to its name: a flag or environment variable, an assignment in code, a sentence, or just adjacent.
 */
type Relation = 'set' | 'assigned' | 'stated' | 'adjacent'

/** Place of a name: an option of a command, a parameter of a URL, form or connection string, or other text. */
type Place = 'option' | 'parameter' | 'text'
/** The beginning of a name is searched in this many characters. */
const maxNameCharacters = 42
const maxEnvironmentCharacters = 260

/** Finds values with a name: `DB_PASSWORD=…`, `"api_key": "…"`, "the password for the wifi is …". */
function findNamedValue(text: string, at: number): readonly SecretMatch[] {
  namedValue.lastIndex = at
  const match = namedValue.exec(text)
  if (match === null) return noMatches
  const { 0: name, 1: password, 2: assigned, 3: stated } = match
  const place = findPlace(text, at, assigned)
  const members = assigned && place === 'text' ? findMemberValues(text, at + name.length) : undefined
  const kind = password ? 'password' : /key|secret/i.test(name) ? 'key' : 'token'
  if (members !== undefined)
    return members
      .filter(({ start, end }) => isSecretMember(text.slice(start, end), password !== undefined, name))
      .map((member) => ({ kind, ...member }))
  const span = readValue(text, at + name.length, place, assigned)
  const { start, end, isQuoted } = span
  const value = text.slice(start, end)
  const isSet = place === 'option' || (assigned === '=' && (!/[a-z]/.test(name) || isParameterValue(value, place)))
  const relation = isSet ? 'set' : assigned || isSqlName.test(name) ? 'assigned' : stated ? 'stated' : 'adjacent'
  const isPasswordValue = password !== undefined || (isQuoted && isShortSecret(value, name))
  if (value.length < minCharactersOf(relation, isQuoted, isPasswordValue)) return noMatches
  const isSecret = isPasswordValue
    ? isPassword(
        value,
        isVariable(text, at, name) ? 'stated' : relation,
        isQuoted,
        /^(?:[.!,;)]|\s*$|\s*\n)/.test(text.slice(end, end + 3)),
      )
    : isKey(value, relation, isQuoted)
  if (!isSecret || isPlaceholder(value)) return noMatches
  if (!isQuoted && isVariableName(value) && isComparison(text, at, assigned)) return noMatches
  const isRandomKey = password === undefined && isGenerated(value) && !/\s/.test(value)
  const isLiteral = isRandomKey || isQuoted || place !== 'text' || relation === 'stated'
  if (!isLiteral && isExpression(value)) return noMatches
  if (place === 'option' && !isRandomKey && pathOrCommand.test(value)) return noMatches
  if (!isRandomKey && /\s/.test(value) && !(isQuoted && (isSet || /phrase/i.test(name)))) return noMatches
  return [{ kind, start, end: findValueEnd(text, span) }]
}

/** Tells a variable of a program, `MINIO_ROOT_PASSWORD: `, whose value may be a plain word. */
const isVariable = (text: string, at: number, name: string): boolean =>
  text.charAt(at - 1) === '_' && /^[A-Z_]+\d*: /.test(name)

const isoDate = /^\d{4}-\d\d-\d\d/

/** Judges a string of the object or list that a name has: besides the secret, it may have a type, a hint or a date. */
function isSecretMember(value: string, isPasswordName: boolean, name: string): boolean {
  const isPasswordValue = isPasswordName || isShortSecret(value, name)
  if (value.length < minCharactersOf('assigned', true, isPasswordValue)) return false
  if (!isMixed(value) || /\s/.test(value) || isoDate.test(value) || isPlaceholder(value)) return false
  return isPasswordValue ? isPassword(value, 'assigned', true, false) : isKey(value, 'assigned', true)
}

/** A "secret" that is too short for a key is one if it looks like a password: `"secret": "wm7Fq2!"`. */
const isShortSecret = (value: string, name: string): boolean =>
  /secret/i.test(name) && /^\S{6,7}$/.test(value) && isMixed(value) && /[!@#$%^&*?~+=]/.test(value)

function findPlace(text: string, at: number, assigned: string | undefined): Place {
  const isAfterSpace = assigned === undefined ? text.startsWith('ENV ', at - 4) : assigned === '='
  if (!isAfterSpace && !/[\w?&;.-]/.test(text.charAt(at - 1))) return 'text'
  const before = text.slice(Math.max(0, at - maxNameCharacters), at)
  if (optionStart.test(before)) return 'option'
  if (assigned === undefined) return isEnvironmentLine(text, at, before) ? 'option' : 'text'
  if (assigned !== '=') return 'text'
  return variableStart.test(before) ? 'option' : parameterStart.test(before) ? 'parameter' : 'text'
}

const isEnvironmentLine = (text: string, at: number, before: string): boolean =>
  environmentLine.test(before) && lastOfLine.test(text.slice(at, at + maxEnvironmentCharacters))

const isSqlName = /^identified /i
const isParameterValue = (value: string, place: Place): boolean => place === 'parameter' && /[^a-z]/.test(value)

/** Shorter values are words, or no secrets. */
function minCharactersOf(relation: Relation, isQuoted: boolean, isPasswordName: boolean): number {
  if (isPasswordName) return relation === 'adjacent' ? 6 : 4
  return relation === 'set' || (relation === 'assigned' && isQuoted) ? 8 : 16
}

const expression =
  /^[\w$.\])]*[A-Za-z_$\])](?:\(|\[|\?\.|->|::)|^[.,)(]|^\+ ?["'\w]{0,20}$|^[.~]{0,2}\/[a-z._/-]+$|^\w+:\/\//i
/** Path or output of a command in the place of an argument. */
const pathOrCommand = /^(?:[.~]{0,2}\/[\w./-]+|\$[({].*)$/
const memberAccess = /^[a-z_$][\w$]*(?:\.[a-z_$][\w$]*)+$/i

/** Recognises code in the position of a value: a call, a member access, a path or a URL. */
export const isExpression = (value: string): boolean =>
  expression.test(value) || (memberAccess.test(value) && !value.split('.').some(isRandomName))

/** Contract addresses are public. */
const contractAddress = /^0x[0-9a-f]{40}$/i

function isKey(value: string, relation: Relation, isQuoted: boolean): boolean {
  if (relation === 'set' || (isQuoted && relation === 'assigned' && isMixed(value))) return true
  return isGenerated(value) && !contractAddress.test(value)
}

/** Words that describe a password, and code names that stand for one. */
const descriptiveWord =
  /^(?:0x[0-9a-f]+$|(?:base64|sha-?(?:1|256|384|512)|md5(?:hash)?|utf-?8|oauth2?|aes-?\d{3})(?![A-Z\d])|\d+[-–+]\d*$|\d{1,3}$|\d{1,3}(?:,\d{3})+|(?:[a-z]{1,5}|strong|correct|undefined|string|number|boolean|unknown|buffer|plaintext|secure|unique|random|default|visible|current|bearer|private|[a-z]+(?:ed|ing|[ai]ble|ful|less|ory|ive|ous|ly|id|al|ent)|(?:ge|ver|ab|er|un)[a-zäöü]+(?:t|en)|[a-z]+(?:ad[oa]|id[oa]|ct[oa]|bar|lich))$)/i

export function isPassword(value: string, relation: Relation, isQuoted: boolean, endsClause: boolean): boolean {
  if (relation === 'adjacent' && !isMixed(value)) return false
  if (/^\/|^[A-Z]:\\/.test(value)) return false
  if (relation === 'set') return true
  if (descriptiveWord.test(value)) return false
  if (relation === 'adjacent') return !(isQuoted ? /^\w+:\/\//.test(value) : /[/.:]/.test(value))
  // A plain word counts in quotes, or at the end of a sentence.
  return (
    isQuoted || /\d|[^\p{L}\p{M}\w.'’/-]/u.test(value) || (relation === 'stated' && endsClause && !/\W|_/.test(value))
  )
}

const isVariableName = (value: string): boolean =>
  /^[A-Za-z_]\w*$/.test(value) && !isRandomName(value) && !isGenerated(value)

/** Recognises `password == expected1`. In a shell, `$PASSWORD == hunter22`, the other side is a plain value. */
const isComparison = (text: string, at: number, assigned: string | undefined): boolean =>
  /^[ \t]*===?[ \t]*$/.test(assigned ?? '') && !/\$\w*$/.test(text.slice(Math.max(0, at - maxNameCharacters), at))

/** Position of a value after its name. */
type ValueSpan = { readonly start: number; readonly end: number; readonly isQuoted: boolean }

/** Longer values are judged by this many characters. */
const maxQuotedCharacters = 500
const maxBareCharacters = 140
const quotedRest = /[^\s"'`⟨]*/y
const bareRest = /[^\s"'`<,;&)}\]\\⟨]*/y
// In nested strings quotes are escaped: the string ends at a quote with as many backslashes as its opening quote.
const quotedValue = /(\\{0,7})(["'`])(?:(?!(?<!\\)\1\2)[^\n]){0,500}/y
/**
 * A comma, bracket or quote belongs to a bare value if neither a space nor another name follows: `Password=a;b;Port=1`.
 */
const bareValue =
  /[“‘«„「]?(?:[^\s"'`<,;&)}\]\\“”’»」⟨，。；！？、）]+|&(?![\s"'`<>,;)}\]\\/]|$)|["'`<,;)}\]](?![\s"'`<>,;&)}\]\\/]|$|[\w. -]{1,30}[=:])|\\(?![nrt"'\\]))+/y
/** Name of a parameter of a URL or form, and the parameter after it. */
const parameterStart = /[?&;][\w.-]{0,40}$/
const nextParameter = /[&;][\w.-]{1,30}=.*/s
/** Next field of a form whose first field is the value: `password=a&user=b`. */
const nextField = /&[a-z_]{4,20}=.*/s
const noField = /(?!)/
const argumentValue = /(?:[^\s"'`|⟨\\]|\\(?![nrt"']))+/y
const openingQuote = /^[“‘«„「]/
const trailingPunctuation = /(?<![.,:;?)\]}。，；？])[.,:;?)\]}。，；？]+$/

/** Reads the value at an index: the inside of a string, or everything up to the next space. */
function readValue(text: string, at: number, place: Place, assigned: string | undefined): ValueSpan {
  quotedValue.lastIndex = at
  const string = /["'`\\]/.test(text.charAt(at)) ? quotedValue.exec(text) : null
  if (string !== null)
    return { start: at + `${string[1]}${string[2]}`.length, end: quotedValue.lastIndex, isQuoted: true }
  const pattern = place === 'option' ? argumentValue : bareValue
  pattern.lastIndex = 0
  const run = pattern.exec(text.slice(at, at + maxBareCharacters))?.[0] ?? ''
  const next = place === 'parameter' ? nextParameter : assigned === '=' ? nextField : noField
  const word = run.replace(next, '').replace(trailingPunctuation, '')
  const isQuoted = openingQuote.test(word)
  return { start: at + Number(isQuoted), end: at + word.length, isQuoted }
}

/** Returns the end of a value, which may be longer than the part that was judged. */
function findValueEnd(text: string, { start, end, isQuoted }: ValueSpan): number {
  const rest = isQuoted ? quotedRest : bareRest
  rest.lastIndex = end
  const isWhole = end - start < (isQuoted ? maxQuotedCharacters : maxBareCharacters) - 10
  return !isWhole && rest.test(text) ? rest.lastIndex : end
}

/** Beginnings of the names of passwords, apart from short ones. */
export const passwordTriggers = [
  'pass',
  'pwd',
  'kennwort',
  'wachtwoord',
  'contrase',
  'mot de passe',
  'senha',
  'hasło',
  'пароль',
  '密码',
  '密碼',
  'パスワード',
  '비밀번호',
]

export const namedRules: readonly SecretRule[] = [
  {
    name: 'named value',
    triggers: [
      ...passwordTriggers,
      'pw:',
      'p/w',
      'pw ',
      'pw=',
      'pw"',
      "pw'",
      'psw',
      'psk',
      'mdp',
      'parola',
      'identified ',
      'secret',
      'token',
      'key',
      'authorization',
      'bearer',
      'basic',
    ],
    find: findNamedValue,
  },
]
