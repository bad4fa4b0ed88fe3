import type { Message, Source } from '../../domain/entry.ts'

/** Fields of a message that a summary uses. */
export type SummaryMessage = Pick<
  Message,
  'id' | 'sequence' | 'role' | 'name' | 'content' | 'at' | 'toolCalls' | 'toolCallId'
>

/** Size limits of a summary. `fits` must be monotonic: true for every prefix of a text it is true for. */
export type SummaryTarget = {
  readonly words?: readonly [min: number, max: number]
  readonly fits?: (text: string) => boolean
}

/** A summary and the sources of its pieces. */
export type SummaryText = { readonly text: string; readonly sources: readonly Source[] }

/** Counts words separated by white space. Scans in place because it runs for every draft. */
export function countWords(text: string): number {
  let count = 0
  let isInside = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    const isSpace = code === 32 || (code >= 9 && code <= 13) || (code > 127 && /\s/.test(text.charAt(at)))
    if (!isSpace && !isInside) count++
    isInside = !isSpace
  }
  return count
}

export const fitsTarget = (text: string, { words, fits }: SummaryTarget): boolean =>
  (words === undefined || countWords(text) <= words[1]) && (fits === undefined || fits(text))

export const collapseWhitespace = (text: string): string => text.replace(/\s+/g, ' ')

/** Item of a list at the end of a summary: a command, a file, or a name or number that no piece shows. */
export type NamedEntity = { readonly text: string; readonly sources: readonly Source[] }
