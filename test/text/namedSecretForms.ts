import { commandForms } from './commandSecretForms.ts'
import { listedForms } from './listedSecretForms.ts'
import {
  base64,
  digit,
  form,
  hex,
  keyForms,
  lower,
  password,
  quotedPassword,
  type RandomSource,
  type SecretForm,
  type Surroundings,
  shellPassword,
  stated,
  symbols,
  upper,
  url,
  urlPassword,
  uuid,
  word,
} from './secretForms.ts'

/** Places of a value behind a name in lower case with underscores, in the usual syntaxes. */
function assigned(name: string): readonly Surroundings[] {
  const camel = name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())
  return [
    [`${name} = `, '\nregion = eu-west-1'],
    [`${name.toUpperCase()}=`, ''],
    [`export ${name.toUpperCase()}="`, '"\n'],
    [`{"${camel}": "`, '", "n": 1}'],
    [`{\\"${name}\\":\\"`, '\\",\\"n\\":1}'],
    [`db:\n  ${name}: `, '\n  port: 1'],
    [`const ${camel} = '`, "'"],
    [`${camel}: "`, '",'],
    [`-e ${name.toUpperCase()}=`, ' image:latest'],
    [`the ${name.replaceAll('_', ' ')} is `, ', keep it safe'],
    [`${name.toUpperCase()}: `, '\n'],
  ]
}
const named = (name: string, of: string, create: (random: RandomSource) => string): SecretForm =>
  form(name, create, assigned(of))

const pin = ({ text }: RandomSource): string => text(digit, [4, 6])

const networks: readonly (readonly [name: string, prefixes: readonly string[], lengths: readonly number[]])[] = [
  ['Visa', ['4'], [16, 19, 13]],
  ['Mastercard', ['51', '52', '53', '54', '55', '2221', '23', '24', '25', '26', '270', '271', '2720'], [16]],
  ['American Express', ['34', '37'], [15]],
  ['Diners Club', ['300', '301', '302', '303', '304', '305', '3095', '36', '38', '39'], [14]],
  ['Discover', ['6011', '644', '645', '646', '647', '648', '649', '65'], [16, 19]],
  ['JCB', ['3528', '3529', '353', '354', '355', '356', '357', '358'], [16, 19]],
  ['UnionPay', ['62'], [16, 17, 18, 19]],
  ['Maestro', ['5018', '5020', '5038', '5893', '6304', '6759', '6761', '6762', '6763'], [12, 13, 16, 19]],
  ['Mir', ['2200', '2201', '2202', '2203', '2204'], [16]],
]
const groups: Readonly<Record<number, readonly number[]>> = {
  12: [12],
  13: [4, 4, 4, 1],
  14: [4, 6, 4],
  15: [4, 6, 5],
  16: [4, 4, 4, 4],
  17: [4, 4, 4, 4, 1],
  18: [4, 4, 4, 4, 2],
  19: [4, 4, 4, 4, 3],
}
const separators = [
  '',
  '',
  ' ',
  ' ',
  '-',
  '\u00a0',
  '\u2009',
  '\u202f',
  '\u2007',
  '  ',
  '.',
  '\n',
  '–',
  '\u2011',
  '\u3000',
]

const luhnSum = (digits: string): number =>
  [...digits].reverse().reduce((sum, character, index) => {
    const product = Number(character) * (index % 2 === 0 ? 1 : 2)
    return sum + (product > 9 ? product - 9 : product)
  }, 0)

function cardNumber({ pick, text }: RandomSource, [, prefixes, lengths]: (typeof networks)[number]): string {
  const length = pick(lengths)
  const prefix = pick(prefixes)
  const body = prefix + text(digit, length - 1 - prefix.length)
  const digits = `${body}${(10 - (luhnSum(`${body}0`) % 10)) % 10}`
  const separator = pick(separators)
  const sizes = groups[length] ?? [length]
  const starts = sizes.map((_, index) => sizes.slice(0, index).reduce((sum, size) => sum + size, 0))
  return starts.map((start, index) => digits.slice(start, start + (sizes[index] ?? 0))).join(separator)
}
const nearCard: readonly Surroundings[] = [
  ['Pay with my card ', ' please'],
  ['card number: ', ''],
  ['{"cardNumber": "', '"}'],
  ['My Visa is ', ', valid until 12/29.'],
  ['Kreditkarte: ', '.'],
  ['Here is my credit card:\n', '\nThanks'],
]

/** Words as in a seed phrase; none is a function word. */
const seedWords =
  'abandon ability able about above absent absorb abstract absurd abuse access accident account accuse achieve acid acoustic acquire across act action actor actress actual adapt add addict address adjust admit zebra wolf vivid urban tiger solar rabbit quiz panda ocean noble mango lunar kitten jungle island hockey garden fabric eagle dragon cactus banana wine zoo'.split(
    ' ',
  )
