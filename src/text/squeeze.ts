import { uncomment } from './comments.ts'
import { type FencedLine, linesOf } from './fences.ts'

/** Deeper indentation outside code is decoration. */
const deepest = 16

/**
 * A text without redundant white space: at most one blank line in a row, one blank between words, none at the end of a
 * line. Indentation stays, because lists and code mean something by it, and fenced code keeps what is inside its lines.
 *
 * @example
 * squeezeSpace('a   b  \n\n\n\nc\n') // 'a b\n\nc'
 */
export function squeezeSpace(text: string): string {
  const kept: string[] = []
  for (const line of linesOf(text)) {
    const content = text.slice(line.start, line.end).trimEnd()
    if (content !== '') kept.push(line.fence === 'none' ? squeezeLine(content) : content)
    else if (kept.length > 0 && kept[kept.length - 1] !== '') kept.push('')
  }
  if (kept[kept.length - 1] === '') kept.pop()
  return kept.join('\n')
}

function squeezeLine(line: string): string {
  const words = line.trimStart()
  const indent = line.length - words.length
  return line.slice(0, Math.min(indent, deepest)) + words.replace(/\s{2,}/g, ' ')
}

/**
 * A text without the comments in its fenced code, in the languages it knows; or, if a language is given, code of that
 * language without them.
 *
 * @example
 * stripComments('```js\n// now\nrun()\n```') // '```js\nrun()\n```'
 */
export function stripComments(text: string, language?: string): string {
  if (language !== undefined) return uncomment(text, language)
  const lines = linesOf(text)
  const kept: string[] = []
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as FencedLine
    if (line.fence !== 'inside') {
      kept.push(text.slice(line.start, line.end))
      continue
    }
    let last = at
    while (lines[last + 1]?.fence === 'inside') last++
    const block = text.slice(line.start, lines[last]?.end)
    const bare = uncomment(block, line.language)
    if (bare !== '' || block === '') kept.push(bare)
    at = last
  }
  return kept.join('\n')
}
