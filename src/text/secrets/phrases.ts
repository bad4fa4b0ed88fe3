import { findValues, isPlaceholder, type SecretMatch } from './match.ts'

// "My PIN for the card is 4821", "CVV: 123", "482913 is your login code"
const codeAfterName =
  /(?<![\w-])(?:pin(?: code| number)?|otp|cv[vc]2?|(?:pass|(?:security|one[- ]time|verification|2fa|login|access|door) )code)["']?(?: (?:for|to|of|on) [^\n.?!:;=⟨\d]{1,40}?)?(?: is(?: now)?:?|[ \t]?[:=]|(?<=cv.2?))[ \t]{0,3}["'`]?(\d{3}[ -]\d{3,4}|\d{4,8}|(?<=cv.{1,12})\d{3})(?!\w|[.:,-]\d)/gi
const codeBeforeName = /(?<![\w.-])\d{4,8}(?= is (?:your|my|the) (?:[\w-]{1,20} ){0,3}(?:code|pin|otp)\b)/gi
const login =
  /\b(?:(?:log|sign) ?in(?: with| as| using|:)|credentials(?: are|:)) ["'`]?[\w.@+-]{2,60}["'`]?(?: ?\/ ?| and )["'`]?([^\s"'`,;)]{5,100})/gi
const seedPhrase =
  /(?:(?:[Ss]eed|[Rr]ecovery|[Bb]ackup) (?:phrase|words)|[Mm]nemonic|MNEMONIC)[^\n.?!:;=⟨]{0,40}?(?: is| are|[:=])(?:\W|\\n){0,5}((?:(?:\d{1,2}[.)] ?)?[a-z]{3,8}(?:[ ,\n]|\\n){1,3}){11,23}(?:\d{1,2}[.)] ?)?[a-z]{3,8})(?!\w)/g
const passphrase = /passphrase(?: is|[:=])\W{0,5}((?:[a-z]{3,12}[ -]){2,9}[a-z]{3,12})(?=[.!]?\s{0,4}(?:[\n"'\\]|$))/gi
/** Function words occur in sentences, but not in lists of words that are a secret. */
const functionWord = /\b(?:the|and|for|are|with|your|not)\b/

const acceptAll = (): boolean => true
const looksLikePassword = (value: string): boolean =>
  /\d|[^\w./-]/.test(value) && /[a-z]/i.test(value) && !isPlaceholder(value)
const isWordList = (value: string): boolean => !functionWord.test(value)

const codeHint = /pin|otp|cv[vc]|code/i
const phraseHint = /(?:log|sign) ?in|credentials|seed|recovery|backup|mnemonic|passphrase/i

/** Cheap prefilter: if false, the text contains no stated secret. */
export const mayContainStatedSecrets = (text: string): boolean =>
  (/\d/.test(text) && codeHint.test(text)) || phraseHint.test(text)

/** Finds PINs, one-time codes, logins and seed phrases stated in prose. */
export function findStatedSecrets(text: string): SecretMatch[] {
  return [
    ...findValues(text, 'password', codeAfterName, acceptAll),
    ...findValues(text, 'password', codeBeforeName, acceptAll),
    ...findValues(text, 'password', login, looksLikePassword),
    ...findValues(text, 'key', seedPhrase, isWordList),
    ...findValues(text, 'password', passphrase, isWordList),
  ]
}