const phrase = ({ pick }: RandomSource, count: number, separator: string): string =>
  Array.from({ length: count }, () => pick(seedWords)).join(separator)

const pemLines = ({ text, below }: RandomSource): string =>
  [...Array.from({ length: 1 + below(12) }, () => text(base64, 64)), text(base64, [1, 64])].join('\n')
const pem = (random: RandomSource): string => {
  const kind = random.pick([
    'PRIVATE KEY',
    'RSA PRIVATE KEY',
    'EC PRIVATE KEY',
    'DSA PRIVATE KEY',
    'ENCRYPTED PRIVATE KEY',
  ])
  return `-----BEGIN ${kind}-----\n${pemLines(random)}==\n-----END ${kind}-----`
}
const sshKey = (random: RandomSource): string =>
  `-----BEGIN OPENSSH ${'PRIVATE'} KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA${pemLines(random)}\n-----END OPENSSH ${'PRIVATE'} KEY-----`

const database: readonly Surroundings[] = [
  ['postgres://app:', '@db.local:5432/x'],
  ['DATABASE_URL=postgresql://app:', '@db.local/x?sslmode=require'],
  ['{"uri":"mongodb+srv://app:', '@cluster0.example.net/x"}'],
  ['mongodb://app:', '@a.example.net:27017,b.example.net:27017/x'],
  ['redis://:', '@cache:6379/0'],
  ['amqp://guest:', '@mq:5672/%2f'],
  ['mysql://root:', '@127.0.0.1/app'],
  ['"sqlserver://sa:', '@host:1433?database=x"'],
]

