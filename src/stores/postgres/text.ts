/**
 * PostgreSQL stores text as UTF-8 without U+0000, which excludes lone surrogates too. Each such code unit is written as
 * U+FFFE and four hexadecimal digits; U+FFFE itself, which no text should contain, is written the same way.
 */
const marker = '\uFFFE'

/** Lone surrogates, and the marker. */
const unstorable = /[\p{Cs}\uFFFE]/gu
const escaped = /\uFFFE([0-9a-f]{4})/g

/** Returns a text that PostgreSQL can store; most texts are returned as they are. */
export function escapeText(text: string): string {
  if (text.isWellFormed() && !text.includes('\u0000') && !text.includes(marker)) return text
  return text.replaceAll(unstorable, escapeUnit).replaceAll('\u0000', escapeUnit)
}

const escapeUnit = (unit: string): string => marker + unit.charCodeAt(0).toString(16).padStart(4, '0')

/** Reverses `escapeText`. */
export const unescapeText = (text: string): string =>
  text.includes(marker)
    ? text.replaceAll(escaped, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    : text
