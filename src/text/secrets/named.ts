import type { FoundSecret } from './found.ts'
import { isPlaceholder } from './placeholder.ts'
import { endOfWhole, valueAt } from './value.ts'

const password = String.raw`pass(?:word|wd|wort|phrase|code)|(?<![^\W_])pass|pwd|contraseña|mot de passe|senha|пароль|密码|パスワード|identified by`
const key =
  'secret|(?<!page[_-]?)token|(?:api|access|secret|private|auth|account|encryption|signing|master)[_ -]?key|authorization|bearer|basic'
const suffix = String.raw`(?:[_-]?(?:\d{1,3}|prod|live|test|dev|value))?`
// `": `, ` = `, `: str = `; an entry of a list, `DB_PASSWORD", "value": `; `("`; `>`
const assigns = String.raw`\\{0,3}["'\`]?\]?[ \t]{0,4}(?::[ \t]?[\w.<>|[\]]{1,30}[ \t]{1,2}=|:=|=>|={1,3}|[:：]|\|\||\?\?)[ \t]{0,8}|["']?,?(?:\s|\\n){1,20}["']?value["']?:[ \t]{0,4}|\((?=["'\`])|>(?=[^<\s]{1,100}<)`
const tells = String.raw`(?: (?:for|to|of|on|at|in) [^\n.?!:;=⟨]{1,60}?)? (?:is|was|ist|es|est|é)(?: now| still)?:?[ \t]{1,3}| ?[是为は] ?`
const named = new RegExp(
  `(--[a-z-]{0,20})?(?:(${password})|${key})${suffix}(?:(${assigns})|(${tells})|[ \\t]{1,3}(?:to |[-–—] )?)`,
  'gi',
)

/** How a value follows its name: set where nothing but a value can stand, assigned as in a program, told in a sentence, or just near. */
type Way = 'set' | 'assigned' | 'told' | 'near'

const names =
  /pass|pwd|contraseña|mot de passe|senha|пароль|密码|パスワード|identified by|secret|token|key|authorization|bearer|basic/i

/** Whether there may be any: if not, there are none. */
export const mayHoldNamed = (text: string): boolean => names.test(text)

/** Values that are named: `DB_PASSWORD=…`, `"api_key": "…"`, "the password for the wifi is …". */
export function namedSecretsIn(text: string): FoundSecret[] {
  const found: FoundSecret[] = []
  let reached = 0
  for (const { 0: name, 1: flag, 2: ofPassword, 3: assignment, 4: sentence, index } of text.matchAll(named)) {
    if (index < reached) continue
    const written = valueAt(text, index + name.length)
    const { start, end, isQuoted } = written
    const value = text.slice(start, end)
    const isSet = flag || (assignment === '=' && !/[a-z]/.test(name))
    const way = isSet ? 'set' : assignment ? 'assigned' : sentence ? 'told' : 'near'
    if (
      isPlaceholder(value) ||
      isExpression.test(value) ||
      (/\s/.test(value) && !(isQuoted && (isSet || /phrase/i.test(name))))
    )
      continue
    const isOne = ofPassword
      ? isPassword(value, way, isQuoted, /^(?:[.!,;)]|\s*$|\s*\n)/.test(text.slice(end, end + 3)))
      : isKey(value, way, isQuoted)
    if (!isOne) continue
    reached = endOfWhole(text, written)
    found.push({ kind: ofPassword ? 'password' : /key|secret/i.test(name) ? 'key' : 'token', start, end: reached })
  }
  return found
}

/** A call, members of something, a path or an address: code where a value would stand. */
const isExpression =
  /[\w$\])](?:\(|\[|\?\.|->|::)|^[+.,)(]|^[a-z_$][\w$]*(?:\.[a-z_$][\w$]*)+$|^[.~]{0,2}\/[a-z._/-]+$|^\w+:\/\//i

const isMixed = (value: string): boolean => /\d/.test(value) && /[a-z]/i.test(value)

function isKey(value: string, way: Way, isQuoted: boolean): boolean {
  if (way === 'set') return value.length > 7
  if (isQuoted && way === 'assigned') return value.length > 7 && isMixed(value)
  // Digits among letters, as chance puts them; a word with a number ends with it, and a contract's address is public.
  return (
    value.length > 15 &&
    /[a-z]\d+[a-z]|\d[a-z]+\d/i.test(value) &&
    /[a-z\d]{8}/i.test(value) &&
    !/^0x.{40}$/.test(value)
  )
}

/** What is said of a password, or stands for one in a program. */
const described =
  /^(?:0x|(?:base|sha|md|utf|oauth|aes)-?\d|\d+[-–+]\d*$|\d{1,3}$|(?:[a-z]{1,5}|strong|correct|undefined|string|number|boolean|unknown|buffer|plaintext|secure|unique|random|default|visible|current|bearer|private|[a-z]+(?:ed|ing|[ai]ble|ful|less|ory|ive|ous|ly|id|al|ent))$)/i

function isPassword(value: string, way: Way, isQuoted: boolean, endsClause: boolean): boolean {
  if (value.length < 4 || /^\/|^[A-Z]:\\/.test(value)) return false
  if (way === 'set') return true
  if (described.test(value)) return false
  if (way === 'near') return value.length > 5 && isMixed(value) && !/[/.:]/.test(value)
  // A plain word is one in quotes, or where a sentence ends with it.
  return isQuoted || /\d|[^\w.'’/-]/.test(value) || (way === 'told' && endsClause && !/\W|_/.test(value))
}
