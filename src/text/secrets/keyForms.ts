import { noMatches, type SecretKind, type SecretMatch, type SecretRule } from './rule.ts'
import { isGenerated, isPlaceholderKey } from './values.ts'

/** Form of a key: its prefixes and the pattern of the rest. */
type KeyForm = readonly [
  name: string,
  kind: SecretKind,
  prefixes: readonly string[],
  body: string,
  options?: {
    /** Pattern of the characters before the prefix, if the key begins with them. */
    readonly before?: string
    /** Set for prefixes that also begin ordinary names: the rest must look random. */
    readonly isAmbiguous?: boolean
    /** Set if the key begins a run of its characters, however often its prefix occurs in the run. */
    readonly beginsRun?: boolean
  },
]

const word = '[A-Za-z0-9]'
const hex = '[0-9a-f]'
const url = String.raw`[\w-]`
const base64 = '[A-Za-z0-9+/]'
const uuid = `${hex}{8}-${hex}{4}-${hex}{4}-${hex}{4}-${hex}{12}`
/** Begins an account number in base64, which has only these letters. */
const discordPrefixes = [...'MNO'].flatMap((first) =>
  [...'DTjz'].flatMap((second) => [...'AEIMQUYcgk'].map((third) => first + second + third)),
)

/** Known forms. Lengths are those of the vendors, with room to grow. */
const keyForms: readonly KeyForm[] = [
  ['Threadkeep', 'key', ['tk_'], `${word}{8}_${word}{32,64}`],
  // Cloud providers
  ['AWS access key id', 'key', ['AKIA', 'ASIA', 'ABIA', 'ACCA'], '[A-Z0-9]{16}'],
  ['AWS Bedrock', 'key', ['ABSK'], `${base64}{100,}={0,2}`],
  ['Google API', 'key', ['AIza'], `${url}{35}`],
  ['Google client secret', 'key', ['GOCSPX-'], `${url}{28}`],
  ['Google access token', 'token', ['ya29.'], `${url}{20,}`],
  ['Google refresh token', 'token', ['1//0'], `${url}{20,}`],
  [
    'Azure client secret',
    'key',
    [...'0123456789'].map((digit) => `${digit}Q~`),
    String.raw`[\w~.-]{31,34}`,
    { before: String.raw`[\w~.-]{3}` },
  ],
  ['Azure DevOps', 'token', ['AZDO'], `${word}{4}`, { before: `${word}{76}` }],
  ['Alibaba', 'key', ['LTAI'], `${word}{12,24}`, { isAmbiguous: true }],
  ['DigitalOcean', 'token', ['doo_v1_', 'dop_v1_', 'dor_v1_'], `${hex}{64}`],
  ['Heroku', 'token', ['HRKU-'], `${url}{36,100}`],
  ['Fly', 'token', ['fo1_'], `${url}{43}`],
  ['Fly machines', 'token', ['fm1a_', 'fm1r_', 'fm2_'], `${base64}{40,}={0,3}`],
  ['Netlify', 'token', ['nfp_', 'nfo_', 'nfb_', 'nfu_', 'nfc_'], `${word}{36,40}`],
  ['Vercel', 'token', ['vcp_', 'vci_', 'vca_', 'vcr_', 'vck_'], `${word}{24,64}`],
  ['Supabase', 'token', ['sbp_'], `(?:v0_)?${hex}{40}`],
  ['Supabase secret key', 'key', ['sb_secret_'], `${url}{20,64}`],
  ['PlanetScale', 'token', ['pscale_tkn_', 'pscale_oauth_', 'pscale_pw_'], String.raw`[\w=.-]{30,63}[\w=-]`],
  ['Cloudflare origin CA', 'key', ['v1.0-'], `${hex}{24}-${hex}{146}`],
  ['Databricks', 'key', ['dapi'], String.raw`${hex}{32}(?:-\d)?`],
  ['Terraform Cloud', 'token', ['.atlasv1.'], `${url}{60,70}`, { before: `${word}{14}` }],
  ['Pulumi', 'token', ['pul-'], `${hex}{40}`],
  ['Vault', 'token', ['hvs.', 'hvb.', 'hvr.'], `${url}{24,400}`],
  ['Doppler', 'token', ['dp.pt.', 'dp.ct.', 'dp.sa.', 'dp.scim.', 'dp.audit.'], `${word}{40,44}`],
  ['Doppler service', 'token', ['dp.st.'], String.raw`(?:[a-z0-9_-]{2,35}\.)?${word}{40,44}`],
  ['Tailscale', 'token', ['tskey-'], `[a-z]{2,12}-${word}{10,24}-${word}{20,64}`],
  ['1Password service account', 'token', ['ops_eyJ'], `${base64}{200,}={0,3}`],
  ['Neon', 'key', ['napi_'], '[a-z0-9]{60,70}'],
  ['Render', 'key', ['rnd_'], `${word}{28,40}`, { isAmbiguous: true }],
  ['Vercel Blob', 'token', ['vercel_blob_rw_'], `${word}{16}_${word}{28,40}`],
  [
    'Convex',
    'key',
    ['prod:', 'dev:', 'preview:'],
    String.raw`[a-z\d-]{3,60}(?::[a-z\d-]{1,60})?\|${base64}{40,400}={0,2}`,
  ],
  ['Rancher', 'token', ['token-', 'kubeconfig-u'], String.raw`[\w.-]{1,60}:[a-z0-9]{54}`],
  ['Infisical', 'token', ['st.'], String.raw`${hex}{24}\.${hex}{32}\.${hex}{32}`],
  // Version control and packages
  ['GitHub', 'token', ['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'], `${word}{36,251}`],
  ['GitHub fine-grained', 'token', ['github_pat_'], `${word}{22}_${word}{59}`],
  [
    'GitLab',
    'token',
    [
      'glpat-',
      'gldt-',
      'glrt-',
      'glrtr-',
      'glcbt-',
      'glptt-',
      'glft-',
      'glimt-',
      'glagent-',
      'gloas-',
      'glsoat-',
      'glffct-',
      'glwt-',
      'GR1348941',
    ],
    String.raw`${url}{20,300}(?:\.[0-9a-z]{2}[0-9a-z]{7})?(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?`,
  ],
  ['Atlassian', 'token', ['ATATT3x', 'ATCTT3x', 'ATBBT'], `${url}{20,400}(?:=[0-9A-F]{8})?`],
  ['Bitbucket', 'token', ['ATBB'], `${word}{32}`],
  ['npm', 'token', ['npm_'], `${word}{36}`],
  ['PyPI', 'token', ['pypi-AgE'], `${url}{50,1000}`],
  ['RubyGems', 'token', ['rubygems_'], `${hex}{48}`],
  ['crates.io', 'token', ['cio'], `${word}{32}`],
  ['Docker', 'token', ['dckr_pat_', 'dckr_oat_'], `${url}{27,36}`],
  // Language models
  ['OpenAI', 'key', ['sk-proj-', 'sk-svcacct-', 'sk-admin-', 'sk-None-'], `${url}{20,400}`],
  ['Anthropic', 'key', ['sk-ant-'], `${url}{20,400}`],
  ['OpenAI, DeepSeek, Moonshot', 'key', ['sk-'], `(?:or-v1-)?${word}{32,}`],
  ['LiteLLM, Langfuse', 'key', ['sk-'], `${url}{20,400}`, { isAmbiguous: true }],
  ['Hugging Face', 'key', ['hf_', 'api_org_'], `${word}{34,40}`],
  ['Replicate', 'key', ['r8_'], `${word}{37,40}`],
  ['Groq', 'key', ['gsk_'], `${word}{48,56}`],
  ['xAI', 'key', ['xai-'], `${word}{70,90}`],
  ['Perplexity', 'key', ['pplx-'], `${word}{40,56}`],
  ['NVIDIA', 'key', ['nvapi-'], `${url}{60,70}`],
  ['Pinecone', 'key', ['pcsk_'], `${word}{4,8}_${word}{50,64}`],
  ['LangSmith', 'key', ['lsv2_pt_', 'lsv2_sk_'], `${hex}{32}_${hex}{10}`],
  ['Tavily', 'key', ['tvly-'], `(?:dev-|prod-)?${url}{20,60}`, { isAmbiguous: true }],
  ['ElevenLabs', 'key', ['sk_'], `${hex}{48}`],
  ['Jina', 'key', ['jina_'], `${hex}{32}${word}{28}`],
  ['Cerebras', 'key', ['csk-'], '[a-z0-9]{48}'],
  ['Fireworks', 'key', ['fw_'], `${word}{22,24}`, { isAmbiguous: true }],
  ['Voyage', 'key', ['pa-'], `${url}{43}`, { isAmbiguous: true }],
  ['Firecrawl', 'key', ['fc-'], `${hex}{32}`],
  ['RunPod', 'key', ['rpa_'], '[A-Z0-9]{40,60}'],
  ['E2B', 'key', ['e2b_'], `${hex}{40}`],
  ['Browserbase', 'key', ['bb_live_', 'bb_test_'], `${word}{24,32}`],
  ['Context7', 'key', ['ctx7sk-'], uuid],
  // Messages and mail
  [
    'Slack',
    'token',
    [
      'xoxa-',
      'xoxb-',
      'xoxc-',
      'xoxd-',
      'xoxe-',
      'xoxo-',
      'xoxp-',
      'xoxr-',
      'xoxs-',
      'xoxe.xoxb-',
      'xoxe.xoxp-',
      'xapp-',
    ],
    String.raw`[\w%+/=-]{10,400}`,
  ],
  ['Telegram', 'token', [':AA'], `${url}{32,34}`, { before: String.raw`\d{8,10}` }],
  ['Discord', 'token', discordPrefixes, String.raw`${word}{20,24}\.${url}{6}\.${url}{27,}`],
  [
    'Twilio',
    'key',
    ['SK', 'AC'].flatMap((prefix) => [...'0123456789abcdef'].map((digit) => prefix + digit)),
    `${hex}{31}`,
  ],
  ['SendGrid', 'key', ['SG.'], String.raw`${url}{16,32}\.${url}{16,64}`],
  ['Mailgun', 'key', ['key-'], `${hex}{32}`],
  ['Mailchimp', 'key', ['-us'], String.raw`\d{1,2}`, { before: `${hex}{32}` }],
  ['Brevo', 'key', ['xkeysib-', 'xsmtpsib-'], `${hex}{64}-${word}{16}`],
  ['Resend', 'key', ['re_'], `${word}{8}_${word}{24,27}`],
  // Payments and shops
  ['Stripe', 'key', ['sk_live_', 'sk_test_', 'sk_prod_', 'rk_live_', 'rk_test_', 'rk_prod_'], `${word}{16,247}`],
  ['Stripe, Svix webhook', 'key', ['whsec_'], `${base64}{24,}={0,2}`],
  ['Shopify', 'token', ['shpat_', 'shpca_', 'shppa_', 'shpss_', 'shptka_', 'shpua_'], '[0-9a-fA-F]{32}'],
  ['Square', 'token', ['EAAA', 'sq0atp-', 'sq0csp-', 'sq0idp-'], `${url}{22,64}`],
  ['Flutterwave', 'key', ['FLWSECK-', 'FLWSECK_TEST-'], `${word}{12,34}-?X?`],
  ['PayPal', 'token', ['access_token$production$', 'access_token$sandbox$'], String.raw`[a-z0-9]{16}\$${hex}{32}`],
  ['Paddle', 'key', ['pdl_live_apikey_', 'pdl_sdbx_apikey_'], `[a-z0-9]{26}_${word}{22}_${word}{3}`],
  ['Polar', 'token', ['polar_oat_', 'polar_pat_'], `${word}{40,50}`],
  ['Plaid', 'token', ['access-production-', 'access-sandbox-'], uuid],
  // Development tools
  ['Linear', 'key', ['lin_api_', 'lin_oauth_', 'lin_wh_'], `${word}{32,64}`],
  ['Notion', 'key', ['ntn_', 'secret_'], `${word}{40,50}`],
  ['Airtable', 'token', ['pat'], String.raw`${word}{14}\.${hex}{64}`],
  ['Figma', 'key', ['figd_', 'figo_', 'figu_', 'figoh_'], `${url}{40,45}`],
  ['Grafana', 'token', ['glsa_'], `${word}{32}_[0-9A-Fa-f]{8}`],
  ['Grafana Cloud', 'token', ['glc_', 'eyJrIjoi'], `${base64}{32,400}={0,3}`],
  ['New Relic', 'key', ['NRAK-', 'NRII-', 'NRJS-', 'NRRA-', 'NRIQ-'], '[A-Za-z0-9-]{19,42}'],
  ['Sentry user', 'token', ['sntryu_'], `${hex}{64}`],
  ['Sentry organization', 'token', ['sntrys_'], `eyJ${base64}{20,}={0,2}_${base64}{43}`],
  ['Postman', 'key', ['PMAK-'], `${hex}{24}-${hex}{34}`],
  ['PostHog', 'key', ['phx_', 'phs_'], `${word}{40,64}`],
  ['Dynatrace', 'token', ['dt0c01.', 'dt0s01.', 'dt0s16.'], String.raw`[A-Z2-7]{8,24}\.[A-Z2-7]{64}`],
  ['Sourcegraph', 'token', ['sgp_'], `(?:(?:${hex}{16}|local)_)?${hex}{40}`],
  ['Snyk', 'token', ['snyk_'], String.raw`[a-z]{3}\.${hex}{8}\.${url}{20,}\.${url}{20,}`],
  ['Buildkite', 'token', ['bkua_'], `${hex}{40}`],
  ['CircleCI', 'token', ['CCIPAT_', 'CCIPRJ_'], `${word}{22}_${hex}{40}`],
  ['HubSpot', 'token', ['pat-na', 'pat-eu', 'pat-ap'], String.raw`\d-${uuid}`],
  ['Dropbox', 'token', ['sl.u.', 'sl.B'], `${url}{100,}`],
  ['JFrog', 'token', ['AKCp', 'cmVmdGtuO'], `${word}{50,80}`],
  ['Octopus', 'key', ['API-'], '[A-Z0-9]{26}'],
  ['OpenShift', 'token', ['sha256~'], `${url}{43}`],
  ['EasyPost', 'key', ['EZAK', 'EZTK'], `${word}{54}`],
  ['LaunchDarkly', 'key', ['sdk-'], `${hex}{8}-${hex}{4}-4${hex}{3}-[89ab]${hex}{3}-${hex}{12}`],
  ['Contentful', 'token', ['CFPAT-'], `${url}{43}`],
  ['n8n', 'key', ['n8n_api_'], `${word}{40,100}`],
  ['Honeycomb', 'key', ['hcaik_', 'hcbik_', 'hcxik_', 'hcamk_'], '[a-z0-9]{58,64}'],
  ['Axiom', 'token', ['xaat-', 'xapt-'], uuid],
  ['Segment', 'token', ['sgp_'], `${word}{64}`],
  // Standards
  ['BIP32', 'key', ['xprv', 'yprv', 'zprv', 'tprv', 'uprv', 'vprv'], '[1-9A-HJ-NP-Za-km-z]{107}'],
  ['age', 'key', ['AGE-SECRET-KEY-1', 'AGE-SECRET-KEY-PQ-1'], '[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}'],
  [
    'private key in base64',
    'key',
    ['LS0tLS1CRUdJTi'],
    `(?:BSU0EgUFJJV|BQUklWQVRF|BFQyBQUklW|BPUEVOU1NIIFBSSVZB|BFTkNSWVBURUQgUFJJV)${base64}{40,20000}={0,3}`,
  ],
  [
    'JSON Web Token',
    'token',
    ['eyJ'],
    String.raw`${url}{8,}\.(?:${url}{2,}|(?=\.))(?:\.${url}+){0,3}`,
    { beginsRun: true },
  ],
]

