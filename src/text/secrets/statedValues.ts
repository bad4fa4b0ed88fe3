import { createRule, noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isPlaceholder } from './values.ts'

/** Spaces, quotes and signs between a name and its number. */
const is = String.raw`["'*_]{0,3}(?: (?:for|to|of|on) [^\n.?!:;=⟨\d]{1,40}?)?(?: (?:is|was|ist|lautet|est|es|é|è)(?: now| still)?:?|[ \t]?[:=：][*_]{0,3}|[是为は：])[ \t]{0,3}["'\`]?`
const code = String.raw`(\d{3}[ -]\d{3,4}|\d{4,8})(?!\w|[.:,-]\d)`
const securityCode = String.raw`(\d{3,4})(?!\w|[.:,-]\d)`

/** Function words occur in sentences, but not in lists of words that are a secret. */
const functionWord =
  /\b(?:the|and|for|are|with|your|not|from|than|but|you|can|has|have|been|was|when|which|that|used|only|must|should|required|needed)\b/
const isWordList = (value: string): boolean => !functionWord.test(value)
/** Words that describe a phrase: "the passphrase is stored in plain text". */
const describesPhrase =
  /^(?:[a-z]+(?:ed|ing|ly|able|ible)|too|very|still|also|just|kept|wrong|correct (?!horse)|now|what|how|why|some|any|one|set|sent|never|always)\b/i
const looksLikePassword = (value: string): boolean =>
  /\d|[^\w./-]/.test(value) && /[a-z]/i.test(value) && !isPlaceholder(value)

const words = String.raw`(?:[ ,\n]|\\n){1,3}`
const number = String.raw`(?:\d{1,2}[.)] ?)?`
const isSocialSecurityNumber = (value: string): boolean => !/^(?:000|666|9)|^\d{3}\D?00|0000$/.test(value)

/** Signs between a short label and a token of a fixed length. */
const labelled = String.raw`(?: is)?[^\w⟨]{1,8}`
const labelEnds = [':', '=', ' ', '"', "'", '\\']

const codeBefore = /(?<=(?<![\w.-])(\d{4,8})) is (?:your|my|the) (?:[\w-]{1,20} ){0,3}(?:code|pin|otp)\b/iy

/** "482913 is your login code" */
function findCodeBefore(text: string, at: number): readonly SecretMatch[] {
  codeBefore.lastIndex = at
  const digits = codeBefore.exec(text)?.[1]
  return digits === undefined ? noMatches : [{ kind: 'password', start: at - digits.length, end: at }]
}

