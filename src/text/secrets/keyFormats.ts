import { isPlaceholder, type SecretMatch } from './match.ts'

/** Minimum length of every key format, in characters of `isKeyCharacter`; few words are that long. */
const minKeyCharacters = 20
const isKeyCharacter = Uint8Array.from({ length: 128 }, (_, code) =>
  Number(/[\w~.+/:=%-]/.test(String.fromCharCode(code))),
)

/**
 * Cheap prefilter: if false, the text contains no key of a known format. Checks windows from their end backwards, so that
 * most characters are skipped.
 */
export function mayContainKeys(text: string): boolean {
  for (let from = 0; from + minKeyCharacters <= text.length; ) {
    let at = from + minKeyCharacters - 1
    while (at >= from && isKeyCharacter[text.charCodeAt(at)] === 1) at--
    if (at < from) return true
    from = at + 1
  }
  return false
}

/** Not inside a word; an escaped line break, a percent code, a terminal colour or Telegram's `/bot` may precede it. */
const keyStart = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrt]|%[\dA-F]{2}|\[[\d;]{1,8}m|/bot))`
/** Minimum length of all formats, so that most of a text is skipped quickly. */
const minLength = String.raw`(?=[\w~.+/:=%-]{20})`
/** Format with a distinctive prefix. */
const withPrefix = (prefixes: string): string => String.raw`(?:${prefixes})[\w-]{20,}={0,2}`

const keyFormats = [
  // OpenAI, Anthropic, OpenRouter; Stripe; Google; Figma; NVIDIA; Brevo; Supabase; Pinecone; LangSmith; Groq; xAI; Perplexity
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
