export type TextPart = { readonly text: string; readonly isMatch: boolean; readonly isPassage: boolean }

type Span = readonly [start: number, end: number]

/** Characters of a text that are shown, around the passage. */
const windowCharacters = 600
/** Characters of context before the passage. */
const leadCharacters = 120
/** Letters that the ends of a word may differ by: `tickets` matches `ticket`. */
const minStemLetters = 4

/**
 * Splits a text into the parts of its passage that matched a query, the words of the query in it, and the rest. A long
 * text is cut around the passage, or without one around the first word.
 */
export function highlightTerms(text: string, query: string, passage?: Span): readonly TextPart[] {
  const pattern = termPattern(query)
  const focus = passage?.[0] ?? Math.max(0, pattern === undefined ? 0 : text.search(pattern))
  const start = text.length > windowCharacters && focus > leadCharacters ? focus - leadCharacters : 0
  const end = Math.min(text.length, start + windowCharacters)
  const [from, to] = passage === undefined ? [start, start] : [Math.max(start, passage[0]), Math.min(end, passage[1])]
  const split = (part: string, isPassage: boolean): readonly TextPart[] =>
    (pattern === undefined ? [part] : part.split(pattern))
      .map((piece, index) => ({ text: piece, isMatch: index % 2 === 1, isPassage }))
      .filter((piece) => piece.text !== '')
  const ellipsis = (isShown: boolean, mark: string): readonly TextPart[] =>
    isShown ? [{ text: mark, isMatch: false, isPassage: false }] : []
  return [
    ...ellipsis(start > 0, '… '),
    ...split(text.slice(start, from), false),
    ...split(text.slice(from, to), true),
    ...split(text.slice(Math.max(from, to), end), false),
    ...ellipsis(end < text.length, ' …'),
  ]
}

/** Matches the words of a query, whatever their ending; undefined without one of three letters or more. */
function termPattern(query: string): RegExp | undefined {
  const stems = (query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []).map((word) =>
    word.length > minStemLetters + 2 ? word.slice(0, -2) : word,
  )
  if (stems.length === 0) return undefined
  return new RegExp(`(?<![\\p{L}\\p{N}])((?:${stems.join('|')})[\\p{L}\\p{N}]*)`, 'giu')
}
