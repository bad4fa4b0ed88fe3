const emptied = /x{4}|\*{3}|\.{3}|…|(.)\1{5}|\$\{|\{\{|^[$<{[%*#@]|[>}%]$/i
const worded =
  /(?:^|[^a-z])(?:your|example|placeholder|change[-_]?(?:me|this)|replace|redacted|dummy|fake|here|my[-_](?:api|secret|token))|example(?:key)?$/i
const nameOfOne =
  /^(?:[a-z]{1,9}[-_ ])?(?:(?:my|test|new|wrong|secret|valid|access|api)[-_]?){0,3}(?:pass(?:word|wd)?|pwd|secret|token|key|string|value|user(?:name)?)$/i

/** Whether a value only shows where one belongs (`your-api-key`, `<token>`, `xxxx`), or was masked before. */
export function isPlaceholder(value: string): boolean {
  // Long random values hold every short word sooner or later; their beginning hardly ever does.
  const beginning = value.slice(0, 48)
  return value.includes('⟨') || emptied.test(beginning) || worded.test(beginning) || nameOfOne.test(beginning)
}
