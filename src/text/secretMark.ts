import { marks } from './secrets/found.ts'
import { findSecrets } from './secrets.ts'

/** What stands in the place of a secret. */
export const markOf = (number: number): string => `⟨secret:${number}⟩`

/** The marks in a text. */
export const marksIn = (text: string): readonly string[] => (text.includes('⟨secret:') ? (text.match(marks) ?? []) : [])

/**
 * A text with something else in the place of each secret.
 *
 * @example
 * withMarks('my password is hunter2', () => '⟨secret:7⟩') // 'my password is ⟨secret:7⟩'
 */
export function withMarks(text: string, mark: (secret: string) => string): string {
  let [result, from] = ['', 0]
  for (const { start, end } of findSecrets(text)) {
    result += text.slice(from, start) + mark(text.slice(start, end))
    from = end
  }
  return from === 0 ? text : result + text.slice(from)
}

/** A text with values put back in the place of marks; a mark nobody knows stays. */
export const withValues = (text: string, value: (mark: string) => string | undefined): string =>
  text.replace(marks, (mark) => value(mark) ?? mark)

/** A text with one mark for all secrets, and for their marks: what was sent and what is kept of it become the same. */
export const barringSecrets = (text: string): string => withMarks(text, () => markOf(0)).replace(marks, markOf(0))
