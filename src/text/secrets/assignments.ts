import { isPlaceholder, type SecretMatch } from './match.ts'

const passwordName = String.raw`pass(?:word|wd|wort|phrase|code)|(?<![^\W_])pass|pwd|contraseña|mot de passe|senha|пароль|密码|パスワード|identified by`
const keyName =
  'secret|(?<!page[_-]?)token|(?:api|access|secret|private|auth|account|encryption|signing|master)[_ -]?key|authorization|bearer|basic'
const nameSuffix = String.raw`(?:[_-]?(?:\d{1,3}|prod|live|test|dev|value))?`
// `": `, ` = `, `: str = `; a list entry such as `DB_PASSWORD", "value": `; `("`; `>`
const assignment = String.raw`\\{0,3}["'\`]?\]?[ \t]{0,4}(?::[ \t]?[\w.<>|[\]]{1,30}[ \t]{1,2}=|:=|=>|={1,3}|[:：]|\|\||\?\?)[ \t]{0,8}|["']?,?(?:\s|\\n){1,20}["']?value["']?:[ \t]{0,4}|\((?=["'\`])|>(?=[^<\s]{1,100}<)`
const statement = String.raw`(?: (?:for|to|of|on|at|in) [^\n.?!:;=⟨]{1,60}?)? (?:is|was|ist|es|est|é)(?: now| still)?:?[ \t]{1,3}| ?[是为は] ?`
const namedValue = new RegExp(
  `(--[a-z-]{0,20})?(?:(${passwordName})|${keyName})${nameSuffix}(?:(${assignment})|(${statement})|[ \\t]{1,3}(?:to |[-–—] )?)`,
  'gi',
)

/** Relation of a value to its name: a flag or environment variable, an assignment in code, a sentence, or just adjacent. */
type Relation = 'set' | 'assigned' | 'stated' | 'adjacent'

const nameHint =
  /pass|pwd|contraseña|mot de passe|senha|пароль|密码|パスワード|identified by|secret|token|key|authorization|bearer|basic/i

/** Cheap prefilter: if false, the text contains no named secret. */
export const mayContainNamedSecrets = (text: string): boolean => nameHint.test(text)

/** Finds values with a name: `DB_PASSWORD=…`, `"api_key": "…"`, "the password for the wifi is …". */
export function findNamedSecrets(text: string): SecretMatch[] {
  const found: SecretMatch[] = []
  let reached = 0
  for (const { 0: name, 1: flag, 2: password, 3: assigned, 4: stated, index } of text.matchAll(namedValue)) {
    if (index < reached) continue
    const span = readValue(text, index + name.length)
    const { start, end, isQuoted } = span
    const value = text.slice(start, end)
    const isSet = flag || (assigned === '=' && !/[a-z]/.test(name))
    const relation = isSet ? 'set' : assigned ? 'assigned' : stated ? 'stated' : 'adjacent'
    if (
      isPlaceholder(value) ||
      isExpression.test(value) ||
      (/\s/.test(value) && !(isQuoted && (isSet || /phrase/i.test(name))))
    )
      continue
    const isSecret = password
      ? isPassword(value, relation, isQuoted, /^(?:[.!,;)]|\s*$|\s*\n)/.test(text.slice(end, end + 3)))
      : isKey(value, relation, isQuoted)
    if (!isSecret) continue
    reached = findValueEnd(text, span)
    found.push({ kind: password ? 'password' : /key|secret/i.test(name) ? 'key' : 'token', start, end: reached })
  }
  return found
}

/** Recognises code in the position of a value: a call, a member access, a path or a URL. */
const isExpression =
  /[\w$\])](?:\(|\[|\?\.|->|::)|^[+.,)(]|^[a-z_$][\w$]*(?:\.[a-z_$][\w$]*)+$|^[.~]{0,2}\/[a-z._/-]+$|^\w+:\/\//i

const isMixed = (value: string): boolean => /\d/.test(value) && /[a-z]/i.test(value)

function isKey(value: string, relation: Relation, isQuoted: boolean): boolean {
  if (relation === 'set') return value.length > 7
  if (isQuoted && relation === 'assigned') return value.length > 7 && isMixed(value)
  // Requires digits among letters: a word with a number ends with it. Contract addresses (0x + 40 digits) are public.
  return (
    value.length > 15 &&
    /[a-z]\d+[a-z]|\d[a-z]+\d/i.test(value) &&
    /[a-z\d]{8}/i.test(value) &&
    !/^0x.{40}$/.test(value)
  )
}

/** Words that describe a password, and code names that stand for one. */
const descriptiveWord =
  /^(?:0x|(?:base|sha|md|utf|oauth|aes)-?\d|\d+[-–+]\d*$|\d{1,3}$|(?:[a-z]{1,5}|strong|correct|undefined|string|number|boolean|unknown|buffer|plaintext|secure|unique|random|default|visible|current|bearer|private|[a-z]+(?:ed|ing|[ai]ble|ful|less|ory|ive|ous|ly|id|al|ent))$)/i

function isPassword(value: string, relation: Relation, isQuoted: boolean, endsClause: boolean): boolean {
  if (value.length < 4 || /^\/|^[A-Z]:\\/.test(value)) return false
  if (relation === 'set') return true
  if (descriptiveWord.test(value)) return false
  if (relation === 'adjacent') return value.length > 5 && isMixed(value) && !/[/.:]/.test(value)
  // A plain word counts in quotes, or at the end of a sentence.
  return isQuoted || /\d|[^\w.'’/-]/.test(value) || (relation === 'stated' && endsClause && !/\W|_/.test(value))
}

/** Position of a value after its name. */
type ValueSpan = { readonly start: number; readonly end: number; readonly isQuoted: boolean }

/** Longer values are judged by this many characters. */
const maxValueCharacters = 500
const valueRest = /[^\s"'`⟨]*/y
// In nested strings quotes are escaped: the string ends at a quote with as many backslashes as its opening quote.
const quotedValue = /(\\{0,7})(["'`])(?:(?!(?<!\\)\1\2)[^\n]){0,500}/y
/** A comma, bracket or quote belongs to a bare value if neither a space nor another name follows: `Password=a;b;Port=1`. */
const bareValue =
  /^[“‘«„]?(?:[^\s"'`<,;&)}\]\\“”’»⟨]+|["'`<,;&)}\]](?![\s"'`<>,;&)}\]\\/]|$|[\w. -]{1,30}[=:])|\\(?![nrt"'\\]))+/
const openingQuote = /^[“‘«„]/
const trailingPunctuation = /[.,:;?)\]}。，；？]+$/

/** Reads the value at an index: the inside of a string, or everything up to the next space. */
function readValue(text: string, at: number): ValueSpan {
  quotedValue.lastIndex = at
  const string = quotedValue.exec(text)
  if (string !== null)
    return { start: at + `${string[1]}${string[2]}`.length, end: quotedValue.lastIndex, isQuoted: true }
  const word = (bareValue.exec(text.slice(at, at + maxValueCharacters))?.[0] ?? '').replace(trailingPunctuation, '')
  const isQuoted = openingQuote.test(word)
  return { start: at + Number(isQuoted), end: at + word.length, isQuoted }
}

/** Returns the end of a value, which may be longer than the part that was judged. */
function findValueEnd(text: string, { start, end }: ValueSpan): number {
  valueRest.lastIndex = end
  return end - start > maxValueCharacters - 10 && valueRest.test(text) ? valueRest.lastIndex : end
}
