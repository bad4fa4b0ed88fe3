import type { SecretKind } from '../../src/text/secrets/rule.ts'

/** Secret of one kind in its usual surroundings. None is real: they are generated, so that no file contains text that looks like a secret. */
export type SecretFormat = {
  readonly name: string
  readonly kind: SecretKind
  readonly secret: string
  readonly text: string
}

/** Creates a deterministic random number generator (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

const random = createRandom(8)
const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
const digit = '0123456789'
const lower = upper.toLowerCase()
const letters = upper + lower + digit
const lettersAndJoiners = `${letters}_-`
const randomText = (alphabet: string, length: number): string =>
  Array.from({ length }, () => alphabet.charAt(Math.floor(random() * alphabet.length))).join('')
const word = (length: number): string => randomText(letters, length)
// Neither begins nor ends with a joiner, which in a sentence could be a dash.
const url = (length: number): string =>
  `${randomText(letters, 1)}${randomText(lettersAndJoiners, length - 2)}${randomText(letters, 1)}`
const hex = (length: number): string => randomText('0123456789abcdef', length)
const uuid = (): string => [8, 4, 4, 4, 12].map(hex).join('-')
const base64 = (text: string): string => btoa(text).replace(/=+$/, '')

const createKey = (kind: SecretKind, name: string, ...pieces: readonly string[]) => ({
  kind,
  name,
  secret: pieces.join(''),
})

/** Secrets of known formats. */
export const keyFormats = [
  createKey('key', 'OpenAI', 'sk', '-', word(48)),
  createKey('key', 'OpenAI project', 'sk', '-proj-', url(124)),
  createKey('key', 'OpenAI service account', 'sk', '-svcacct-', url(124)),
  createKey('key', 'Anthropic', 'sk', '-ant-api03-', url(93), 'AA'),
  createKey('key', 'OpenRouter', 'sk', '-or-v1-', hex(64)),
  createKey('key', 'AWS access key id', 'AK', 'IA', randomText(upper + digit, 16)),
  createKey('key', 'AWS temporary key id', 'AS', 'IA', randomText(upper, 16)),
  createKey('key', 'Google API', 'AI', 'za', url(35)),
  createKey('key', 'Google client secret', 'GOC', 'SPX-', url(28)),
  createKey('token', 'Google access', 'ya', '29.', url(120)),
  createKey('token', 'Google refresh', '1/', '/0', url(60)),
  createKey('token', 'GitHub personal', 'gh', 'p_', word(36)),
  createKey('token', 'GitHub OAuth', 'gh', 'o_', word(36)),
  createKey('token', 'GitHub user', 'gh', 'u_', word(36)),
  createKey('token', 'GitHub server', 'gh', 's_', word(36)),
  createKey('token', 'GitHub refresh', 'gh', 'r_', word(36)),
  createKey('token', 'GitHub fine-grained', 'github', '_pat_', word(22), '_', word(59)),
  createKey('token', 'GitLab', 'gl', 'pat-', url(20)),
  createKey('token', 'Slack bot', 'xo', 'xb-', randomText(digit, 12), '-', randomText(digit, 13), '-', word(24)),
  createKey(
    'token',
    'Slack user',
    'xo',
    'xp-',
    randomText(digit, 12),
    '-',
    randomText(digit, 12),
    '-',
    randomText(digit, 13),
    '-',
    hex(32),
  ),
  createKey(
    'token',
    'Slack app',
    'xa',
    'pp-1-A',
    randomText(upper + digit, 10),
    '-',
    randomText(digit, 13),
    '-',
    hex(64),
  ),
  createKey('key', 'Stripe', 'sk', '_live_', word(24)),
  createKey('key', 'Stripe restricted', 'rk', '_live_', word(24)),
  createKey('key', 'Stripe webhook', 'wh', 'sec_', word(32)),
  createKey('key', 'Twilio', 'S', 'K', hex(32)),
  createKey('key', 'SendGrid', 'S', 'G.', url(22), '.', url(43)),
  createKey('key', 'Mailgun', 'ke', 'y-', hex(32)),
  createKey('key', 'Mailchimp', hex(32), '-u', 's14'),
  createKey('token', 'npm', 'np', 'm_', word(36)),
  createKey('token', 'PyPI', 'py', 'pi-', 'AgEIcHlwaS5vcmc', url(140)),
  createKey('key', 'Hugging Face', 'h', 'f_', word(34)),
  createKey('key', 'Replicate', 'r', '8_', word(37)),
  createKey('key', 'Groq', 'gs', 'k_', word(52)),
  createKey('key', 'xAI', 'xa', 'i-', word(80)),
  createKey('key', 'Perplexity', 'pp', 'lx-', word(48)),
  createKey('token', 'Discord bot', base64(`10${randomText(digit, 16)}`), '.G', word(5), '.', url(38)),
  createKey('token', 'Telegram bot', `7${randomText(digit, 9)}`, ':A', 'A', url(33)),
  createKey('token', 'DigitalOcean', 'do', 'p_v1_', hex(64)),
  createKey('token', 'Shopify', 'shp', 'at_', hex(32)),
  createKey('token', 'Square OAuth secret', 'sq', '0csp-', url(43)),
  createKey('token', 'Square access', 'EA', 'AA', url(60)),
  createKey('key', 'Databricks', 'da', 'pi', hex(32)),
  createKey('key', 'Azure client secret', word(3), '8', 'Q~', url(34)),
  createKey('token', 'Heroku', 'HR', 'KU-', uuid()),
  createKey('key', 'Linear', 'lin', '_api_', word(40)),
  createKey('key', 'Notion', 'sec', 'ret_', word(43)),
  createKey('key', 'Notion integration', 'nt', 'n_', word(46)),
  createKey('key', 'Figma', 'fi', 'gd_', url(40)),
  createKey('token', 'Airtable', 'pa', 't', word(14), '.', hex(64)),
  createKey('token', 'Atlassian', 'AT', 'ATT3x', url(180), '=', randomText('0123456789ABCDEF', 8)),
  createKey('key', 'Postman', 'PM', 'AK-', hex(24), '-', hex(34)),
  createKey('key', 'New Relic', 'NR', 'AK-', randomText(upper + digit, 27)),
  createKey('token', 'Grafana service account', 'gl', 'sa_', word(32), '_', hex(8)),
  createKey('token', 'Grafana cloud', 'gl', 'c_', word(80)),
  createKey('token', 'Vault', 'hv', 's.', url(90)),
  createKey('token', 'Doppler', 'dp', '.pt.', word(43)),
  createKey('token', 'PlanetScale', 'pscale', '_tkn_', url(43)),
  createKey('token', 'Supabase', 'sb', 'p_', hex(40)),
  createKey('token', 'Fly', 'fo', '1_', url(43)),
  createKey('key', 'age', 'AGE-SECRET', '-KEY-1', randomText('QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)),
  createKey('key', 'Resend', 're', '_', word(8), '_', word(24)),
  createKey('key', 'NVIDIA', 'nv', 'api-', url(64)),
  createKey('key', 'Brevo', 'xkey', 'sib-', hex(64), '-', word(16)),
  createKey('key', 'Supabase secret', 'sb', '_secret_', url(31)),
  createKey('key', 'Pinecone', 'pc', 'sk_', word(5), '_', word(60)),
  createKey('key', 'LangSmith', 'ls', 'v2_pt_', hex(32), '_', hex(10)),
  createKey('key', 'PostHog', 'ph', 'x_', word(43)),
  createKey('key', 'Tavily', 'tv', 'ly-dev-', word(32)),
  createKey('key', 'Jina', 'ji', 'na_', hex(32), word(28)),
  createKey('key', 'Cerebras', 'cs', 'k-', randomText(lower + digit, 48)),
  createKey('key', 'Fireworks', 'fw', '_', word(24)),
  createKey('key', 'Voyage', 'pa', '-', word(43)),
  createKey('key', 'Firecrawl', 'fc', '-', hex(32)),
  createKey('key', 'RunPod', 'rp', 'a_', randomText(upper + digit, 44)),
  createKey('key', 'E2B', 'e2', 'b_', hex(40)),
  createKey('key', 'Browserbase', 'bb', '_live_', word(27)),
  createKey('key', 'Context7', 'ctx', '7sk-', uuid()),
  createKey('key', 'Neon', 'na', 'pi_', randomText(lower + digit, 64)),
  createKey('key', 'Render', 'rn', 'd_', word(32)),
  createKey('token', 'Vercel Blob', 'vercel', '_blob_rw_', word(16), '_', word(30)),
  createKey('key', 'Convex', 'pr', 'od:happy-otter-123|', word(60)),
  createKey('token', 'Infisical', 'st', '.', hex(24), '.', hex(32), '.', hex(32)),
  createKey('token', 'PayPal', 'access', '_token$production$', randomText(lower + digit, 16), '$', hex(32)),
  createKey('key', 'Paddle', 'pdl', '_live_apikey_', randomText(lower + digit, 26), '_', word(22), '_', word(3)),
  createKey('token', 'Polar', 'polar', '_oat_', word(43)),
  createKey('token', 'Plaid', 'access', '-production-', uuid()),
  createKey('key', 'LaunchDarkly', 'sd', 'k-', hex(8), '-', hex(4), '-4', hex(3), '-a', hex(3), '-', hex(12)),
  createKey('token', 'Contentful', 'CF', 'PAT-', url(43)),
  createKey('key', 'n8n', 'n8', 'n_api_', word(40)),
  createKey('key', 'Honeycomb', 'hc', 'aik_', randomText(lower + digit, 58)),
  createKey('token', 'Axiom', 'xa', 'at-', uuid()),
  createKey('token', 'Segment', 'sg', 'p_', word(64)),
  createKey('token', 'Docker', 'dckr', '_pat_', url(27)),
  createKey('token', 'RubyGems', 'ruby', 'gems_', hex(48)),
  createKey('token', 'Sentry', 'sn', 'tryu_', hex(64)),
  createKey('token', 'Tailscale', 'ts', 'key-auth-', word(17), '-', word(32)),
  createKey('token', 'Pulumi', 'pu', 'l-', hex(40)),
  createKey('token', 'Fly machines', 'fm', '2_', randomText(`${letters}+/`, 60), word(2), '='),
  createKey(
    'token',
    'JWT',
    base64('{"alg":"HS256","typ":"JWT"}'),
    '.',
    base64(`{"sub":"${randomText(digit, 10)}","name":"Ann"}`),
    '.',
    url(43),
  ),
]

const createInText = (kind: SecretKind, name: string, before: string, secret: string, after = ''): SecretFormat => ({
  kind,
  name,
  secret,
  text: before + secret + after,
})
const pem = (of: string, body: string, end = true): string =>
  `-----BEGIN ${of}-----\n${body}${end ? `\n-----END ${of}-----` : ''}`
const lines = (count: number): string => Array.from({ length: count }, () => randomText(`${letters}+/`, 64)).join('\n')

/** Secrets recognised by their name or surroundings. */
export const namedSecrets: readonly SecretFormat[] = [
  createInText('key', 'AWS secret access key', 'aws_secret_access_key = ', randomText(`${letters}+/`, 40)),
  createInText('key', 'AWS secret after its id', `AK${'IA'}${'A'.repeat(16)},`, randomText(`${letters}+/`, 40)),
  createInText('key', 'AWS secret in JSON', '{"SecretAccessKey": "', randomText(`${letters}+/`, 40), '"}'),
  createInText(
    'pem',
    'GCP service account',
    '{"type": "service_account", "private_key": "',
    pem('PRIVATE KEY', lines(12)).replaceAll('\n', '\\n'),
    '\\n", "client_id": "1"}',
  ),
  createInText('pem', 'RSA key', 'The file says:\n', pem('RSA PRIVATE KEY', lines(12))),
  createInText('pem', 'EC key', '', pem('EC PRIVATE KEY', lines(3)), '\nIs it right?'),
  createInText('pem', 'SSH key', '$ cat ~/.ssh/id_ed25519\n', pem('OPENSSH PRIVATE KEY', lines(5)), '\n'),
  createInText('pem', 'PGP key', '', pem('PGP PRIVATE KEY BLOCK', `Version: GnuPG v2\n\n${lines(8)}\n=${word(4)}`)),
  createInText(
    'pem',
    'encrypted key',
    '',
    pem('RSA PRIVATE KEY', `Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,${hex(32).toUpperCase()}\n\n${lines(8)}`),
  ),
  createInText(
    'pem',
    'key that was cut off',
    'Here: ',
    pem('RSA PRIVATE KEY', `${lines(4)}\n${word(11)}`, false),
    '\n\nCan you see what is wrong with it?',
  ),
  createInText(
    'token',
    'Slack webhook',
    'curl https://hooks.slack.com/services/',
    `T${randomText(upper, 8)}/B${randomText(upper, 8)}/${word(24)}`,
    ' -d x',
  ),
  createInText('token', 'Discord webhook', `https://discord.com/api/webhooks/${randomText(digit, 18)}/`, url(68)),
  createInText(
    'token',
    'Telegram address',
    'https://api.telegram.org/bot',
    `7${randomText(digit, 8)}:A${'A'}${url(33)}`,
    '/getMe',
  ),
  createInText(
    'token',
    'Azure storage',
    'AccountName=a;AccountKey=',
    `${randomText(`${letters}+/`, 86)}==`,
    ';EndpointSuffix=core.windows.net',
  ),
  createInText('token', 'Azure SAS', 'https://a.blob.core.windows.net/b?sv=2024&sig=', `${word(43)}%3D`, '&se=2026'),
  createInText('key', 'Azure secret', 'AZURE_CLIENT_SECRET=', url(40)),
  createInText('token', 'Cloudflare', 'CLOUDFLARE_API_TOKEN=', url(40)),
  createInText('key', 'Heroku', 'HEROKU_API_KEY=', uuid()),
  createInText('token', 'bearer', 'Authorization: Bearer ', word(32)),
  createInText('token', 'bearer alone', "headers.set('x', 'Bearer ", word(32), "')"),
  createInText('token', 'basic', 'Authorization: Basic ', btoa(`ann:${word(9)}`)),
  createInText('token', 'Set-Cookie', 'Set-Cookie: connect.sid=', `s%3A${word(32)}`, '; Path=/; HttpOnly'),
  createInText('token', 'Cookie', 'Cookie: theme=dark; session_id=', `a1${word(8)}`, '; lang=en'),
  createInText('connection', 'basic auth in a URL', 'git clone https://ann:', word(12), '@example.com/a.git'),
  ...['postgres', 'mysql', 'mongodb+srv', 'redis', 'amqp'].map((scheme) =>
    createInText(
      'connection',
      scheme,
      `${scheme}://${scheme === 'redis' ? '' : 'app'}:`,
      `p@${word(9)}!`,
      '@db.local:1/x',
    ),
  ),
  createInText('password', 'ADO', 'Server=db;User Id=sa;Password=', `a;b${word(8)}`, ';Database=x'),
  createInText('password', 'ADO, short', 'Server=db;Uid=sa;Pwd=', `${word(8)}9`, ';'),
  createInText('password', 'curl, in full', 'curl --user ann:', `q${word(8)}`, ' https://example.com'),
  createInText('password', 'curl', 'curl -s -u ann:', `q${word(8)}`, ' https://example.com'),
  createInText('password', '.env', 'DB_PASSWORD=', `sw${randomText(lower, 7)}`),
  createInText('password', '.env, quoted', 'export PASSWORD="', `a ${word(8)}#`, '"'),
  createInText('password', 'JSON', '{"user": "ann", "password": "', randomText(lower, 9), '"}'),
  createInText('password', 'YAML', 'db:\n  password: ', `${word(7)}7`),
  createInText('password', 'code', "const dbPassword: string = '", `${word(7)}7`, "'"),
  createInText('password', 'XML', '<password>', `${word(7)}7`, '</password>'),
  createInText('password', 'SQL', "CREATE USER ann IDENTIFIED BY '", `${word(7)}7`, "';"),
  createInText('password', 'a flag', 'mysqldump --password=', `${word(7)}7`, ' --all-databases'),
  createInText('password', "an entry of a container's environment", '- name: DB_PASSWORD\n  value: ', `${word(7)}7`),
  createInText(
    'password',
    'an entry of a list in compact JSON',
    '{"name":"DB_PASSWORD","value":"',
    `${word(7)}7`,
    '"}',
  ),
  createInText('key', 'api_key', 'api_key = "', hex(24), '"'),
  createInText('key', 'client_secret', 'client_secret: ', hex(32)),
  createInText('key', 'a header', 'X-Api-Key: ', hex(32)),
  createInText('token', 'a parameter', 'GET /a?access_token=', word(30), '&page=2'),
  createInText('password', 'passphrase', 'passphrase: "', 'violet kettle orbit', '"'),
  ...[
    ['in bold with its colon', '**Password:** ', ''],
    ['after a name in bold', '**Password**: ', ''],
    ['in a table', '| ann | password | ', ' |'],
    ['in code in a table', '| Password | `', '` |'],
    ['on the next line', 'Password:\n', ''],
    ['in a YAML block', 'password: |\n  ', ''],
    ['after a tag', '<b>Password:</b> ', '<br>'],
    ['in a cell', '<td>Password</td><td>', '</td>'],
    ['in a property list', '<key>password</key>\n<string>', '</string>'],
    ['in a field of a form', '<input name="password" value="', '">'],
    ['on a line of an element', '<password>\n  ', '\n</password>'],
    ['in CDATA', '<password><![CDATA[', ']]></password>'],
    ['for somebody', 'The password for ann: ', ''],
    ['with a remark', 'password (case sensitive): ', ''],
    ['in the future', 'Your password will be ', ' from Monday'],
    ['in a list of arguments', '["tool", "--password", "', '"]'],
    ['of mysql in a list of arguments', '["mysql", "-u", "root", "-p', '"]'],
    ['of sshpass in a list of arguments', '["sshpass", "-p", "', '", "ssh"]'],
    ['of mysql on another line', 'mysql -u root \\\n  -p', ' shop'],
    ['in define', "define('DB_PASSWORD', '", "');"],
    ['of a reference in Rust', 'let password: &str = "', '";'],
    ['of an array in C', 'char password[] = "', '";'],
  ].map(([name = '', before = '', after]) => createInText('password', name, before, 'wm7Fq2xL9', after)),
]

/** Secrets stated in prose. */
export const statedSecrets: readonly SecretFormat[] = [
  createInText('password', 'my password', 'Hi! My password is ', 'hunter2', ', can you log in?'),
  createInText('password', 'a word', 'the password is ', 'swordfish', '.'),
  createInText('password', 'the pass', 'the pass is ', 'Tr0ub4dor&3', '\nthanks'),
  createInText('password', 'for the wifi', 'The password for the guest wifi is ', 'bluebird', '.'),
  createInText('password', 'quoted', 'The password was “', 'Bluebird', '”, I think'),
  createInText('password', 'with', 'use ann with password ', 'k1tten99', ' please'),
  createInText('password', 'to', 'I changed my password to ', 'k1tten99!', ' yesterday'),
  createInText('password', 'a login', 'log in with admin / ', 's3cret!'),
  createInText('password', 'German', 'Mein Passwort ist ', 'geheim77', '.'),
  createInText('password', 'Spanish', 'mi contraseña es ', 'gato1234', ' ok'),
  createInText('password', 'Chinese', '我的密码是', 'mima2024', '。'),
  createInText('password', 'PIN', 'my PIN is ', '4821', '.'),
  createInText('password', 'PIN of a card', 'the PIN for my bank card is ', '4821', ', remember it'),
  createInText('password', 'one-time code', 'your one-time code is ', '482913'),
  createInText('password', 'a code first', '', '482913', ' is your Example login code'),
  createInText('password', 'passphrase', 'my passphrase is ', 'correct horse battery staple', '.'),
  createInText('key', 'API key', 'the api key is ', `9${hex(24)}`, ' for now'),
  createInText(
    'key',
    'seed phrase',
    'My seed phrase is: ',
    'abandon ability able about above absent absorb abstract absurd abuse access acid',
    '.',
  ),
  createInText(
    'key',
    'seed phrase in a list',
    'recovery words:\n',
    `1. ${'zebra wolf vivid urban tiger solar rabbit quiz panda ocean noble mango'
      .split(' ')
      .map((one, at) => (at === 0 ? one : `${at + 1}. ${one}`))
      .join(' ')}`,
  ),
]

/** Card numbers that issuers publish for tests. */
export const cardNumbers: readonly SecretFormat[] = [
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
].map(([name = '', secret = '']) => createInText('card', name, 'Pay with my card ', secret, ' please'))
