import { clip } from '../../text/clip.ts'
import { disarmed } from '../../text/memoryTag.ts'

/** More of a row is not told. */
const longest = 1_000

/** On one line, so that nothing in it can begin a heading or a list of its own. */
export const inLine = (text: string): string => disarmed(clip(text, longest).replace(/\s+/g, ' ').trim())

/**
 * What somebody else says, as data: fenced with more strokes than it has anywhere, so that it cannot close the fence.
 *
 * @example
 * fenced('a ``` b') // '````text\na ``` b\n````'
 */
export function fenced(text: string, language = 'text'): string {
  let longest = 2
  for (const { 0: run } of text.matchAll(/`{3,}/g)) longest = Math.max(longest, run.length)
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${disarmed(text)}\n${fence}`
}
