const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/**
 * The first characters (UTF-16 units) of a text and a mark, if it has more. What a reader sees as one character is never
 * split: the cut moves before it. Of a text that begins with a larger one, its first code point is kept.
 *
 * @example
 * clip('a'.repeat(101), 100) // 'aaa…' of 100 letters, then '...'
 */
export function clip(text: string, characters: number, mark = '...'): string {
  if (text.length <= characters) return text
  return text.slice(0, headEnd(text, characters)) + mark
}

/** The first and the last characters of a text with a mark between them, cut with the same care as by `clip`. */
export function clipMiddle(text: string, head: number, tail: number, mark = ' ... '): string {
  if (head + tail >= text.length) return text
  const start = tail > 0 ? boundaryFrom(text, text.length - tail) : text.length
  const end = headEnd(text, head === 0 && tail > 0 && start === text.length ? 1 : head)
  return text.slice(0, end) + mark + text.slice(start)
}

/** A broken character is left out, but never all there is. */
function headEnd(text: string, characters: number): number {
  if (characters <= 0) return 0
  return boundaryUpTo(text, characters) || (isPair(text, 1) ? 2 : 1)
}

/** The last boundary between two visible characters at or before a place inside the text. */
function boundaryUpTo(text: string, place: number): number {
  if (isPlainBoundary(text, place)) return place
  for (let reach = 64; ; reach *= 4) {
    const from = sureStart(text, Math.max(0, place - reach))
    const segments = graphemes.segment(text.slice(from, place + 2))
    const index = segments.containing(place - from)?.index ?? 0
    if (from === 0) return index
    // Context missing before the window can make its first boundary a false one, but no later one.
    if (index > 0 && (segments.containing(index - 1)?.index ?? 0) > 0) return from + index
  }
}

/** The first boundary at or after a place inside the text. */
function boundaryFrom(text: string, place: number): number {
  const before = boundaryUpTo(text, place)
  if (before === place) return place
  for (let reach = 64; ; reach *= 4) {
    const end = Math.min(text.length, place + reach)
    const first = graphemes.segment(text.slice(before, end)).containing(0)
    const length = first?.segment.length ?? 0
    if (before + length < end - 1 || end === text.length) return before + length
  }
}

/** Between two printable ASCII characters there is always a boundary, and that is what most texts are made of. */
function isPlainBoundary(text: string, place: number): boolean {
  const left = text.charCodeAt(place - 1)
  const right = text.charCodeAt(place)
  return left > 31 && left < 127 && right > 31 && right < 127
}

/** Moves back out of a surrogate pair and over flags, whose letters pair up from the first of the run. */
function sureStart(text: string, place: number): number {
  let at = isPair(text, place) ? place - 1 : place
  while (at > 1 && isFlagLetter(text.codePointAt(at - 2))) at -= 2
  return at
}

function isPair(text: string, place: number): boolean {
  const left = text.charCodeAt(place - 1)
  const right = text.charCodeAt(place)
  return left >= 0xd800 && left <= 0xdbff && right >= 0xdc00 && right <= 0xdfff
}

const isFlagLetter = (point: number | undefined): boolean => point !== undefined && point >= 0x1f1e6 && point <= 0x1f1ff