/** Finds PINs, one-time codes, logins, phrases and social security numbers stated in prose. */
export const statedRules: readonly SecretRule[] = [
  createRule(
    'PIN',
    'password',
    ['pin'],
    new RegExp(`(?<![\\w-])pin(?:[- ]?(?:code|number|no\\.?|nummer))?${is}${code}`, 'i'),
  ),
  createRule(
    'PIN without a verb',
    'password',
    ['pin'],
    /(?<![\w-])(?:PIN(?:[- ](?:[Cc]ode|[Nn]umber|[Nn]o\.?))?|(?<=(?:[Mm]y|[Yy]our|card|bank|phone|door|SIM) )pin(?: code| number)?)[ \t]{1,2}(\d{4,6})(?!\w|[.:,-]\d)/,
  ),
  createRule(
    'one-time code',
    'password',
    ['otp', 'passcode', 'geheimzahl'],
    new RegExp(`(?<![\\w-])(?:otp|passcode|geheimzahl)${is}${code}`, 'i'),
  ),
  createRule(
    'code',
    'password',
    ['code'],
    new RegExp(
      `(?<=(?:security|one[- ]time|verification|2fa|login|access|door|sms|auth(?:entication)?)[- ])code(?:${is}|[ \\t]{1,2}(?=\\d{6}))${code}`,
      'i',
    ),
  ),
  createRule(
    'Azure DevOps',
    'token',
    labelEnds.map((end) => `pat${end}`),
    new RegExp(`(?<![A-Za-z])pat${labelled}([a-z\\d]{52})(?![A-Za-z\\d])`, 'i'),
  ),
  createRule(
    'Bitcoin private key',
    'key',
    [...labelEnds.map((end) => `wif${end}`), 'importprivkey '],
    new RegExp(
      `(?<![A-Za-z])(?:wif(?: (?:private )?key)?|importprivkey)${labelled}([5KLc9][1-9A-Za-z]{50,51})(?![A-Za-z\\d])`,
      'i',
    ),
  ),
  { name: 'code first', triggers: [' is your ', ' is my ', ' is the '], find: findCodeBefore },
  createRule(
    'card security code',
    'password',
    ['cvv', 'cvc', 'csc', 'cid'],
    new RegExp(
      `(?<![\\w-])(?:cv[vc]2?|csc|cid)(?:[- ]?(?:code|number|no\\.?))?(?:${is}|[ \\t]{1,3})${securityCode}`,
      'i',
    ),
  ),
  createRule(
    'security code',
    'password',
    ['security code'],
    new RegExp(`security code(?:${is}|[ \\t]{1,3})${securityCode}`, 'i'),
  ),
  createRule(
    'social security number',
    'password',
    ['ssn', 'social security'],
    /(?:(?<!\w)ssn|social security)(?: (?:number|no\.?|#))?[^\n\d⟨]{0,24}(\d{3}([ .-]?)\d{2}\2\d{4})(?!\w|[.-]\d)/i,
    isSocialSecurityNumber,
  ),
  createRule(
    'login',
    'password',
    ['login', 'log in', 'sign in', 'signin', 'credentials', 'creds'],
    /(?<!\w)(?:(?:log|sign) ?in(?: with| as| using|:)|cred(?:ential)?s(?: are|:)) ["'`]?[\w.@+-]{2,60}["'`]?(?: ?\/ ?| and )["'`]?([^\s"'`,;)]{5,100})/i,
    looksLikePassword,
  ),
  createRule(
    'seed phrase',
    'key',
    [
      'seed phrase',
      'seed words',
      'recovery phrase',
      'recovery words',
      'backup phrase',
      'backup words',
      'mnemonic',
      'secret phrase',
      'secret recovery phrase',
    ],
    new RegExp(
      `(?:(?:[Ss]eed|[Ss]ecret(?: [Rr]ecovery)?|[Rr]ecovery|[Bb]ackup) (?:[Pp]hrase|[Ww]ords)|[Mm]nemonic|MNEMONIC)[^\\n.?!:;=⟨]{0,40}?(?: is| are|[:=])(?:\\W|\\\\n){0,5}((?:${number}[a-z]{3,8}${words}){11,23}${number}[a-z]{3,8})(?!\\w)`,
    ),
    isWordList,
  ),
  createRule(
    'passphrase',
    'password',
    ['passphrase', 'pass phrase'],
    /pass ?phrase(?: is| was|[:=])\W{0,5}((?:[a-z]{3,12}[ -]){2,9}[a-z]{3,12})(?=[.!,;?)]|\s{0,4}(?:[\n"'\\]|$))/i,
    (value) => isWordList(value.toLowerCase()) && !describesPhrase.test(value),
  ),
]

const hyphenated = /(?<![\w.+/#-])\d{3}-\d{2}-\d{4}(?![\w]|[.-]\d)/y

/** Finds a social security number by its form alone: three, two and four digits. */
export function findHyphenatedNumber(text: string, at: number): readonly SecretMatch[] {
  hyphenated.lastIndex = at
  const end = at + '123-45-6789'.length
  return text.charCodeAt(at + 3) === 45 && hyphenated.test(text) && isSocialSecurityNumber(text.slice(at, end))
    ? [{ kind: 'password', start: at, end }]
    : noMatches
}
