import type { Message, Source } from '../../domain/entry.ts'
import { clip } from '../../text/clip.ts'
import { smuggledIn } from './smuggled.ts'

/** A message as far as a summary needs it. */
export type Told = Pick<Message, 'id' | 'sequence' | 'role' | 'name' | 'content' | 'at'>

/** How long a summary may be; `fits` must hold for a text whenever it holds for a longer one. */
export type Target = {
  readonly words?: readonly [least: number, most: number]
  readonly fits?: (text: string) => boolean
}

/** A summary, and where each of its pieces was said. */
export type Summarised = { readonly text: string; readonly sources: readonly Source[] }

/** As white space parts them; counted in place, since it is asked of every draft. */
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

export const isWithin = (text: string, { words, fits }: Target): boolean =>
  (words === undefined || countWords(text) <= words[1]) && (fits === undefined || fits(text))

const titles: Readonly<Record<string, string>> = { user: 'User', assistant: 'Assistant', tool: 'Tool' }

/** How the speaker of a message is called in a summary; `System:` would look like an order from above. */
export function speakerOf({ role, name }: Pick<Told, 'role' | 'name'>): string {
  const given = clip((name ?? '').replace(/[:\s]+/g, ' ').trim(), 40, '').trimEnd()
  const isFit = /^[\p{L}\p{N}]/u.test(given) && !reserved.test(given) && smuggledIn(given).length === 0
  return isFit ? given : (titles[role] ?? 'Note')
}

const reserved = /^(?:also named|system|developer)$/i
