import { isExpression, isPassword, keyName, passwordName, passwordTriggers } from './namedValues.ts'
import { noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isGenerated, isPlaceholder } from './values.ts'

const emphasis = '[*_`"\']{0,3}'
const lineBreak = String.raw`(?:\r?\n|(?:\\r)?\\n)`
const gap = String.raw`(?:\s|\\[nrt]){0,20}`
const blockStart = String.raw`[ \t]{0,4}(?:[|>][+-]?)?${lineBreak}{1,2}`
/** Syntax between a name and its value, apart from the signs of an assignment. */
const separators = [
  // | password | … |
  String.raw`${emphasis}(?:[ \t]{1,8}\|[ \t]{0,8}|\|[ \t]{1,8})`,
  // **Password:** …, and a value on the next line, also of a YAML block
  String.raw`(?:[*_]{1,3}[:：]|[:：][*_]{1,3}|[:：](?=${blockStart}))(?:${blockStart})?[ \t]{0,20}`,
  // <b>Password:</b> …, <td>Password</td><td>…, <key>password</key><string>…
  String.raw`[:：]?[ \t]?(?:<\/[a-z\d]{1,10}>[:：]?${gap}){1,2}(?:<[a-z][^<>\n]{0,60}>${gap}){0,3}`,
  // name="password" value="…"
  String.raw`\\?["'][ \t]{1,3}value=\\?`,
  // <password> on a line of its own, <password><![CDATA[…
  String.raw`>${gap}(?:<!\[CDATA\[|<value>)?${gap}`,
  // password for the router: …, password (case sensitive): …, Secret Access Key [None]: …
  String.raw`(?: (?:for|of|to|on|do|bei|van|от|для) [^\n.?!:;=⟨]{1,40}?| \([^()\n⟨]{1,40}\)| \[[^[\]\n⟨]{1,40}\])[:：][ \t]{1,4}`,
  // password will be …, password set to …
  String.raw` (?:(?:will|would|should|must) be|equals|(?:is )?set to|as)[:]?[ \t]{1,3}`,
]
const value = String.raw`([^\s|<>"'\`*⟨\\]{6,200}?)(?=[.,;)]?${emphasis}\\?[ \t]{0,8}(?:[|<\]"'\s]|\\[nrt"]|$)|[.,;)] )`
const separatedValue = new RegExp(
  `(?:(${passwordName})|${keyName})(?:${separators.join('|')})${emphasis}${value}`,
  'iy',
)
/** An element after an option in a list of arguments, and the second argument of `define` and `getenv`. */
const listedValue = new RegExp(
  String.raw`(?:(${passwordName})|${keyName})\\{0,3}["'],(?:\s|\\n){0,12}\\{0,3}["']([^\s"'⟨\\]{6,200})(?=\\{0,3}["'])`,
  'iy',
)
const listStart = /(?:--[a-z-]{0,30}|(?:define|getenv|environ\.get)\([ ]?\\?["'][a-z_]{0,40})$/i
const maxListStart = 60
/** Shorter names, such as `pass` and `pw`, are also other words. */
const minNameCharacters = 5

/** Finds values that markup, a line break or other words separate from their name. They have letters and digits. */
function findSeparatedValue(text: string, at: number): readonly SecretMatch[] {
  const isListed = listStart.test(text.slice(Math.max(0, at - maxListStart), at))
  const pattern = isListed ? listedValue : separatedValue
  pattern.lastIndex = at
  const match = pattern.exec(text)
  if (match === null) return noMatches
  const { 1: password, 2: found = '' } = match
  if (isPlaceholder(found) || isExpression(found)) return noMatches
  const isSecret =
    password === undefined
      ? isGenerated(found)
      : password.length >= minNameCharacters && isPassword(found, 'adjacent', false, false)
  const end = pattern.lastIndex
  return isSecret
    ? [{ kind: password === undefined ? 'token' : 'password', start: end - found.length, end }]
    : noMatches
}

export const separatedRules: readonly SecretRule[] = [
  {
    name: 'separated value',
    triggers: [...passwordTriggers, 'secret', 'token', 'key'],
    find: findSeparatedValue,
  },
]
