import { isPassword } from './namedValues.ts'
import { createRule, type Judge, noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isMixed, isPlaceholder } from './values.ts'

const looksRandom: Judge = (value) => /\d|[a-z][A-Z]|=/.test(value) && !isPlaceholder(value)
const isGiven: Judge = (value) => !isPlaceholder(value)
const isCurlPassword: Judge = (value, text, start) =>
  /\D/.test(value) && !isPlaceholder(value) && /curl|http|wget/.test(text.slice(Math.max(0, start - 300), start))

const cookieStart = /cookies?(?:\\?["'`]?[ \t]{0,2}[:,=]|(?<=--cookie)[ \t])["'`\\\s]{0,4}/iy
const cookiePair = /[;,\s"'`\\]{0,6}([\w.-]{1,60})(?:=([^;\s"'`,\\⟨]*))?/y
const cookieAttribute = /^(?:path|domain|expires|max-age|samesite|version|comment)$/i
const sessionCookieName = /sess|sid$|auth|token|jwt|login|[cx]srf/i
const maxCookies = 40
const minCookieCharacters = 6

/** Finds session cookies in a `Cookie` or `Set-Cookie` header. */
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

/** Value of an option: quoted, or up to the next space. */
const argument = String.raw`\\{0,3}["']?((?<=")(?:[^"\n\\]|\\(?!\\{0,2}")){1,200}|(?<=')[^'\n]{1,200}|(?:[^\s"'|;&\\]|\\(?!\\{0,2}["'])){1,200})`
/** Between two elements of a list of arguments. */
const element = String.raw`\\{0,3}["'],\s{0,8}`
/** Programs that take a password as an option, and the option. */
const passwordOptions: readonly (readonly [triggers: readonly string[], program: string, option: string])[] = [
  [['mysql', 'mariadb'], '(?:mysql|mariadb)(?:-?(?:dump|admin|import|show|check|slap))?', '-p'],
  [['sshpass'], 'sshpass', '-p ?'],
  [['redis-cli'], 'redis-cli', '-a ?'],
  [['docker login', 'podman login', 'registry login', 'oc login', 'az login'], '[a-z]{2,8} login', '-p ?'],
  [['mongo'], 'mongo(?:sh|dump|restore|export|import)?', '-p ?'],
  [['sqlcmd', 'bcp ', 'isql', 'osql'], '(?:sqlcmd|bcp|isql|osql)', '-P ?'],
  [['ldap'], 'ldap(?:search|modify|add|delete|whoami|passwd)', '-w ?'],
  [['7z ', '7za ', '7zr '], '7z[ar]?', '-p'],
  [['zip '], 'zip', '-P ?'],
  [['unzip '], 'unzip', '-P ?'],
  [['keytool '], 'keytool', '-(?:store|key)pass ?'],
  [['cqlsh '], 'cqlsh', '-p ?'],
  [['ipmitool '], 'ipmitool', '-P ?'],
  [['mosquitto_'], 'mosquitto_(?:pub|sub|rr)', '-P ?'],
  [['evil-winrm ', 'crackmapexec ', 'netexec ', 'nxc '], '(?:evil-winrm|crackmapexec|netexec|nxc)', '-p ?'],
  [['psexec'], 'psexec(?:64)?', '-p ?'],
  [['smbclient'], 'smbclient', String.raw`-U ?["']?[\w.\\/-]{1,64}%`],
  [['openssl'], 'openssl', '-pass(?:in|out)? pass:'],
]

const isMixedPassword: Judge = (value) => isMixed(value) && !isPlaceholder(value)

/** Commands that read a password from their standard input. */
const readsPassword = String.raw`(?:sudo\s[^\n|;<]{0,60}?-\w{0,4}S(?!\w)|-stdin(?!\w)|chpasswd|smbpasswd\s[^\n|;<]{0,40}?-\w{0,3}s(?!\w)|passphrase-fd)`
const writtenBefore = new RegExp(
  String.raw`(?:echo|printf)(?: -[neE]{1,3})?\s{1,3}(?:\\{0,3}["']?%s(?:\\{1,4}n)?\\{0,3}["']?\s{1,3})?${argument}\\{0,3}["']?\s{0,4}\|[^\n|;]{0,120}$`,
  'd',
)
const writtenAfter = new RegExp(String.raw`${readsPassword}[^\n|;<]{0,100}(?:<<<\s{0,3}${argument})?`, 'dy')
const maxCommandCharacters = 400
const substitution = /^\$(?:[({]|\w{1,60}$)/

/** Finds passwords that are written to the standard input of a command: `echo … | sudo -S ls`, `sudo -S ls <<< …`. */
function findWrittenPassword(text: string, at: number): readonly SecretMatch[] {
  writtenAfter.lastIndex = at
  const after = writtenAfter.exec(text)
  if (after === null) return noMatches
  const from = Math.max(0, at - maxCommandCharacters)
  const before = writtenBefore.exec(text.slice(from, at))?.indices?.[1]
  const own = after.indices?.[1]
  const [start, end] = own ?? [from + (before?.[0] ?? 0), from + (before?.[1] ?? 0)]
  const written = text.slice(start, end)
  const name = /^chpasswd/.test(after[0]) ? (/^[\w.-]{1,64}:/.exec(written)?.[0].length ?? 0) : 0
  const value = written.slice(name)
  return value === '' || isPlaceholder(value) || substitution.test(value)
    ? noMatches
    : [{ kind: 'password', start: start + name, end }]
}

const bearerValue = String.raw`([\w.~+/|:-]{6,}={0,2})`

/** Finds credentials of requests and commands. */
export const requestRules: readonly SecretRule[] = [
  // The last @ before the path ends the password, which may contain an unescaped @.
  createRule('URL', 'connection', ['://'], /:\/\/[^\s:/?#@"'`<>]{0,100}:([^\s/"'`<>⟨]{1,200})(?=@[\w.[-])/, isGiven),
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
  ...passwordOptions.map(([triggers, program, option]) =>
    createRule(
      triggers[0] ?? '',
      'password',
      triggers,
      new RegExp(
        `(?<![\\w-])${program}(?:\\.exe)?(?: |${element})(?:(?:[^\\n|;⟨]|\\\\\\n){0,120}?[\\s"'])?${option.replace(' ?', `(?: |${element}(?=\\\\{0,3}["']))?`)}${argument}`,
      ),
      isGiven,
    ),
  ),
  {
    name: 'standard input',
    triggers: ['sudo ', '-stdin', 'chpasswd', 'smbpasswd', 'passphrase-fd'],
    find: findWrittenPassword,
  },
  createRule(
    'password directive',
    'password',
    ['requirepass ', 'masterauth ', 'to-securestring '],
    new RegExp(`(?:requirepass|masterauth|to-securestring(?: -string)?(?= ["'])) ${argument}`, 'i'),
    isMixedPassword,
  ),
  createRule(
    'htpasswd',
    'password',
    ['htpasswd -'],
    new RegExp(String.raw`htpasswd(?: -\w{1,8}){0,3} (?:\S{1,100} ){1,2}${argument}(?=["']?[ \t]{0,4}(?:$|[\n|;&>]))`),
    (value, text, start) =>
      /htpasswd[^\n]* -\w*b/.test(text.slice(Math.max(0, start - 300), start)) && !isPlaceholder(value),
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
  { name: 'Cookie', triggers: ['cookie'], find: findCookies },
  // The URL of a webhook is a credential.
  createRule('Slack webhook', 'token', ['hooks.slack.com/'], /hooks\.slack\.com\/[a-z]{1,20}\/([\w/]{20,200})/),
  createRule('Discord webhook', 'token', ['.com/api/webhooks/'], /\.com\/api\/webhooks\/\d{15,20}\/([\w-]{40,200})/),
  createRule('Teams webhook', 'token', ['webhook.office.com/'], /webhook\.office\.com\/webhookb2\/([\w@/-]{60,300})/),
  createRule(
    'AWS secret key after its id',
    'key',
    ['AKIA', 'ASIA'],
    /A[KS]IA[A-Z0-9]{16}["']?[ \t]{0,4}(?:[,;:|\t]|\r?\n|\\n)[ \t"']{0,6}([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])/,
    looksRandom,
  ),
  createRule('Azure storage key', 'token', ['accountkey='], /accountkey=([\w+/]{86}==)/i),
  createRule('shared access signature', 'token', ['sig='], /(?<=[?&;])sig=([\w%+/-]{40,200}={0,2})/),
]
