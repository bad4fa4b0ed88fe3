import { squeezeSpace, stripComments } from '../text/squeeze.ts'

/** What was taken out of a conversation: each includes the ones before it. */
export type Compression = 'none' | 'whitespace' | 'comments' | 'sections'

const steps: readonly (readonly [Compression, (text: string) => string])[] = [
  ['none', (text) => text],
  ['whitespace', squeezeSpace],
  ['comments', stripComments],
]

/**
 * Takes redundant white space out of what was said, then comments, and stops at the first that fits. If none does, sections
 * have to be told in short: the texts come back without white space and comments.
 *
 * @example
 * pressed(['a   b'], ([text]) => text.length < 4) // { texts: ['a b'], compression: 'whitespace' }
 */
export function pressed(
  texts: readonly string[],
  fits: (texts: readonly string[]) => boolean,
): { readonly texts: readonly string[]; readonly compression: Compression } {
  let current = texts
  for (const [compression, shorten] of steps) {
    current = current.map((text) => shorten(text))
    if (fits(current)) return { texts: current, compression }
  }
  return { texts: current, compression: 'sections' }
}