/** Secrets recognised by their name, place or wording. */
const placedForms: readonly SecretForm[] = [
  named('AWS secret access key', 'aws_secret_access_key', ({ text }) => text(base64, 40)),
  named('AWS session token', 'aws_session_token', ({ text }) => `${text(base64, [200, 900])}==`),
  named('Cloudflare', 'cloudflare_api_token', ({ text }) => text(url, 40)),
  named('Cloudflare global', 'cloudflare_api_key', ({ text }) => text(hex, 37)),
  named('Heroku, named', 'heroku_api_key', uuid),
  named('Twilio auth token', 'twilio_auth_token', ({ text }) => text(hex, 32)),
  named('Vercel, named', 'vercel_token', ({ text }) => text(word, 24)),
  named('Netlify, named', 'netlify_auth_token', ({ text }) => text(url, [40, 46])),
  named('Datadog', 'datadog_api_key', ({ text }) => text(hex, 32)),
  named('Algolia', 'algolia_admin_api_key', ({ text }) => text(hex, 32)),
  named('client secret', 'client_secret', ({ text }) => text(word, [24, 64])),
  named('Azure client secret, named', 'azure_client_secret', ({ text }) =>
    text(`${word}~._-`, 40).replace(/[.-]$/, 'a'),
  ),
  form('Azure shared access key', ({ text }) => `${text(base64, 43)}=`, [
    ['Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=', ''],
    ['HostName=a.azure-devices.net;SharedAccessKey=', ';EntityPath=b'],
    ['"Endpoint=sb://a/;SharedAccessKey=', '"'],
  ]),
  form('Azure storage key', ({ text }) => `${text(base64, 86)}==`, [
    ['DefaultEndpointsProtocol=https;AccountName=a;AccountKey=', ';EndpointSuffix=core.windows.net'],
    ['AccountKey=', ''],
    ["'AccountName=a;AccountKey=", "'"],
  ]),
  form(
    'Azure shared access signature',
    ({ text }) => `${text(base64, 43).replaceAll('+', '%2B').replaceAll('/', '%2F')}%3D`,
    [
      ['https://a.blob.core.windows.net/b?sv=2024&sig=', '&se=2026'],
      ['?sv=2024-01-01&sr=b&sig=', ''],
      ['SharedAccessSignature=sv=2024&sr=c&sig=', '; next'],
    ],
  ),
  form(
    'Slack webhook',
    ({ text }) => `T${text(upper + digit, [8, 10])}/B${text(upper + digit, [8, 11])}/${text(word, 24)}`,
    [
      ['https://hooks.slack.com/services/', ''],
      ['curl https://hooks.slack.com/services/', ' -d x'],
      ['{"url":"https://hooks.slack.com/services/', '"}'],
    ],
  ),
  form('Discord webhook', ({ text }) => text(url, 68), [
    ['https://discord.com/api/webhooks/123456789012345678/', ''],
    ['"https://discordapp.com/api/webhooks/1234567890123456789/', '"'],
  ]),
  form('PEM', pem, [
    ['', ''],
    ['The file says:\n', '\nIs it right?'],
    ['```\n', '\n```'],
    ['key: |\n', '\n'],
  ]),
  form('PEM in JSON', (random) => pem(random).replaceAll('\n', '\\n'), [
    ['{"type": "service_account", "private_key": "', '\\n", "client_id": "1"}'],
    ['KEY="', '"'],
  ]),
  form('SSH key', sshKey, [
    ['$ cat ~/.ssh/id_ed25519\n', '\n'],
    ['', ''],
    ['<key>', '</key>'],
  ]),
  form('bearer', ({ text }) => text(`${word}-._~+/`, [20, 80]).replace(/[-.~+/]$/, 'a'), [
    ['Authorization: Bearer ', ''],
    ["headers: { Authorization: 'Bearer ", "' }"],
    ['{"authorization":"Bearer ', '"}'],
    ['curl -H "Authorization: Bearer ', '" https://example.org'],
    ['Authorization: token ', '\r\n'],
  ]),
  form('basic', ({ text }) => btoa(`${text(lower, [3, 12])}:${text(word, [6, 20])}`), [
    ['Authorization: Basic ', ''],
    ['"Authorization": "Basic ', '",'],
    ["-H 'Authorization: Basic ", "'"],
  ]),
  form('cookie', ({ text }) => text(`${word}%._-`, [24, 80]).replace(/^[%._-]/, 'a'), [
    ['Set-Cookie: connect.sid=', '; Path=/; HttpOnly'],
    ['Cookie: theme=dark; session_id=', '; lang=en'],
    ['cookie: _ga=GA1.2; sessionid=', ''],
    ['{"Cookie":"auth_token=', '; a=b"}'],
    ["curl --cookie 'PHPSESSID=", "' https://example.org"],
  ]),
  form('URL with a password', urlPassword, [
    ['git clone https://ann:', '@example.com/a.git'],
    ['https://ann:', '@example.com/'],
    ['ftp://ann:', '@files.example.com'],
    ['HTTPS_PROXY=http://user:', '@proxy:3128'],
  ]),
  form('connection string', urlPassword, database),
  form('JDBC', ({ text }) => text(word, 1) + text(`${word}!*+._~-`, [6, 20]) + text(digit, 1), [
    ['jdbc:postgresql://db/x?user=app&password=', ''],
    ['jdbc:mysql://db/x?user=app&password=', '&useSSL=true'],
    ['jdbc:sqlserver://db;databaseName=x;user=sa;password=', ';encrypt=true'],
    ['jdbc:oracle:thin:scott/', '@//db:1521/x'],
    ['url=jdbc:oracle:thin:app/', '@db:1521:orcl'],
    ['sqlplus scott/', '@orcl'],
  ]),
  form('ADO', ({ text }) => text(word, 1) + text(`${word}!@#$%^*-_+`, [6, 20]) + text(digit, 1), [
    ['Server=db;User Id=sa;Password=', ';Database=x'],
    ['"Server=db;Uid=sa;Pwd=', '"'],
    ['Password=', ';Server=db'],
  ]),
  form('command line', shellPassword, [
    ['mysql -u root -p', ' app'],
    ['mysqldump -h db -uroot -p', ' --all-databases'],
    ['sshpass -p ', ' ssh root@10.0.0.1'],
    ["sshpass -p '", "' scp a b:"],
    ['mysqldump --password=', ' x'],
    ['redis-cli -h cache -a ', ' ping'],
    ['docker login -u ann -p ', ' registry.example.org'],
    ['mongosh -u ann -p ', ' --host db'],
    ['sqlcmd -S db -U sa -P ', ' -Q x'],
    ['ldapsearch -D cn=admin -w ', ' -b dc=x'],
    ['curl -s -u ann:', ' https://example.com'],
    ['curl --user "ann:', '" https://example.com'],
    ['openssl rsa -in a.pem -passin pass:', ' -out b.pem'],
    ['7z x -p', ' a.7z'],
  ]),
  form('netrc', ({ text }) => text(`${word}!#*`, 1) + text(word + symbols, [6, 23]), [
    ['machine api.example.org login ann password ', '\n'],
    ['machine example.org\n  login ann\n  password ', '\n'],
    ['machine example.org\tlogin ann\tpassword ', ''],
  ]),
  form('password in a string', quotedPassword, [
    ['{"user": "ann", "password": "', '"}'],
    ["const dbPassword = '", "'"],
    ['password: "', '"\nuser: ann'],
    ['PASSWORD="', '"'],
    ["CREATE USER ann IDENTIFIED BY '", "';"],
    ['{"login":{"passwd":"', '","n":1}}'],
    ['conn = connect(user="ann", password="', '")'],
  ]),
  form('password in a setting', password, [
    ['DB_PASSWORD=', ''],
    ['export DB_PASS=', '\n'],
    ['db:\n  password: ', '\n  user: ann'],
    ['password = ', '\n'],
    ['spring.datasource.password=', '\n'],
    ['--password ', ' --host db'],
  ]),
  stated(
    'password, English',
    ['My password is ', ', can you log in?'],
    ['the password for the guest wifi is ', '.'],
    ['password: ', ' thanks'],
    ['my pw: ', ''],
    ['PW = ', '\n'],
    ['pwd is ', ' ok'],
    ['the pass is ', '\nthanks'],
    ['I changed my password to ', ' yesterday'],
    ['The passcode: ', '.'],
    ['user: ann / pw: ', ''],
  ),
  stated(
    'password, German',
    ['Mein Passwort ist ', '.'],
    ['Das Passwort lautet ', ' glaube ich'],
    ['Passwort: ', ''],
    ['Kennwort: ', '\n'],
  ),
  stated(
    'password, French',
    ['Le mot de passe est ', '.'],
    ['mot de passe : ', ''],
    ['Mon mot de passe : ', ' merci'],
    ['mdp: ', ''],
  ),
  stated('password, Spanish', ['mi contraseña es ', ' ok'], ['Contraseña: ', ''], ['la contraseña del wifi es ', '.']),
  stated('password, Portuguese', ['minha senha é ', '.'], ['Senha: ', '']),
  stated(
    'password, Dutch, Polish, Italian',
    ['Mijn wachtwoord is ', '.'],
    ['Hasło: ', ''],
    ['La parola: ', ''],
    ['la password è ', '.'],
  ),
  stated('password, Russian', ['Пароль: ', ''], ['мой пароль: ', ' спасибо'], ['пароль - ', '']),
  stated('password, Chinese', ['我的密码是', '。'], ['密码：', ''], ['密碼: ', '']),
  stated(
    'password, Japanese, Korean',
    ['パスワードは', 'です'],
    ['パスワード：', ''],
    ['비밀번호: ', ''],
    ['비밀번호는 ', ' 입니다'],
  ),
  form('passphrase', (random) => phrase(random, 3 + random.below(6), random.pick([' ', '-'])), [
    ['my passphrase is ', '.'],
    ['my passphrase is ', '. Which file does it open?'],
    ['passphrase: "', '"'],
    ['The passphrase is ', '\nthanks'],
    ['Passphrase: ', ''],
  ]),
  form('seed phrase', (random) => phrase(random, random.pick([12, 15, 18, 21, 24]), ' '), [
    ['My seed phrase is: ', '.'],
    ['recovery phrase: ', ''],
    ['mnemonic = "', '"'],
    ['The secret recovery phrase is ', '\n'],
    ['seed words:\n', '\n'],
  ]),
  form('PIN', pin, [
    ['PIN ', ''],
    ['my PIN is ', '.'],
    ['PIN: ', ''],
    ['my pin is ', ' ok'],
    ['the PIN for my bank card is ', ', remember it'],
    ['PIN code: ', '\n'],
    ['Meine PIN ist ', '.'],
    ['{"pin": "', '"}'],
    ['my pin ', ' please'],
  ]),
  form('one-time code', ({ text }) => text(digit, [6, 8]), [
    ['your one-time code is ', '.'],
    ['OTP: ', ''],
    ['verification code: ', '\n'],
    ['the 2FA code is ', ' now'],
    ['', ' is your Example login code'],
  ]),
  form('card security code', ({ text }) => text(digit, [3, 4]), [
    ['CVV ', ''],
    ['CVV: ', ''],
    ['cvc ', ', exp 12/29'],
    ['cvv2=', '\n'],
    ['security code ', '.'],
    ['{"cvv": "', '"}'],
    ['CVC is ', '.'],
  ]),
  form(
    'US social security number',
    ({ below }) =>
      `${String(1 + below(665)).padStart(3, '0')}-${String(1 + below(99)).padStart(2, '0')}-${String(1 + below(9_999)).padStart(4, '0')}`,
    [
      ['SSN: ', ''],
      ['My social security number is ', '.'],
      ['', ' is mine'],
      ['{"ssn":"', '"}'],
      ['ssn ', ' ok'],
    ],
  ),
  form(
    'US social security number, spaced',
    ({ pick, below }) => {
      const gap = pick([' ', ''])
      return `${String(1 + below(665)).padStart(3, '0')}${gap}${String(1 + below(99)).padStart(2, '0')}${gap}${String(1 + below(9_999)).padStart(4, '0')}`
    },
    [
      ['SSN: ', ''],
      ['my social security number is ', '.'],
      ['social security no. ', ''],
    ],
  ),
  ...networks.map((network) => form(`card, ${network[0]}`, (random) => cardNumber(random, network), nearCard)),
]

/** All forms, each found in at least 99.99 % of its values. */
export const secretForms: readonly SecretForm[] = [...keyForms, ...placedForms, ...listedForms, ...commandForms]
