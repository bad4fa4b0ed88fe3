import { isPassword } from './namedValues.ts'
import { createRule, type Judge, noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isPlaceholder } from './values.ts'

const looksRandom: Judge = (value) => /\d|[a-z][A-Z]|=/.test(value) && !isPlaceholder(value)
export const isGiven: Judge = (value) => !isPlaceholder(value)
const isCurlPassword: Judge = (value, text, start) =>
  /\D/.test(value) && !isPlaceholder(value) && /curl|http|wget/.test(text.slice(Math.max(0, start - 300), start))

const cookieStart =
  /(?:cookies?(?:\\?["'`]?[ \t]{0,2}[:,=]|(?<=--cookie)[ \t])|(?<=\bcurl\b[^\n]{0,200}) -b[ =]?)["'`\\\s]{0,4}/iy
const cookiePair = /[;,\s"'`\\]{0,6}([\w.-]{1,60})(?:=([^;\s"'`,\\⟨]*))?/y
const cookieAttribute = /^(?:path|domain|expires|max-age|samesite|version|comment)$/i
const sessionCookieName = /sess|sid$|auth|token|jwt|login|[cx]srf/i
const maxCookies = 40
const minCookieCharacters = 6

/** Finds session cookies in a `Cookie` or `Set-Cookie` header, or an option of `curl`. */
function findCookies(text: string, at: number): readonly SecretMatch[] {
  cookieStart.lastIndex = at
  if (!cookieStart.test(text)) return noMatches
  const found: SecretMatch[] = []
  cookiePair.lastIndex = cookieStart.lastIndex
  for (let count = 0; count < maxCookies; count++) {
    const from = cookiePair.lastIndex
    const pair = cookiePair.exec(text)
    if (pair === null || /\n\s*\n/.test(pair[0])) break
    const [, name = '', value = ''] = pair
    const end = from + pair[0].length
    const isSession = value.length > 15 || sessionCookieName.test(name)
    if (
      value.length >= minCookieCharacters &&
      isSession &&
      !cookieAttribute.test(name) &&
      looksRandom(value, text, end)
    )
      found.push({ kind: 'token', start: end - value.length, end })
  }
  return found
}

const bearerValue = String.raw`([\w.~+/|:-]{6,}={0,2})`

const goSource = /(?<=(?<![\w.-])[\w.-]{1,64}:(?!\/\/)([^\s"'`⟨]{1,200}))@(?:tcp|unix)\(/y

/** Finds the password of a data source of Go: `user:password@tcp(host:3306)/name`. */
function findGoPassword(text: string, at: number): readonly SecretMatch[] {
  goSource.lastIndex = at
  const password = goSource.exec(text)?.[1]
  return password === undefined || isPlaceholder(password)
    ? noMatches
    : [{ kind: 'connection', start: at - password.length, end: at }]
}

/** Finds credentials of requests. */
export const requestRules: readonly SecretRule[] = [
  // The last @ before the path ends the password, which may contain an unescaped @.
  createRule('URL', 'connection', ['://'], /:\/\/[^\s:/?#@"'`<>]{0,100}:([^\s/"'`<>⟨]{1,200})(?=@[\w.[-])/, isGiven),
  { name: 'Go data source', triggers: ['@tcp(', '@unix('], find: findGoPassword },
  createRule(
    'Oracle',
    'connection',
    ['jdbc:oracle:', 'sqlplus '],
    /(?:jdbc:oracle:(?:thin|oci8?):|sqlplus (?:-\w{1,8} ){0,4}["']?)[\w.$#-]{1,64}\/((?:"[^"\n]{1,100}"|[^\s"'@/⟨]{1,100}))(?=@|["'\s]|$)/i,
    isGiven,
  ),
  createRule(
    'Authorization',
    'token',
    ['authorization'],
    new RegExp(
      String.raw`authorization\\{0,3}["'\`]?[ \t]{0,2}[:=,][ \t"'\`\\]{0,5}(?:bearer|basic|token|apikey|bot|key)[ \t]{1,3}${bearerValue}`,
      'i',
    ),
    looksRandom,
  ),
  createRule(
    'user option',
    'password',
    [' -u', ' --user', ' -a '],
    /\s(?:-u|--user|-a)[ =]?["']?[^\s:"']{1,64}:([^\s"'⟨]{1,200})/,
    isCurlPassword,
  ),
  createRule(
    'netrc',
    'password',
    ['machine', 'default login'],
    /(?<!\w)(?:machine\s{1,4}[\w.:-]{1,100}|default)\s{1,4}login\s{1,4}\S{1,100}\s{1,4}(?:account\s{1,4}\S{1,60}\s{1,4})?password\s{1,4}([^\s⟨]{1,200})/,
    isGiven,
  ),
  createRule(
    'SET PASSWORD',
    'password',
    ['password for'],
    /(?<=set )password for [^\n=]{1,120}=\s{0,3}["']([^"'\n⟨]{1,200})/i,
    isGiven,
  ),
  createRule(
    'hashed literal',
    'password',
    ['crypt(', 'md5(', 'ha1(', 'ha2(', 'ha256(', 'ash(', 'ashpw(', 'ashsync('],
    /\w{3,8}\(\s{0,3}b?\\{0,3}["']((?:[^\s"'\\⟨]|\\(?!\\{0,2}["'])){4,200})(?=\\{0,3}["'])/i,
    (value, text, start) =>
      isPassword(value, 'assigned', true, false) &&
      !isPlaceholder(value) &&
      /pass|pwd|bcrypt|argon/i.test(text.slice(Math.max(0, start - 80), start)),
  ),
  { name: 'Cookie', triggers: ['cookie', ' -b'], find: findCookies },
  createRule(
    'session cookie',
    'token',
    ['connect.sid=', 'phpsessid=', 'jsessionid='],
    /(?:connect\.sid|phpsessid|jsessionid)=([\w%.~+/-]{16,500})/i,
    looksRandom,
  ),
  // The URL of a webhook is a credential.
  createRule('Slack webhook', 'token', ['hooks.slack.com/'], /hooks\.slack\.com\/[a-z]{1,20}\/([\w/]{20,200})/),
  createRule('Discord webhook', 'token', ['.com/api/webhooks/'], /\.com\/api\/webhooks\/\d{15,20}\/([\w-]{40,200})/),
  createRule('Zapier webhook', 'token', ['hooks.zapier.com/'], /hooks\.zapier\.com\/hooks\/catch\/([\w/]{8,80})/),
  createRule(
    'Make webhook',
    'token',
    ['hook.eu', 'hook.us', 'hook.integromat.com/'],
    /hook\.(?:[a-z]{2}\d\.make|integromat)\.com\/(\w{20,80})/,
  ),
  createRule('Teams webhook', 'token', ['webhook.office.com/'], /webhook\.office\.com\/webhookb2\/([\w@/-]{60,300})/),
  createRule(
    'AWS secret key after its id',
    'key',
    ['AKIA', 'ASIA'],
    /A[KS]IA[A-Z0-9]{16}["']?[ \t]{0,4}(?:[,;:|\t]|\r?\n|\\n)[ \t"']{0,6}([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])/,
    looksRandom,
  ),
  createRule('Azure storage key', 'token', ['accountkey='], /accountkey=([\w+/]{86}==)/i),
  createRule(
    'Twilio token after its id',
    'token',
    [...'0123456789abcdef'].map((first) => `AC${first}`),
    /AC[\da-f]{32}\\{0,3}["'],(?:\s|\\n){0,12}\\{0,3}["']([\da-f]{32})(?=\\{0,3}["'])/,
  ),
  createRule(
    'signature of a URL',
    'token',
    ['sig=', 'signature='],
    /(?<=(?:[?&;]|u0026)(?:x-(?:amz|goog)-)?)sig(?:nature)?=([\w%+/~-]{40,1024}={0,2})/i,
  ),
]
