import { wellFormed } from '../domain/chat.ts'

/**
 * Plain data as the one text it has: fields in the order of their names, no white space, fields without a value left
 * out, numbers as JavaScript writes them. Half a surrogate pair in a text becomes U+FFFD, as wherever text comes in or
 * goes out; in the name of a field, where two names could become one, it is kept as an escape.
 *
 * @example
 * canonical({ b: [1, 'ü'], a: undefined, 10: '\ud83d' }) // '{"10":"\ufffd","b":[1,"ü"]}'
 */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value === 'string') return JSON.stringify(wellFormed(value))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined)
  fields.sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([name, inner]) => `${JSON.stringify(name)}:${canonical(inner)}`).join(',')}}`
}
