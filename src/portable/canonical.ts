import { replaceLoneSurrogates } from '../domain/chat.ts'

/**
 * Serializes plain data to its only representation: sorted fields, no whitespace, no undefined fields, numbers as
 * JavaScript writes them. Lone surrogates in values become U+FFFD; in field names they stay escaped, because two names
 * could otherwise become equal.
 *
 * @example
 * toCanonicalJson({ b: [1, 'ü'], a: undefined, 10: '\ud83d' }) // '{"10":"\ufffd","b":[1,"ü"]}'
 */
export function toCanonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonicalJson).join(',')}]`
  if (typeof value === 'string') return JSON.stringify(replaceLoneSurrogates(value))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined)
  fields.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${toCanonicalJson(inner)}`).join(',')}}`
}