/** Not inside a word; an escaped line break, a percent code, a terminal colour or Telegram's `/bot` may precede it. */
const keyStart = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrt]|%[\dA-F]{2}|\[[\d;]{1,8}m|/bot))`
const keyEnd = '(?![A-Za-z0-9])'

const escapePattern = (text: string): string => text.replace(/[.~/$]/g, String.raw`\$&`)

function createKeyRule([
  name,
  kind,
  triggers,
  body,
  { before = '', isAmbiguous = false, beginsRun = false } = {},
]: KeyForm): SecretRule {
  // The pattern is tried at the prefix; characters before it are a group in a lookbehind.
  const start = before === '' ? `${beginsRun ? '(?<![_-])' : ''}${keyStart}()` : `(?<=${keyStart}(${before}))`
  const pattern = new RegExp(`${start}(?:${triggers.map(escapePattern).join('|')})(${body})${keyEnd}`, 'y')
  const find = (text: string, at: number): readonly SecretMatch[] | number => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match === null) return noMatches
    const [, head = '', rest = ''] = match
    const isSecret = !isPlaceholderKey(head + rest) && (!isAmbiguous || isGenerated(rest))
    return isSecret ? [{ kind, start: at - head.length, end: pattern.lastIndex }] : pattern.lastIndex
  }
  return { name, triggers, find }
}

/** Finds keys and tokens of known forms. */
export const keyRules: readonly SecretRule[] = keyForms.map(createKeyRule)
