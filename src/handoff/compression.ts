import { squeezeSpace, stripComments } from '../text/squeeze.ts'
import { largest } from '../upkeep/summarise/pack.ts'

/** What was taken out of a conversation: each includes the ones before it. */
export type Compression = 'none' | 'whitespace' | 'comments' | 'sections'

export type Pressed = { readonly texts: readonly string[]; readonly compression: Compression }

/**
 * Takes redundant white space out of what was said, then comments, the oldest first, and stops as soon as it fits. If it never
 * does, sections have to be told in short: the texts come back without white space and comments.
 *
 * @example
 * pressed(['a   b'], ([text]) => text.length < 4) // { texts: ['a b'], compression: 'whitespace' }
 */
export function pressed(texts: readonly string[], fits: (texts: readonly string[]) => boolean): Pressed {
  if (fits(texts)) return { texts, compression: 'none' }
  const squeezed = texts.map(squeezeSpace)
  if (fits(squeezed)) return { texts: squeezed, compression: 'whitespace' }
  const bare = squeezed.map((text) => stripComments(text))
  if (!fits(bare)) return { texts: bare, compression: 'sections' }
  return { texts: withNewest(squeezed, fits), compression: 'comments' }
}

/** Without comments from the first line on, up to where the rest fits as it is. */
function withNewest(texts: readonly string[], fits: (texts: readonly string[]) => boolean): readonly string[] {
  const lines = texts.map((text) => text.split('\n'))
  const count = lines.reduce((sum, own) => sum + own.length, 0)
  const keeping = (newest: number): readonly string[] => {
    let older = count - newest
    return lines.map((own) => {
      const stripped = own.slice(0, older)
      older -= stripped.length
      return [
        ...(stripped.length === 0 ? [] : [stripComments(stripped.join('\n'))]),
        ...own.slice(stripped.length),
      ].join('\n')
    })
  }
  return keeping(largest(count, (newest) => fits(keeping(newest))))
}
