export type SecretKind = 'key' | 'token' | 'password' | 'connection' | 'card' | 'pem'
/** Position of a secret: `text.slice(start, end)` must be replaced. */
export type SecretMatch = { readonly kind: SecretKind; readonly start: number; readonly end: number }

/** Finds the first group of a pattern, or the whole match; both end at the end of the match. */
export function findValues(
  text: string,
  kind: SecretKind,
  pattern: RegExp,
  isSecret: (value: string, start: number) => boolean,
): SecretMatch[] {
  const found: SecretMatch[] = []
  for (const { 0: whole, 1: value = whole, index } of text.matchAll(pattern)) {
    const end = index + whole.length
    const start = end - value.length
    if (isSecret(value, start)) found.push({ kind, start, end })
  }
  return found
}

/** Masks written for secrets found earlier. */
export const maskPattern = /⟨secret:\d{1,12}⟩/g

const placeholderSymbols = /x{4}|\*{3}|\.{3}|…|(.)\1{5}|\$\{|\{\{|^[$<{[%*#@]|[>}%]$/i
const placeholderWords =
  /(?:^|[^a-z])(?:your|example|placeholder|change[-_]?(?:me|this)|replace|redacted|dummy|fake|here|my[-_](?:api|secret|token))|example(?:key)?$/i
const credentialName =
  /^(?:[a-z]{1,9}[-_ ])?(?:(?:my|test|new|wrong|secret|valid|access|api)[-_]?){0,3}(?:pass(?:word|wd)?|pwd|secret|token|key|string|value|user(?:name)?)$/i

/** Tells whether a value is only a placeholder (`your-api-key`, `<token>`, `xxxx`) or already masked. */
export function isPlaceholder(value: string): boolean {
  // Long random values may contain any short word by chance, but rarely at the beginning.
  const beginning = value.slice(0, 48)
  return (
    value.includes('⟨') ||
    placeholderSymbols.test(beginning) ||
    placeholderWords.test(beginning) ||
    credentialName.test(beginning)
  )
}
