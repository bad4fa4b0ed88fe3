/** Source of random values of secrets. */
export type RandomSource = {
  /** A number of at least 0 and less than the limit. */
  readonly below: (limit: number) => number
  readonly text: (alphabet: string, length: number | readonly [min: number, max: number]) => string
  readonly pick: <Item>(items: readonly Item[]) => Item
}

/** Text before and after a secret. */
export type Surroundings = readonly [before: string, after: string]

/** Form of secrets: random values over its whole alphabet and all lengths, and the texts they stand in. */
export type SecretForm = {
  readonly name: string
  readonly create: (random: RandomSource) => string
  readonly surroundings: readonly Surroundings[]
}

/** Creates a deterministic source (mulberry32). */
export function createRandomSource(seed: number): RandomSource {
  let state = seed | 0
  const below = (limit: number): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * limit)
  }
  const text: RandomSource['text'] = (alphabet, length) => {
    const count = typeof length === 'number' ? length : length[0] + below(length[1] - length[0] + 1)
    let result = ''
    for (let index = 0; index < count; index++) result += alphabet.charAt(below(alphabet.length))
    return result
  }
  return { below, text, pick: (items) => items[below(items.length)] as (typeof items)[number] }
}

export const upper = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ'
export const lower = upper.toLowerCase()
export const digit = '0123456789'
export const hex = `${digit}abcdef`
export const word = upper + lower + digit
export const url = `${word}_-`
export const base64 = `${word}+/`
const base32 = `${upper}234567`
export const base58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Texts in which a key of a known form is found by its form alone. */
const anywhere: readonly Surroundings[] = [
  ['', ''],
  ['Use ', ' instead of the old one.'],
  ['The old one was ', '.'],
  ['Is it ', '?'],
  ['It has expired (', '), I think'],
  ['Replace "', '" by the new one'],
  ["const client = connect('", "', { retries: 3 })"],
  ['Run it with `', '` again'],
  ['**', '**'],
  ['{"value":"', '","n":1}'],
  ['{\\"value\\":\\"', '\\",\\"n\\":1}'],
  ['PORT=80\nexport SOMETHING=', '\nHOST=a'],
  ['a:\n  b: ', '\n  c: d\n'],
  ['https://example.org/a?k=', '&b=1'],
  ['X-Custom: ', '\r\nAccept: */*'],
  ['curl -H "X-Custom: ', '" https://example.org'],
  ['done\\n', '\\nnext'],
  ['钥匙是', '。'],
  ['鍵は「', '」です'],
  ['<value>', '</value>'],
  ['first line\n', '\nlast line'],
]

export const form = (
  name: string,
  create: (random: RandomSource) => string,
  surroundings: readonly Surroundings[] = anywhere,
): SecretForm => ({ name, create, surroundings })

/** Form with a prefix. Prefixes are in parts, so that no file contains text that looks like a secret. */
const prefixed = (
  name: string,
  prefixes: readonly (readonly [string, string])[],
  alphabet: string,
  length: number | readonly [number, number],
): SecretForm => form(name, (random) => random.pick(prefixes).join('') + random.text(alphabet, length))

export const uuid = ({ text }: RandomSource): string => [8, 4, 4, 4, 12].map((length) => text(hex, length)).join('-')
const encode = (content: string): string => btoa(content).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')

/** Symbols that are common in passwords and unambiguous in a sentence. */
export const symbols = '!@#$%^&*-_+=~?'
/** Password of 8 to 24 characters with a letter and a digit; its ends are no punctuation of a sentence. */
export function password({ text, pick, below }: RandomSource): string {
  const inner = text(word + symbols, [5, 21])
  const at = below(inner.length + 1)
  const withDigit = inner.slice(0, at) + text(digit, 1) + inner.slice(at)
  return text(`${word}!#`, 1) + withDigit + pick([...upper, ...lower])
}
/** Password without characters that end a value in a URL. */
export const urlPassword = ({ text }: RandomSource): string =>
  text(word, 1) + text(`${word}!$&*()+,;=._~-`, [6, 22]) + text(word, 1)
