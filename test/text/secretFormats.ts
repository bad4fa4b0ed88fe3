import type { SecretKind } from '../../src/text/secrets.ts'

/** A secret of one kind, and the text it is usually found in. None is real: they are made here, so that no file holds anything that looks like one. */
export type Format = {
  readonly name: string
  readonly kind: SecretKind
  readonly secret: string
  readonly text: string
}

/** The same numbers every time (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const random = seeded(8)
const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const digit = '0123456789'
const lower = upper.toLowerCase()
const letters = upper + lower + digit
const joined = `${letters}_-`
const some = (alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet.charAt(Math.floor(random() * alphabet.length))).join('')
const word = (length: number): string => some(letters, length)
// Neither begins nor ends with a joiner: where a sentence puts it, it could not be told from a dash.
const url = (length: number): string => `${some(letters, 1)}${some(joined, length - 2)}${some(letters, 1)}`
const hex = (length: number): string => some('0123456789abcdef', length)
const uuid = (): string => [8, 4, 4, 4, 12].map(hex).join('-')
const base64 = (text: string): string => btoa(text).replace(/=+$/, '')

const known = (kind: SecretKind, name: string, ...pieces: readonly string[]) => ({
  kind,
  name,
  secret: pieces.join(''),
})

/** Known by how they look, wherever they stand. */
export const shapes = [
  known('key', 'OpenAI', 'sk', '-', word(48)),
  known('key', 'OpenAI project', 'sk', '-proj-', url(124)),
  known('key', 'OpenAI service account', 'sk', '-svcacct-', url(124)),
  known('key', 'Anthropic', 'sk', '-ant-api03-', url(93), 'AA'),
  known('key', 'OpenRouter', 'sk', '-or-v1-', hex(64)),
  known('key', 'AWS access key id', 'AK', 'IA', some(upper + digit, 16)),
  known('key', 'AWS temporary key id', 'AS', 'IA', some(upper, 16)),
  known('key', 'Google API', 'AI', 'za', url(35)),
  known('key', 'Google client secret', 'GOC', 'SPX-', url(28)),
  known('token', 'Google access', 'ya', '29.', url(120)),
  known('token', 'Google refresh', '1/', '/0', url(60)),
  known('token', 'GitHub personal', 'gh', 'p_', word(36)),
  known('token', 'GitHub OAuth', 'gh', 'o_', word(36)),
  known('token', 'GitHub user', 'gh', 'u_', word(36)),
  known('token', 'GitHub server', 'gh', 's_', word(36)),
  known('token', 'GitHub refresh', 'gh', 'r_', word(36)),
  known('token', 'GitHub fine-grained', 'github', '_pat_', word(22), '_', word(59)),
  known('token', 'GitLab', 'gl', 'pat-', url(20)),
  known('token', 'Slack bot', 'xo', 'xb-', some(digit, 12), '-', some(digit, 13), '-', word(24)),
  known('token', 'Slack user', 'xo', 'xp-', some(digit, 12), '-', some(digit, 12), '-', some(digit, 13), '-', hex(32)),
  known('token', 'Slack app', 'xa', 'pp-1-A', some(upper + digit, 10), '-', some(digit, 13), '-', hex(64)),
  known('key', 'Stripe', 'sk', '_live_', word(24)),
  known('key', 'Stripe restricted', 'rk', '_live_', word(24)),
  known('key', 'Stripe webhook', 'wh', 'sec_', word(32)),
  known('key', 'Twilio', 'S', 'K', hex(32)),
  known('key', 'SendGrid', 'S', 'G.', url(22), '.', url(43)),
  known('key', 'Mailgun', 'ke', 'y-', hex(32)),
  known('key', 'Mailchimp', hex(32), '-u', 's14'),
  known('token', 'npm', 'np', 'm_', word(36)),
  known('token', 'PyPI', 'py', 'pi-', 'AgEIcHlwaS5vcmc', url(140)),
  known('key', 'Hugging Face', 'h', 'f_', word(34)),
  known('key', 'Replicate', 'r', '8_', word(37)),
  known('key', 'Groq', 'gs', 'k_', word(52)),
  known('key', 'xAI', 'xa', 'i-', word(80)),
  known('key', 'Perplexity', 'pp', 'lx-', word(48)),
  known('token', 'Discord bot', base64(`10${some(digit, 16)}`), '.G', word(5), '.', url(38)),
  known('token', 'Telegram bot', `7${some(digit, 9)}`, ':A', 'A', url(33)),
  known('token', 'DigitalOcean', 'do', 'p_v1_', hex(64)),
  known('token', 'Shopify', 'shp', 'at_', hex(32)),
  known('token', 'Square OAuth secret', 'sq', '0csp-', url(43)),
  known('token', 'Square access', 'EA', 'AA', url(60)),
  known('key', 'Databricks', 'da', 'pi', hex(32)),
  known('key', 'Azure client secret', word(3), '8', 'Q~', url(34)),
  known('token', 'Heroku', 'HR', 'KU-', uuid()),
  known('key', 'Linear', 'lin', '_api_', word(40)),
  known('key', 'Notion', 'sec', 'ret_', word(43)),
  known('key', 'Notion integration', 'nt', 'n_', word(46)),
  known('key', 'Figma', 'fi', 'gd_', url(40)),
  known('token', 'Airtable', 'pa', 't', word(14), '.', hex(64)),
  known('token', 'Atlassian', 'AT', 'ATT3x', url(180), '=', some('0123456789ABCDEF', 8)),
  known('key', 'Postman', 'PM', 'AK-', hex(24), '-', hex(34)),
  known('key', 'New Relic', 'NR', 'AK-', some(upper + digit, 27)),
  known('token', 'Grafana service account', 'gl', 'sa_', word(32), '_', hex(8)),
  known('token', 'Grafana cloud', 'gl', 'c_', word(80)),
  known('token', 'Vault', 'hv', 's.', url(90)),
  known('token', 'Doppler', 'dp', '.pt.', word(43)),
  known('token', 'PlanetScale', 'pscale', '_tkn_', url(43)),
  known('token', 'Supabase', 'sb', 'p_', hex(40)),
  known('token', 'Fly', 'fo', '1_', url(43)),
  known('key', 'age', 'AGE-SECRET', '-KEY-1', some('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)),
  known('key', 'Resend', 're', '_', word(8), '_', word(24)),
  known('key', 'NVIDIA', 'nv', 'api-', url(64)),
  known('key', 'Brevo', 'xkey', 'sib-', hex(64), '-', word(16)),
  known('key', 'Supabase secret', 'sb', '_secret_', url(31)),
  known('key', 'Pinecone', 'pc', 'sk_', word(5), '_', word(60)),
  known('key', 'LangSmith', 'ls', 'v2_pt_', hex(32), '_', hex(10)),
  known('key', 'PostHog', 'ph', 'x_', word(43)),
  known('key', 'Tavily', 'tv', 'ly-dev-', word(32)),
  known('token', 'Docker', 'dckr', '_pat_', url(27)),
  known('token', 'RubyGems', 'ruby', 'gems_', hex(48)),
  known('token', 'Sentry', 'sn', 'tryu_', hex(64)),
  known('token', 'Tailscale', 'ts', 'key-auth-', word(17), '-', word(32)),
  known('token', 'Pulumi', 'pu', 'l-', hex(40)),
  known('token', 'Fly machines', 'fm', '2_', some(`${letters}+/`, 60), word(2), '='),
  known(
    'token',
    'JWT',
    base64('{"alg":"HS256","typ":"JWT"}'),
    '.',
    base64(`{"sub":"${some(digit, 10)}","name":"Ann"}`),
    '.',
    url(43),
  ),
]

const within = (kind: SecretKind, name: string, before: string, secret: string, after = ''): Format => ({
  kind,
  name,
  secret,
  text: before + secret + after,
})
const pem = (of: string, body: string, end = true): string =>
  `-----BEGIN ${of}-----\n${body}${end ? `\n-----END ${of}-----` : ''}`
const lines = (count: number): string => Array.from({ length: count }, () => some(`${letters}+/`, 64)).join('\n')

/** Known by what stands around them. */
export const contexts: readonly Format[] = [
  within('key', 'AWS secret access key', 'aws_secret_access_key = ', some(`${letters}+/`, 40)),
  within('key', 'AWS secret in JSON', '{"SecretAccessKey": "', some(`${letters}+/`, 40), '"}'),
  within(
    'pem',
    'GCP service account',
    '{"type": "service_account", "private_key": "',
    pem('PRIVATE KEY', lines(12)).replaceAll('\n', '\\n'),
    '\\n", "client_id": "1"}',
  ),
  within('pem', 'RSA key', 'The file says:\n', pem('RSA PRIVATE KEY', lines(12))),
  within('pem', 'EC key', '', pem('EC PRIVATE KEY', lines(3)), '\nIs it right?'),
  within('pem', 'SSH key', '$ cat ~/.ssh/id_ed25519\n', pem('OPENSSH PRIVATE KEY', lines(5)), '\n'),
  within('pem', 'PGP key', '', pem('PGP PRIVATE KEY BLOCK', `Version: GnuPG v2\n\n${lines(8)}\n=${word(4)}`)),
  within(
    'pem',
    'encrypted key',
    '',
    pem('RSA PRIVATE KEY', `Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,${hex(32).toUpperCase()}\n\n${lines(8)}`),
  ),
  within(
    'pem',
    'key that was cut off',
    'Here: ',
    pem('RSA PRIVATE KEY', `${lines(4)}\n${word(11)}`, false),
    '\n\nCan you see what is wrong with it?',
  ),
  within(
    'token',
    'Slack webhook',
    'curl https://hooks.slack.com/services/',
    `T${some(upper, 8)}/B${some(upper, 8)}/${word(24)}`,
    ' -d x',
  ),
  within('token', 'Discord webhook', `https://discord.com/api/webhooks/${some(digit, 18)}/`, url(68)),
  within('token', 'Telegram address', 'https://api.telegram.org/bot', `7${some(digit, 8)}:A${'A'}${url(33)}`, '/getMe'),
  within(
    'token',
    'Azure storage',
    'AccountName=a;AccountKey=',
    `${some(`${letters}+/`, 86)}==`,
    ';EndpointSuffix=core.windows.net',
  ),
  within('token', 'Azure SAS', 'https://a.blob.core.windows.net/b?sv=2024&sig=', `${word(43)}%3D`, '&se=2026'),
  within('key', 'Azure secret', 'AZURE_CLIENT_SECRET=', url(40)),
  within('token', 'Cloudflare', 'CLOUDFLARE_API_TOKEN=', url(40)),
  within('key', 'Heroku', 'HEROKU_API_KEY=', uuid()),
  within('token', 'bearer', 'Authorization: Bearer ', word(32)),
  within('token', 'bearer alone', "headers.set('x', 'Bearer ", word(32), "')"),
  within('token', 'basic', 'Authorization: Basic ', btoa(`ann:${word(9)}`)),
  within('token', 'Set-Cookie', 'Set-Cookie: connect.sid=', `s%3A${word(32)}`, '; Path=/; HttpOnly'),
  within('token', 'Cookie', 'Cookie: theme=dark; session_id=', `a1${word(8)}`, '; lang=en'),
  within('connection', 'basic auth in a URL', 'git clone https://ann:', word(12), '@example.com/a.git'),
  ...['postgres', 'mysql', 'mongodb+srv', 'redis', 'amqp'].map((scheme) =>
    within('connection', scheme, `${scheme}://${scheme === 'redis' ? '' : 'app'}:`, `p@${word(9)}!`, '@db.local:1/x'),
  ),
  within('password', 'ADO', 'Server=db;User Id=sa;Password=', `a;b${word(8)}`, ';Database=x'),
  within('password', 'ADO, short', 'Server=db;Uid=sa;Pwd=', `${word(8)}9`, ';'),
  within('password', 'curl, in full', 'curl --user ann:', `q${word(8)}`, ' https://example.com'),
  within('password', 'curl', 'curl -s -u ann:', `q${word(8)}`, ' https://example.com'),
  within('password', '.env', 'DB_PASSWORD=', `sw${some(lower, 7)}`),
  within('password', '.env, quoted', 'export PASSWORD="', `a ${word(8)}#`, '"'),
  within('password', 'JSON', '{"user": "ann", "password": "', some(lower, 9), '"}'),
  within('password', 'YAML', 'db:\n  password: ', `${word(7)}7`),
  within('password', 'code', "const dbPassword: string = '", `${word(7)}7`, "'"),
  within('password', 'XML', '<password>', `${word(7)}7`, '</password>'),
  within('password', 'SQL', "CREATE USER ann IDENTIFIED BY '", `${word(7)}7`, "';"),
  within('password', 'a flag', 'mysqldump --password=', `${word(7)}7`, ' --all-databases'),
  within('password', "an entry of a container's environment", '- name: DB_PASSWORD\n  value: ', `${word(7)}7`),
  within('key', 'api_key', 'api_key = "', hex(24), '"'),
  within('key', 'client_secret', 'client_secret: ', hex(32)),
  within('key', 'a header', 'X-Api-Key: ', hex(32)),
  within('token', 'a parameter', 'GET /a?access_token=', word(30), '&page=2'),
  within('password', 'passphrase', 'passphrase: "', 'violet kettle orbit', '"'),
]

/** Said by a person. */
export const sayings: readonly Format[] = [
  within('password', 'my password', 'Hi! My password is ', 'hunter2', ', can you log in?'),
  within('password', 'a word', 'the password is ', 'swordfish', '.'),
  within('password', 'the pass', 'the pass is ', 'Tr0ub4dor&3', '\nthanks'),
  within('password', 'for the wifi', 'The password for the guest wifi is ', 'bluebird', '.'),
  within('password', 'quoted', 'The password was “', 'Bluebird', '”, I think'),
  within('password', 'with', 'use ann with password ', 'k1tten99', ' please'),
  within('password', 'to', 'I changed my password to ', 'k1tten99!', ' yesterday'),
  within('password', 'a login', 'log in with admin / ', 's3cret!'),
  within('password', 'German', 'Mein Passwort ist ', 'geheim77', '.'),
  within('password', 'Spanish', 'mi contraseña es ', 'gato1234', ' ok'),
  within('password', 'Chinese', '我的密码是', 'mima2024', '。'),
  within('password', 'PIN', 'my PIN is ', '4821', '.'),
  within('password', 'PIN of a card', 'the PIN for my bank card is ', '4821', ', remember it'),
  within('password', 'one-time code', 'your one-time code is ', '482913'),
  within('password', 'a code first', '', '482913', ' is your Example login code'),
  within('password', 'passphrase', 'my passphrase is ', 'correct horse battery staple', '.'),
  within('key', 'API key', 'the api key is ', `9${hex(24)}`, ' for now'),
  within(
    'key',
    'seed phrase',
    'My seed phrase is: ',
    'abandon ability able about above absent absorb abstract absurd abuse access acid',
    '.',
  ),
  within(
    'key',
    'seed phrase in a list',
    'recovery words:\n',
    `1. ${'zebra wolf vivid urban tiger solar rabbit quiz panda ocean noble mango'
      .split(' ')
      .map((one, at) => (at === 0 ? one : `${at + 1}. ${one}`))
      .join(' ')}`,
  ),
]

/** Numbers of cards that their issuers publish for tests. */
export const cards: readonly Format[] = [
  ['Visa', `4${'1'.repeat(15)}`],
  ['Visa in groups', `4${'242 4242 '}4242 4242`],
  ['Visa of 13 digits, said to be one', `4${'222222222222'}`],
  ['Mastercard with dashes', `5${'555-5555-5555'}-4444`],
  ['Mastercard, second series', `2${'223 0031 2200'} 3222`],
  ['American Express', `3${'782 822463 '}10005`],
  ['Diners Club', `3${'056 930902 '}5904`],
  ['Discover', `6${'0111111111111'}17`],
  ['JCB', `3${'530 1113 3330'} 0000`],
  ['UnionPay of 19 digits', `6${'205 5000 0000 0000'} 004`],
].map(([name = '', secret = '']) => within('card', name, 'Pay with my card ', secret, ' please'))
