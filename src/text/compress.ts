import type { Tokens } from '../domain/entry.ts'
import { selectSentences } from './sections.ts'
import { squeezeSpace, stripComments } from './squeeze.ts'

/** What was taken out of a text, in the order it was done. */
export type Step = 'space' | 'comments' | 'sections'

/**
 * Shortens a text until it fits: first redundant white space goes, then comments, then all but the sentences that say
 * most. A text that fits is not touched; one of which not even a sentence fits comes back empty.
 *
 * @example
 * compress('a   b', 1, (text) => text.length / 3) // { text: 'a b', steps: ['space'] }
 */
export function compress(
  text: string,
  target: Tokens,
  count: (text: string) => Tokens,
): { text: string; steps: Step[] } {
  const fits = (candidate: string): boolean => count(candidate) <= target
  const steps: Step[] = []
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