/** Characters that need no quotes in a shell. */
export const shellPassword = ({ text }: RandomSource): string =>
  text(word, 1) + text(`${word}@%+=:,._-`, [6, 22]) + text(word, 1)
/** Password with any printable characters, for places in quotes. */
export const quotedPassword = (random: RandomSource): string =>
  random.text(`${word}!#%()*+`, 1) +
  random.text(`${word}!#$%&()*+,-./:;<=>?@[]^_{|}~`, [5, 30]) +
  random.text(digit, 1) +
  random.text(word, 1)

export const stated = (name: string, ...surroundings: readonly Surroundings[]): SecretForm =>
  form(name, password, surroundings)

/** Keys and tokens with a form of their own. */
export const keyForms: readonly SecretForm[] = [
  form('Threadkeep', ({ text }) => `t${'k_'}${text(word, 8)}_${text(word, [32, 64])}`),
  prefixed(
    'AWS access key id',
    [
      ['AK', 'IA'],
      ['AS', 'IA'],
    ],
    base32,
    16,
  ),
  prefixed('Google API', [['AI', 'za']], url, 35),
  prefixed('Google client secret', [['GOC', 'SPX-']], url, 28),
  prefixed('Google access token', [['ya', '29.']], url, [60, 250]),
  prefixed('Google refresh token', [['1/', '/0']], url, [60, 100]),
  prefixed('GitHub personal', [['gh', 'p_']], word, 36),
  prefixed('GitHub OAuth', [['gh', 'o_']], word, 36),
  prefixed('GitHub user', [['gh', 'u_']], word, 36),
  prefixed('GitHub server', [['gh', 's_']], word, 36),
  prefixed('GitHub refresh', [['gh', 'r_']], word, [36, 76]),
  form('GitHub fine-grained', ({ text }) => `github${'_pat_'}${text(word, 22)}_${text(word, 59)}`),
  prefixed('GitLab personal', [['gl', 'pat-']], url, 20),
  form(
    'GitLab routable',
    ({ text }) => `gl${'pat-'}${text(url, [27, 60])}.${text(digit + lower, 2)}.${text(digit + lower, 9)}`,
  ),
  prefixed(
    'GitLab deploy, runner, feed',
    [
      ['gl', 'dt-'],
      ['gl', 'rt-'],
      ['gl', 'ft-'],
      ['gl', 'soat-'],
      ['gl', 'ffct-'],
    ],
    url,
    20,
  ),
  prefixed(
    'GitLab mail, agent, OAuth',
    [
      ['gl', 'imt-'],
      ['gl', 'agent-'],
      ['gl', 'oas-'],
    ],
    url,
    [25, 64],
  ),
  form('GitLab job', ({ text }) => `gl${'cbt-'}${text(word, [1, 5])}_${text(url, 20)}`),
  prefixed('GitLab trigger', [['gl', 'ptt-']], hex, 40),
  form('Slack bot', ({ text }) => `xo${'xb-'}${text(digit, [10, 13])}-${text(digit, [10, 13])}-${text(word, 24)}`),
  form(
    'Slack user',
    ({ text }) => `xo${'xp-'}${[1, 2, 3].map(() => text(digit, [10, 13])).join('-')}-${text(hex, 32)}`,
  ),
  form('Slack app', ({ text }) => `xa${'pp-1-'}A${text(upper + digit, 10)}-${text(digit, 13)}-${text(hex, 64)}`),
  form('Slack configuration', ({ text }) => `xo${'xe.xo'}xp-1-${text(upper + digit, [163, 166])}`),
  prefixed(
    'Stripe secret',
    [
      ['sk', '_live_'],
      ['sk', '_test_'],
    ],
    word,
    [24, 99],
  ),
  prefixed(
    'Stripe restricted',
    [
      ['rk', '_live_'],
      ['rk', '_test_'],
    ],
    word,
    [24, 99],
  ),
  prefixed('Stripe webhook', [['wh', 'sec_']], word, 32),
  prefixed('Svix webhook', [['wh', 'sec_']], base64, [32, 44]),
  form('OpenAI', ({ text }) => `s${'k-'}${text(word, 20)}T3Blbk${'FJ'}${text(word, 20)}`),
  prefixed('OpenAI project', [['sk', '-proj-']], url, [48, 160]),
  prefixed(
    'OpenAI service account',
    [
      ['sk', '-svcacct-'],
      ['sk', '-admin-'],
    ],
    url,
    [48, 160],
  ),
  form(
    'Anthropic',
    ({ pick, text }) => `sk${'-ant-'}${pick(['api03', 'admin01', 'oat01', 'sid01'])}-${text(url, 93)}AA`,
  ),
  prefixed('OpenRouter', [['sk', '-or-v1-']], hex, 64),
  prefixed('DeepSeek', [['s', 'k-']], hex, 32),
  prefixed(
    'Hugging Face',
    [
      ['h', 'f_'],
      ['api', '_org_'],
    ],
    upper + lower,
    34,
  ),
  prefixed('Replicate', [['r', '8_']], word, 37),
  prefixed('Groq', [['gs', 'k_']], word, 52),
  prefixed('xAI', [['xa', 'i-']], word, 80),
  prefixed('Perplexity', [['pp', 'lx-']], word, 48),
  prefixed('NVIDIA', [['nv', 'api-']], url, 64),
  form('Pinecone', ({ text }) => `pc${'sk_'}${text(word, [5, 6])}_${text(word, [60, 63])}`),
  form('LangSmith', ({ text }) => `ls${'v2_pt_'}${text(hex, 32)}_${text(hex, 10)}`),
  prefixed('npm', [['np', 'm_']], word, 36),
  prefixed('PyPI', [['py', 'pi-AgEIcHlwaS5vcmc']], url, [50, 200]),
  prefixed('RubyGems', [['ruby', 'gems_']], hex, 48),
  prefixed('crates.io', [['c', 'io']], word, 32),
  prefixed('Docker', [['dckr', '_pat_']], url, 27),
  prefixed(
    'DigitalOcean',
    [
      ['do', 'p_v1_'],
      ['do', 'o_v1_'],
      ['do', 'r_v1_'],
    ],
    hex,
    64,
  ),
  prefixed('Heroku', [['HR', 'KU-AA']], url, 58),
  form('Heroku, older', (random) => `HR${'KU-'}${uuid(random)}`),
  form('SendGrid', ({ text }) => `S${'G.'}${text(url, 22)}.${text(url, 43)}`),
  prefixed('Mailgun', [['ke', 'y-']], hex, 32),
  form('Mailchimp', ({ text, below }) => `${text(hex, 32)}-u${'s'}${1 + below(25)}`),
  prefixed('Twilio', [['S', 'K']], hex, 32),
  form('Telegram', ({ text, below }) => `${1 + below(9)}${text(digit, [7, 9])}:A${'A'}${text(url, 33)}`),
  form(
    'Discord',
    ({ text, below }) => `${encode(`${1 + below(9)}${text(digit, [16, 18])}`)}.${text(url, 6)}.${text(url, [27, 38])}`,
  ),
  prefixed(
    'Shopify',
    ['at_', 'ca_', 'pa_', 'ss_'].map((end) => ['shp', end] as const),
    hex,
    32,
  ),
  prefixed(
    'Square access',
    [
      ['EA', 'AA'],
      ['sq', '0atp-'],
    ],
    url,
    [22, 60],
  ),
  prefixed('Square OAuth secret', [['sq', '0csp-']], url, 43),
  form(
    'Azure client secret',
    ({ text }) => `${text(`${word}_~.`, 3)}${text(digit, 1)}${'Q~'}${text(`${word}_~-`, [31, 34])}`,
  ),
  form('Databricks', ({ text, pick }) => `da${'pi'}${text(hex, 32)}${pick(['', '-2', '-3'])}`),
  prefixed('Linear', [['lin', '_api_']], word, 40),
  prefixed('Notion', [['sec', 'ret_']], word, 43),
  form('Notion integration', ({ text }) => `nt${'n_'}${text(digit, 11)}${text(word, 35)}`),
  form('Airtable', ({ text }) => `pa${'t'}${text(word, 14)}.${text(hex, 64)}`),
  form('Atlassian', ({ text }) => `ATA${'TT3x'}${text(url, [176, 184])}=${text('0123456789ABCDEF', 8)}`),
  prefixed('Figma', [['fi', 'gd_']], url, [40, 43]),
  form('Grafana', ({ text }) => `gl${'sa_'}${text(word, 32)}_${text(hex, 8)}`),
  prefixed('Grafana Cloud', [['gl', 'c_']], base64, [60, 180]),
  prefixed('New Relic', [['NR', 'AK-']], upper + digit, 27),
  prefixed('Sentry user', [['sn', 'tryu_']], hex, 64),
  form('Sentry organization', ({ text }) => `sn${'trys_'}eyJpYXQiO${text(base64, [60, 160])}=_${text(base64, 43)}`),
  prefixed(
    'PlanetScale',
    ['tkn_', 'oauth_', 'pw_'].map((end) => ['pscale', `_${end}`] as const),
    url,
    [43, 64],
  ),
  prefixed('Supabase', [['sb', 'p_']], hex, 40),
  prefixed('Supabase secret key', [['sb', '_secret_']], url, 31),
  prefixed(
    'Vercel',
    [
      ['vc', 'p_'],
      ['vc', 'k_'],
    ],
    word,
    [24, 56],
  ),
  prefixed('Netlify', [['nf', 'p_']], word, 36),
  form('Postman', ({ text }) => `PM${'AK-'}${text(hex, 24)}-${text(hex, 34)}`),
  prefixed(
    'Doppler',
    ['pt', 'ct', 'sa'].map((part) => ['dp.', `${part}.`] as const),
    word,
    [40, 44],
  ),
  prefixed(
    'Vault',
    [
      ['hv', 's.'],
      ['hv', 'b.'],
    ],
    url,
    [90, 160],
  ),
  form('Terraform Cloud', ({ text }) => `${text(word, 14)}.${'atlasv1'}.${text(url, [60, 70])}`),
  prefixed('Pulumi', [['pu', 'l-']], hex, 40),
  prefixed('Fly', [['fo', '1_']], url, 43),
  prefixed(
    'Fly machines',
    [
      ['fm', '2_'],
      ['fm', '1r_'],
    ],
    base64,
    [100, 200],
  ),
  form(
    'Tailscale',
    ({ text, pick }) => `ts${'key-'}${pick(['auth', 'api', 'client'])}-${text(word, [11, 17])}-${text(word, 32)}`,
  ),
  form('Brevo', ({ text }) => `xkey${'sib-'}${text(hex, 64)}-${text(word, 16)}`),
  form('Resend', ({ text }) => `r${'e_'}${text(word, 8)}_${text(word, 24)}`),
  prefixed('PostHog', [['ph', 'x_']], word, 43),
  form('Dynatrace', ({ text }) => `dt0${'c01.'}${text(base32, 24)}.${text(base32, 64)}`),
  form('HubSpot', (random) => `pat${'-na1-'}${uuid(random)}`),
  prefixed(
    'age',
    [
      ['AGE-SECRET', '-KEY-1'],
      ['AGE-SECRET', '-KEY-PQ-1'],
    ],
    'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L',
    58,
  ),
  prefixed(
    'BIP32',
    ['x', 'y', 'z', 't'].map((network) => [network, 'prv'] as const),
    base58,
    107,
  ),
  form('Rancher', ({ text }) => `tok${'en-'}${text(lower + digit, 5)}:${text(lower + digit, 54)}`),
  form('Azure DevOps, long', ({ text }) => `${text(word, 76)}AZ${'DO'}${text(word, 4)}`),
  form('JSON Web Token', ({ text, pick }) =>
    [
      encode(`{"alg":"${pick(['HS256', 'RS256', 'ES384'])}","kid":"${text(word, [0, 20])}"}`),
      encode(`{"sub":"${text(word, [1, 40])}","exp":${text('123456789', 10)}}`),
      text(url, [43, 342]),
    ].join('.'),
  ),
]
