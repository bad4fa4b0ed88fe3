import { wellFormed } from '../domain/chat.ts'
import { type Derived, isSilent } from '../domain/entry.ts'
import { disarmed } from '../text/memoryTag.ts'

/** What a derived entry says, with each of its texts passed through `part`; nothing, if it is not for showing. */
export function statement(entry: Derived, part: (text: string) => string): string {
  if (isSilent(entry)) return ''
  if (entry.kind === 'summary') return part(entry.text)
  if (entry.kind === 'item') return `[${entry.category}] ${part(entry.content)}`
  const value = part(typeof entry.value === 'string' ? entry.value : JSON.stringify(entry.value))
  if (entry.kind === 'fact') return `${entry.field}${entry.key === '' ? '' : `.${entry.key}`}: ${value}`
  return entry.key === '' ? `[${entry.category}] ${value}` : `${entry.category}, ${entry.key}: ${value}`
}

/** A statement as a line of memory. */
export const lineOfStatement = (text: string): string => `${anchored(disarmed(wellFormed(text)))}\n`

/** Begins with a character before which every tokenizer splits after a line end: not white space, not a slash. */
function anchored(text: string): string {
  const trimmed = text.trimStart()
  return trimmed.startsWith('/') ? `- ${trimmed}` : trimmed
}
