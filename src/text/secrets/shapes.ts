import type { FoundSecret } from './found.ts'
import { isPlaceholder } from './placeholder.ts'

/** Not inside a word; but an escaped line end, a percent code, a terminal's colour or Telegram's `/bot` may stand before it. */
const before = String.raw`(?:(?<![A-Za-z0-9])|(?<=\\[nrt]|%[\dA-F]{2}|\[[\d;]{1,8}m|/bot))`
/** All are at least so long, of these characters: few words are, so that most of a text is passed by quickly. */
const long = String.raw`(?=[\w~.+/:=%-]{20})`
/** Known by how it begins. */
const beginning = (words: string): string => String.raw`(?:${words})[\w-]{20,}={0,2}`

const keys = [
  // OpenAI, Anthropic, OpenRouter; Stripe; Google; Figma; NVIDIA; Brevo; Supabase; Pinecone; LangSmith; Groq; xAI; Perplexity
  beginning('sk-|[sr]k_(?:live|test)_|GOCSPX-|AIza|figd_|nvapi-|xkeysib-|sb_secret_|pcsk_|lsv2_|gsk_|xai-|pplx-'),
  // Hugging Face, Replicate, Linear, Notion, New Relic, age, PostHog, Tavily, Postman, Resend
  beginning('hf_|r8_|lin_[a-z]+_|secret_|ntn_|NRAK-|AGE-SECRET-KEY-|phx_|tvly-|PMAK-|re_'),
  'A[KS]IA[A-Z0-9]{16}', // AWS
  String.raw`whsec_[\w+/-]{24,}={0,2}`, // Stripe, Svix
  String.raw`(?:SK|key-|dapi)[0-9a-f]{32}(?:-\d)?`, // Twilio, Mailgun, Databricks
  String.raw`[0-9a-f]{32}-us\d{1,2}`, // Mailchimp
  String.raw`SG\.[\w-]{16,}\.[\w-]{16,}`, // SendGrid
  String.raw`[\w~.-]{3}\dQ~[\w~.-]{31,34}`, // Azure
].join('|')

const tokens = [
  // GitHub, GitLab, Slack, Shopify, Square, DigitalOcean, Docker, npm, PyPI, RubyGems, Heroku
  beginning(
    'gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox[a-z]-|xapp-|shp[a-z]{2}_|sq0[a-z]{3}-|EAAA|do[opr]_v1_|dckr_pat_|npm_|pypi-|rubygems_|HRKU-',
  ),
  // Grafana, Vault, Doppler, PlanetScale, Supabase, Fly, Google, Sentry, Tailscale, Pulumi
  beginning(String.raw`glsa_|glc_|hv[bsr]\.|dp\.[a-z]+\.|pscale_[a-z]+_|sbp_|fo1_|ya29\.|1//0|sntry[su]_|tskey-|pul-`),
  String.raw`fm\d[a-z]?_[\w+/-]{40,}={0,2}`, // Fly
  String.raw`AT[AC]TT3x[\w-]{20,}(?:=[0-9A-F]{8})?`, // Atlassian
  String.raw`pat\w{14}\.[0-9a-f]{64}`, // Airtable
  String.raw`\d{8,10}:AA[\w-]{32,34}`, // Telegram
  // Discord: an account's number, which only has these letters in base64
  String.raw`(?:[MNO][DTjz][AEIMQUYcgk][w-z0-5]){5,6}\w{0,4}\.[\w-]{6}\.[\w-]{27,}`,
  // JSON Web Tokens; tried once in every run of these characters, however often it holds the beginning
  String.raw`(?<![_-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]+){0,3}`,
  // Slack, Discord: whoever has the address may write.
  String.raw`(?<=hooks\.slack\.com/[a-z]+/)[\w/]{20,}|(?<=\.com/api/webhooks/\d{15,20}/)[\w-]{40,}`,
  // Azure
  String.raw`(?<=AccountKey=)[\w+/]{86}==|(?<=[?&;]sig=)[\w%+/-]{40,}={0,2}`,
].join('|')

const shape = new RegExp(`${before}${long}(?:(${keys})|${tokens})(?![A-Za-z0-9])`, 'g')
/** Digits among letters, capitals up and down, or capitals only: no words joined by `_` or `-`. */
const chance = /(?=[A-Za-z]{0,11}\d)[A-Za-z\d]{12}|(?:[a-z]{1,9}[A-Z]{1,9}){4}|[A-Z]{16}/

/** Keys and tokens that are known by how they look. */
export function shapesIn(text: string): FoundSecret[] {
  const found: FoundSecret[] = []
  for (const { 0: secret, 1: key, index } of text.matchAll(shape))
    if (chance.test(secret) && !isPlaceholder(secret))
      found.push({ kind: key ? 'key' : 'token', start: index, end: index + secret.length })
  return found
}
