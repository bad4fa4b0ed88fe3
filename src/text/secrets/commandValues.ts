import { isPassword } from './namedValues.ts'
import { isGiven } from './requestValues.ts'
import { createRule, type Judge, noMatches, type RangeMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { isGenerated, isMixed, isPlaceholder } from './values.ts'

/** Value of an option: quoted, or up to the next space. A backtick before punctuation ends code that has no value. */
const createArgument = (maxCharacters: number): string =>
  String.raw`\\{0,3}["']?((?<=")(?:[^"\n\\]|\\(?!\\{0,2}")){1,${maxCharacters}}|(?<=')[^'\n]{1,${maxCharacters}}|(?!\`(?:[\s.,:;!?)]|$))(?:[^\s"'|;&\\]|\\(?!\\{0,2}["'])){1,${maxCharacters}})`
const argument = createArgument(200)
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
  [['cqlsh '], 'cqlsh', '-p ?'],
  [['ipmitool '], 'ipmitool', '-P ?'],
  [['mosquitto_'], 'mosquitto_(?:pub|sub|rr)', '-P ?'],
  [['evil-winrm ', 'crackmapexec ', 'netexec ', 'nxc '], '(?:evil-winrm|crackmapexec|netexec|nxc)', '-p ?'],
  [['psexec'], 'psexec(?:64)?', '-p ?'],
  [['smbclient'], 'smbclient', String.raw`-U ?["']?[\w.\\/-]{1,64}%`],
  [['gh secret set '], 'gh secret set', '(?:-b|--body=?) ?'],
  [['xfreerdp', 'wlfreerdp', 'sdl-freerdp', 'cmdkey '], '(?:(?:x|wl|sdl-)freerdp3?|cmdkey)', '/p(?:ass)?:'],
  [['net use '], 'net use', String.raw`/u(?:ser)?:[^\s"']{1,64} (?![/*])`],
  [['openssl'], 'openssl', '-pass(?:in|out)? pass:'],
]

const isMixedPassword: Judge = (value) => isMixed(value) && !isPlaceholder(value)

/** Commands that read a password from their standard input. */
const readsPassword = String.raw`(?:sudo\s[^\n|;<]{0,60}?-\w{0,4}S(?!\w)|-stdin(?!\w)|chpasswd|smbpasswd\s[^\n|;<]{0,40}?-\w{0,3}s(?!\w)|passphrase-fd|wrangler (?:pages )?secret put(?!\w)|gh secret set(?!\w)|(?:docker|podman) secret create(?!\w)|gcloud secrets (?:create|versions add)(?!\w))`
const writtenBefore = new RegExp(
  String.raw`(?:echo|printf)(?: -[neE]{1,3})?\s{1,3}(?:\\{0,3}["']?%s(?:\\{1,4}n)?\\{0,3}["']?\s{1,3})?${argument}\\{0,3}["']?\s{0,4}\|[^\n|;]{0,120}$`,
  'd',
)
const writtenAfter = new RegExp(String.raw`${readsPassword}[^\n|;<]{0,100}(?:<<<\s{0,3}${argument})?`, 'dy')
const maxCommandCharacters = 400
/** Value such as `true` or `admin`. */
const shortWord = /^(?:.{1,3}|[a-z]{4,5})$/
const pathOrUrl = /^(?:[.~]{0,2}\/|\w+:\/\/)/
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

/** Arguments of a command that stores settings, up to the end of its line. */
const storedSettings =
  /(?:(secrets set|vault kv (?:put|patch)|create secret)|config:set) ((?:[^\n\\]|\\(?!n)\n?){1,8000})/y
const setting = new RegExp(
  String.raw`(?<=^|[\s"'])(?:--from-literal[= ]["']?)?\w[\w.-]{0,59}=(?!@)${createArgument(4_000)}`,
  'dg',
)

/** Finds the values of `vault kv put path name=value`, and random ones among the settings of an application. */
function findSettings(text: string, at: number): readonly SecretMatch[] | RangeMatches {
  storedSettings.lastIndex = at
  const match = storedSettings.exec(text)
  if (match === null) return noMatches
  const [, isSecretStore, settings = ''] = match
  const from = storedSettings.lastIndex - settings.length
  const matches = [...settings.matchAll(setting)].flatMap(({ 1: value = '', indices }): readonly SecretMatch[] => {
    const [start, end] = indices?.[1] ?? [0, 0]
    const isSecret = isSecretStore === undefined ? isGenerated(value) : !shortWord.test(value)
    return isSecret && !isPlaceholder(value) && !pathOrUrl.test(value)
      ? [{ kind: 'key', start: from + start, end: from + end }]
      : []
  })
  return { matches, reached: from + settings.length }
}

/** String in a call, with quotes that may be escaped. */
const string = String.raw`\\{0,3}["']((?:[^\s"'\\⟨]|\\(?!\\{0,2}["'])){4,200})(?=\\{0,3}["'])`
const firstArgument = String.raw`\(\s{0,8}(?:\\{0,3}["'][^\s"'\\⟨]{1,80}\\{0,3}["']|[\w.$]{1,60}),(?:\s|\\n){0,12}`

/** Finds secrets in the arguments of commands and calls, and on their standard input. */
export const commandRules: readonly SecretRule[] = [
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
    triggers: [
      ...['sudo ', '-stdin', 'chpasswd', 'smbpasswd', 'passphrase-fd'],
      ...['wrangler ', 'gh secret set', 'docker secret create', 'podman secret create', 'gcloud secrets '],
    ],
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
    'keytool',
    'password',
    ['storepass', 'keypass'],
    new RegExp(String.raw`(?<=-(?:src|dest|new)?)(?:store|key)pass(?: |${element}(?=\\{0,3}["']))${argument}`),
    isGiven,
  ),
  createRule(
    'net use, net user',
    'password',
    ['net use'],
    new RegExp(
      String.raw`net use(?: (?:\S{1,3} )?\\{2,8}[^\s"']{1,100}|r [^\s"'/]{1,64}) (?![/*])${argument}(?=["']? /[uad])`,
      'i',
    ),
    isGiven,
  ),
  {
    name: 'stored settings',
    triggers: ['secrets set ', 'vault kv ', 'create secret ', 'config:set '],
    find: findSettings,
  },
  createRule(
    'Vault login',
    'token',
    ['vault login '],
    /vault login (?:-[\w-]{1,30} ){0,3}["']?([\w.-]{8,200})(?![\w=.-])/,
    (value) => /^s\.\w{20}/.test(value) || isGenerated(value),
  ),
  createRule(
    'arguments of a call',
    'password',
    ['auth=(', 'auth = (', 'basicauth(', 'digestauth(', '.login(', 'networkcredential(', 'passwordcredentials('],
    new RegExp(String.raw`[.\w= ]{5,25}${firstArgument}${string}`, 'i'),
    (value) => isPassword(value, 'assigned', true, false) && !isPlaceholder(value),
  ),
]
