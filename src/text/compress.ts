import type { Tokens } from '../domain/entry.ts'
import { runSync, type Work } from '../domain/work.ts'
import { stripComments } from './comments.ts'
import { linesPerStep, splitFencedLinesInSteps } from './fences.ts'
import { selectSentences } from './selectSentences.ts'

/** Compression steps in the order they are tried. */
type CompressionStep = 'space' | 'comments' | 'sections'

/** Deeper indentation outside code is decoration. */
const maxIndentCharacters = 16

/**
 * Shortens a text until it fits: removes redundant white space, then comments, then all but the most informative
 * sentences. A text that fits is returned unchanged; if not even one sentence fits, the result is empty.
 *
 * @example
 * compress('a   b', 1, (text) => text.length / 3) // { text: 'a b', steps: ['space'] }
 */
export function compress(
  text: string,
  target: Tokens,
  count: (text: string) => Tokens,
): { text: string; steps: CompressionStep[] } {
  const fits = (candidate: string): boolean => count(candidate) <= target
  const steps: CompressionStep[] = []
  if (fits(text)) return { text, steps }
  let current = text
  for (const [step, shorten] of [
    ['space', squeezeSpace],
    ['comments', stripComments],
  ] as const) {
    const shorter = shorten(current)
    if (shorter === current) continue
    current = shorter
    steps.push(step)
    if (fits(current)) return { text: current, steps }
  }
  return { text: selectSentences(current, fits), steps: [...steps, 'sections'] }
}

/**
 * Removes redundant white space: leaves at most one blank line in a row, one space between words and none at the end of
 * a line. Indentation stays, because it has a meaning in lists and code; lines of fenced code are not changed inside.
 *
 * @example
 * squeezeSpace('a   b  \n\n\n\nc\n') // 'a b\n\nc'
 */
export const squeezeSpace = (text: string): string => runSync(squeezeSpaceInSteps(text))

/** `squeezeSpace` as interruptible work. */
export function* squeezeSpaceInSteps(text: string): Work<string> {
  const lines: string[] = []
  // Many blank lines in a row are dropped at once, because each line costs more than its characters.
  const source = text.replace(/\n{3,}/g, '\n\n')
  for (const { start, end, fence } of yield* splitFencedLinesInSteps(source)) {
    const line = source.slice(start, end).trimEnd()
    if (line !== '') lines.push(fence === 'none' ? squeezeLine(line) : line)
    else if (lines.length > 0 && lines[lines.length - 1] !== '') lines.push('')
    if (lines.length % linesPerStep === 0) yield linesPerStep
  }
  if (lines[lines.length - 1] === '') lines.pop()
  return lines.join('\n')
}

function squeezeLine(line: string): string {
  const words = line.trimStart()
  const indent = line.length - words.length
  return line.slice(0, Math.min(indent, maxIndentCharacters)) + words.replace(/\s{2,}/g, ' ')
}
