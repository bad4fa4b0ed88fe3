import { type FoundSecret, valuesOf } from './found.ts'
import { isPlaceholder } from './placeholder.ts'

// "My PIN for the card is 4821", "CVV: 123", "482913 is your login code"
const code =
  /(?<![\w-])(?:pin(?: code| number)?|otp|cv[vc]2?|(?:pass|(?:security|one[- ]time|verification|2fa|login|access|door) )code)["']?(?: (?:for|to|of|on) [^\n.?!:;=⟨\d]{1,40}?)?(?: is(?: now)?:?|[ \t]?[:=]|(?<=cv.2?))[ \t]{0,3}["'`]?(\d{3}[ -]\d{3,4}|\d{4,8}|(?<=cv.{1,12})\d{3})(?!\w|[.:,-]\d)/gi
const codeFirst = /(?<![\w.-])\d{4,8}(?= is (?:your|my|the) (?:[\w-]{1,20} ){0,3}(?:code|pin|otp)\b)/gi
const login =
  /\b(?:(?:log|sign) ?in(?: with| as| using|:)|credentials(?: are|:)) ["'`]?[\w.@+-]{2,60}["'`]?(?: ?\/ ?| and )["'`]?([^\s"'`,;)]{5,100})/gi
const phrase =
  /(?:(?:[Ss]eed|[Rr]ecovery|[Bb]ackup) (?:phrase|words)|[Mm]nemonic|MNEMONIC)[^\n.?!:;=⟨]{0,40}?(?: is| are|[:=])(?:\W|\\n){0,5}((?:(?:\d{1,2}[.)] ?)?[a-z]{3,8}(?:[ ,\n]|\\n){1,3}){11,23}(?:\d{1,2}[.)] ?)?[a-z]{3,8})(?!\w)/g
const passphrase = /passphrase(?: is|[:=])\W{0,5}((?:[a-z]{3,12}[ -]){2,9}[a-z]{3,12})(?=[.!]?\s{0,4}(?:[\n"'\\]|$))/gi
/** Sentences have them; lists of words that are a secret do not. */
const glue = /\b(?:the|and|for|are|with|your|not)\b/

const isAnything = (): boolean => true
const isSecretWord = (value: string): boolean =>
  /\d|[^\w./-]/.test(value) && /[a-z]/i.test(value) && !isPlaceholder(value)
const isList = (value: string): boolean => !glue.test(value)

const coded = /pin|otp|cv[vc]|code/i
const worded = /(?:log|sign) ?in|credentials|seed|recovery|backup|mnemonic|passphrase/i

/** Whether there may be any: if not, there are none. */
export const mayHoldTold = (text: string): boolean => (/\d/.test(text) && coded.test(text)) || worded.test(text)

/** Codes, logins and phrases that somebody says are theirs. */
export function toldSecretsIn(text: string): FoundSecret[] {
  return [
    ...valuesOf(text, 'password', code, isAnything),
    ...valuesOf(text, 'password', codeFirst, isAnything),
    ...valuesOf(text, 'password', login, isSecretWord),
    ...valuesOf(text, 'key', phrase, isList),
    ...valuesOf(text, 'password', passphrase, isList),
  ]
}
