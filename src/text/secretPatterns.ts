export type SecretKind = 'key' | 'token' | 'password' | 'connection' | 'card' | 'pem'
/** Position of a secret: `text.slice(start, end)` must be replaced. */
export type SecretMatch = { readonly kind: SecretKind; readonly start: number; readonly end: number }

/** Finds the first group of a pattern, or the whole match; both end at the end of the match. */
function findValues(
  text: string,
  kind: SecretKind,
  pattern: RegExp,
  isSecret: (value: string, start: number) => boolean,
): SecretMatch[] {
  const found: SecretMatch[] = []
  for (const { 0: whole, 1: value = whole, index } of text.matchAll(pattern)) {
    const end = index + whole.length
    const start = end - value.length
    if (isSecret(value, start)) found.push({ kind, start, end })
  }
  return found
}

/** Masks written for secrets found earlier. */
export const maskPattern = /⟨secret:\d{1,12}⟩/g

const placeholderSymbols = /x{4}|\*{3}|\.{3}|…|(.)\1{5}|\$\{|\{\{|^[$<{[%*#@]|[>}%]$/i
const placeholderWords =
  /(?:^|[^a-z])(?:your|example|placeholder|change[-_]?(?:me|this)|replace|redacted|dummy|fake|here|my[-_](?:api|secret|token))|example(?:key)?$/i
const credentialName =
  /^(?:[a-z]{1,9}[-_ ])?(?:(?:my|test|new|wrong|secret|valid|access|api)[-_]?){0,3}(?:pass(?:word|wd)?|pwd|secret|token|key|string|value|user(?:name)?)$/i

/** Tells whether a value is only a placeholder (`your-api-key`, `<token>`, `xxxx`) or already masked. */
function isPlaceholder(value: string): boolean {
  // Long random values may contain any short word by chance, but rarely at the beginning.
  const beginning = value.slice(0, 48)
  return (
    value.includes('⟨') ||
    placeholderSymbols.test(beginning) ||
    placeholderWords.test(beginning) ||
    credentialName.test(beginning)
  )
}

/** Not inside a word; an escaped line break, a percent code, a terminal colour or Telegram's `/bot` may precede it. */
const keyStart = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrt]|%[\dA-F]{2}|\[[\d;]{1,8}m|/bot))`
/** Minimum length of all formats, so that most of a text is skipped quickly. */
const minLength = String.raw`(?=[\w~.+/:=%-]{20})`
/** Format with a distinctive prefix. */
const withPrefix = (prefixes: string): string => String.raw`(?:${prefixes})[\w-]{20,}={0,2}`

const keyFormats = [
  // OpenAI, Anthropic, OpenRouter; Stripe; Google; Figma; NVIDIA; Brevo; Supabase; Pinecone; LangSmith; Groq; xAI;
  // Perplexity
  withPrefix('sk-|[sr]k_(?:live|test)_|GOCSPX-|AIza|figd_|nvapi-|xkeysib-|sb_secret_|pcsk_|lsv2_|gsk_|xai-|pplx-'),
  // Hugging Face, Replicate, Linear, Notion, New Relic, age, PostHog, Tavily, Postman, Resend
  withPrefix('hf_|r8_|lin_[a-z]+_|secret_|ntn_|NRAK-|AGE-SECRET-KEY-|phx_|tvly-|PMAK-|re_'),
  'A[KS]IA[A-Z0-9]{16}', // AWS
  String.raw`whsec_[\w+/-]{24,}={0,2}`, // Stripe, Svix
  String.raw`(?:SK|key-|dapi)[0-9a-f]{32}(?:-\d)?`, // Twilio, Mailgun, Databricks
  String.raw`[0-9a-f]{32}-us\d{1,2}`, // Mailchimp
  String.raw`SG\.[\w-]{16,}\.[\w-]{16,}`, // SendGrid
  String.raw`[\w~.-]{3}\dQ~[\w~.-]{31,34}`, // Azure
].join('|')

const tokenFormats = [
  // GitHub, GitLab, Slack, Shopify, Square, DigitalOcean, Docker, npm, PyPI, RubyGems, Heroku
  withPrefix(
    'gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|xapp-|shp[a-z]{2}_|sq0[a-z]{3}-|EAAA|do[opr]_v1_|dckr_pat_|npm_|pypi-|rubygems_|HRKU-',
  ),
  // Grafana, Vault, Doppler, PlanetScale, Supabase, Fly, Google, Sentry, Tailscale, Pulumi
  withPrefix(String.raw`glsa_|glc_|hv[bsr]\.|dp\.[a-z]+\.|pscale_[a-z]+_|sbp_|fo1_|ya29\.|1//0|sntry[su]_|tskey-|pul-`),
  String.raw`fm\d[a-z]?_[\w+/-]{40,}={0,2}`, // Fly
  String.raw`AT[AC]TT3x[\w-]{20,}(?:=[0-9A-F]{8})?`, // Atlassian
  String.raw`pat\w{14}\.[0-9a-f]{64}`, // Airtable
  String.raw`\d{8,10}:AA[\w-]{32,34}`, // Telegram
  // Discord: an account number in base64, which has only these letters
  String.raw`(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){5,6}\w{0,4}\.[\w-]{6}\.[\w-]{27,}`,
  // JSON Web Tokens; the lookbehind allows one attempt per run of these characters, however often `eyJ` occurs in it
  String.raw`(?<![_-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]+){0,3}`,
  // Slack, Discord: the webhook URL itself is the credential
  String.raw`(?<=hooks\.slack\.com/[a-z]+/)[\w/]{20,}|(?<=\.com/api/webhooks/\d{15,20}/)[\w-]{40,}`,
  // Azure Storage
  String.raw`(?<=AccountKey=)[\w+/]{86}==|(?<=[?&;]sig=)[\w%+/-]{40,}={0,2}`,
].join('|')

const knownFormat = new RegExp(`${keyStart}${minLength}(?:(${keyFormats})|${tokenFormats})(?![A-Za-z0-9])`, 'g')
/** Randomness: digits among letters, alternating case, or capitals only; excludes words joined by `_` or `-`. */
const randomPart = /(?=[A-Za-z]{0,11}\d)[A-Za-z\d]{12}|(?:[a-z]{1,9}[A-Z]{1,9}){4}|[A-Z]{16}/

/** Finds keys and tokens of known formats. */
export function findKnownFormats(text: string): SecretMatch[] {
  const found: SecretMatch[] = []
  for (const { 0: secret, 1: key, index } of text.matchAll(knownFormat))
    if (randomPart.test(secret) && !isPlaceholder(secret))
      found.push({ kind: key ? 'key' : 'token', start: index, end: index + secret.length })
  return found
}

const pemBoundary = /-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
// Separators of lines: line breaks, also escaped as `\n`, with quotation or string syntax around them.
const pemGap = String.raw`(?:\\{1,4}[nrt]|[\s"'\`>|+,\\]){0,40}`
const pemHeader = String.raw`(?:${pemGap}[A-Z][\w-]{1,20}: [^\n\\]{1,120}(?=[\n\\])){0,6}`
/** Base64 lines of a key; the last one may be short if nothing follows it on the line. */
const pemLines = new RegExp(
  String.raw`${pemHeader}(?:${pemGap}[A-Za-z0-9+/=]{16,})+(?:${pemGap}[A-Za-z0-9+/=]{1,15}(?=[ \t"'\`]{0,8}(?:[\n\r\\]|$)))?`,
  'y',
)
/** A key of 16,384 bits has about 13,000 characters. */
const maxPemCharacters = 20_000

/** Cheap prefilter: if false, the text contains no PEM block. */
export const mayContainPem = (text: string): boolean => text.includes('-----')

/** Finds private keys between `BEGIN` and `END`; a truncated key ends with its last line. */
export function findPemBlocks(text: string): SecretMatch[] {
  const boundaries = [...text.matchAll(pemBoundary)]
  const found: SecretMatch[] = []
  boundaries.forEach((begin, index) => {
    pemLines.lastIndex = begin.index + begin[0].length
    // Code that searches for PEM blocks contains the boundaries without key lines.
    if (begin[1] !== 'BEGIN' || !pemLines.test(text)) return
    const next = boundaries[index + 1]
    const isComplete = next?.[1] === 'END' && next.index - begin.index < maxPemCharacters
    found.push({ kind: 'pem', start: begin.index, end: isComplete ? next.index + next[0].length : pemLines.lastIndex })
  })
  return found
}

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

// The last @ before the path ends the password, which may contain an unescaped @.
const urlPassword = /:\/\/[^\s:/?#@"'`<>]{0,100}:([^\s/"'`<>]{1,200})(?=@[\w.[-])/g
const authorization =
  /authorization\\{0,3}["'`]?[ \t]{0,2}[:=,][ \t"'`\\]{0,5}(?:bearer|basic|token)[ \t]{1,3}([\w.~+/-]{6,}={0,2})/gi
const userFlag = /\s(?:-u|--user)[ =]?["']?[^\s:"']{1,64}:([^\s"']{1,200})/g
const cookieLine = /cookie\\?["'`]?[ \t]{0,2}[:,=][^\n]+/gi
const cookiePair = /(?<![\w.-])(?!path|domain|expires|max-age|samesite)([\w.-]{1,60})=([^;\s"'`,\\]{6,})/gi
const sessionCookieName = /sess|sid$|auth|token|jwt|login|[cx]srf/i

const requestHint = /:\/\/|authorization|cookie|\s-u|\s--user/i

/** Cheap prefilter: if false, the text contains no request credentials. */
export const mayContainRequestSecrets = (text: string): boolean => requestHint.test(text)

/** Finds credentials of HTTP requests: passwords in URLs, `Authorization`, cookies and curl's `-u`. */
export function findRequestSecrets(text: string): SecretMatch[] {
  const isCurlPassword = (value: string, start: number): boolean =>
    /\D/.test(value) && !isPlaceholder(value) && text.slice(Math.max(0, start - 300), start).includes('curl')
  return [
    ...findValues(text, 'connection', urlPassword, (value) => !isPlaceholder(value)),
    ...findValues(text, 'token', authorization, looksRandom),
    ...findValues(text, 'password', userFlag, isCurlPassword),
    ...findCookies(text),
  ]
}

const looksRandom = (value: string): boolean => /\d|[a-z][A-Z]|=/.test(value) && !isPlaceholder(value)

function findCookies(text: string): SecretMatch[] {
  const found: SecretMatch[] = []
  for (const { 0: line, index } of text.matchAll(cookieLine)) {
    for (const { 0: pair, 1: name = '', 2: value = '', index: offset } of line.matchAll(cookiePair)) {
      const end = index + offset + pair.length
      if (looksRandom(value) && (value.length > 15 || sessionCookieName.test(name)))
        found.push({ kind: 'token', start: end - value.length, end })
    }
  }
  return found
}

// A lookahead at every possible start, so that a failed candidate does not hide the next. Grouped as on a card, or
// ungrouped.
const candidate =
  /(?<![\w.+/#]|\d-)(?=(\d{4}([ -])(?:\d{4}\2\d{4}\2\d{4}|\d{6}\2\d{4,5}))((?:\2\d{1,3})?)(?![\w]|\.\d)|(\d{13,19})(?![\w]|[.-]\d))/g
/** Prefixes and lengths of Visa; Mastercard; American Express; Diners Club; JCB, Discover and UnionPay. */
const issuerFormat =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]|2[2-7])\d{14}|3[47]\d{13}|3[068]\d{12}|(?:35|6[0245])\d{14,17})$/
/** IBAN before the digits: its groups are not a card number. */
const ibanBefore = /[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){0,7} ?$/
const cardWord = /card|visa/i
const digitGroups = /\d{4}[ -]\d{4}|\d{13}/

/** Cheap prefilter: if false, the text contains no card number. */
export const mayContainCards = (text: string): boolean => digitGroups.test(text)

/** Finds payment card numbers: a known prefix, a matching length and a valid Luhn checksum. */
export function findCards(text: string): SecretMatch[] {
  const found: SecretMatch[] = []
  let reached = 0
  for (const { index: start, 1: grouped, 3: rest = '', 4: plain } of text.matchAll(candidate)) {
    if (start < reached) continue
    const number = [grouped ?? '', `${grouped ?? plain}${rest}`].find(isCardNumber)
    if (number === undefined || ibanBefore.test(text.slice(Math.max(0, start - 40), start))) continue
    // An ungrouped number of an unusual length is more often an id.
    if (
      plain !== undefined &&
      (plain.length < 14 || plain.length > 16) &&
      !cardWord.test(text.slice(Math.max(0, start - 80), start))
    )
      continue
    reached = start + number.length
    found.push({ kind: 'card', start, end: reached })
  }
  return found
}

function isCardNumber(text: string): boolean {
  const number = text.replace(/\D/g, '')
  if (!issuerFormat.test(number)) return false
  let sum = 0
  for (let index = number.length - 1, factor = 1; index >= 0; index--, factor = 3 - factor) {
    const product = Number(number.charAt(index)) * factor
    sum += product > 9 ? product - 9 : product
  }
  return sum % 10 === 0
}

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

/**
 * Relation of a value to its name: a flag or environment variable, an assignment in code, a sentence, or just adjacent.
 */
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
/**
 * A comma, bracket or quote belongs to a bare value if neither a space nor another name follows: `Password=a;b;Port=1`.
 */
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
