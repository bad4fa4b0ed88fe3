const graphemes = new Intl.Segmenter('en', { granularity: 'grapheme' })

/** Characters around a cut in which grapheme boundaries are searched first; larger windows are tried only if needed. */
const firstWindowCharacters = 64
/** A longer run of marks is not a character that anyone reads: it may be split, so that a cut takes constant time. */
const maxGraphemeCharacters = 1_024
/** Runs of at least so many marks are skipped without segmentation, which takes milliseconds for them. */
const minMarkRun = 32
const mark = /[\p{Mn}\p{Me}\u200d]/u

/**
 * Cuts a text to its first characters (UTF-16 units) and appends a mark, if it is longer. Never splits a grapheme of up
 * to 1,024 characters: the cut moves before it. If the first grapheme is longer than the limit, its first code point is
 * kept.
 *
 * @example
 * clip('a'.repeat(101), 100) // 'aaa…' of 100 letters, then '...'
 */
export function clip(text: string, characters: number, mark = '...'): string {
  if (text.length <= characters) return text
  return text.slice(0, findHeadEnd(text, characters)) + mark
}

/** Cuts a text to its first and last characters with a mark between them; never splits a grapheme. */
export function clipMiddle(text: string, head: number, tail: number, mark = ' ... '): string {
  if (head + tail >= text.length) return text
  const start = tail > 0 ? boundaryFrom(text, text.length - tail) : text.length
  const end = findHeadEnd(text, head === 0 && tail > 0 && start === text.length ? 1 : head)
  return text.slice(0, end) + mark + text.slice(start)
}

/** Returns the end of the head: a grapheme boundary, or the end of the first code point if there is none before. */
function findHeadEnd(text: string, characters: number): number {
  if (characters <= 0) return 0
  return boundaryUpTo(text, characters) || (isInsidePair(text, 1) ? 2 : 1)
}

/** Returns the last grapheme boundary at or before an index inside the text. */
function boundaryUpTo(text: string, index: number): number {
  if (isAsciiBoundary(text, index)) return index
  const run = findMarksBefore(text, index)
  if (index - run >= maxGraphemeCharacters) return index
  if (index - run < minMarkRun) return segmentUpTo(text, index)
  // A mark belongs to the character before the run; other characters do not, unless a joiner precedes them.
  if (mark.test(text.charAt(index)) || text.charAt(index - 1) === '\u200d') return segmentUpTo(text, run)
  return index
}

function segmentUpTo(text: string, index: number): number {
  for (let window = firstWindowCharacters; ; window *= 4) {
    const from = findSafeStart(text, Math.max(0, index - window))
    const segments = graphemes.segment(text.slice(from, index + 2))
    const found = segments.containing(index - from)?.index ?? 0
    if (from === 0) return found
    // Missing context before the window can make its first boundary wrong, but no later one.
    if (found > 0 && (segments.containing(found - 1)?.index ?? 0) > 0) return from + found
    if (window >= maxGraphemeCharacters) return isInsidePair(text, index) ? index - 1 : index
  }
}

/** Returns the start of the run of marks before an index, up to the length of the longest grapheme. */
function findMarksBefore(text: string, index: number): number {
  let start = index
  while (start > 0 && index - start < maxGraphemeCharacters && mark.test(text.charAt(start - 1))) start--
  return start
}

/** Returns the first grapheme boundary at or after an index inside the text. */
function boundaryFrom(text: string, index: number): number {
  const before = boundaryUpTo(text, index)
  if (before === index) return index
  let run = index
  while (run - index < maxGraphemeCharacters && mark.test(text.charAt(run))) run++
  if (run - index >= maxGraphemeCharacters || run === text.length) return run
  if (run - index >= minMarkRun && text.charAt(run - 1) !== '\u200d') return run
  for (let window = firstWindowCharacters; ; window *= 4) {
    const end = Math.min(text.length, index + window)
    const first = graphemes.segment(text.slice(before, end)).containing(0)
    const length = first?.segment.length ?? 0
    if (before + length < end - 1 || end === text.length) return before + length
    if (window >= maxGraphemeCharacters) return isInsidePair(text, end) ? end + 1 : end
  }
}

/** Fast path: there is always a boundary between two printable ASCII characters. */
function isAsciiBoundary(text: string, index: number): boolean {
  const left = text.charCodeAt(index - 1)
  const right = text.charCodeAt(index)
  return left > 31 && left < 127 && right > 31 && right < 127
}

/** Moves back out of a surrogate pair and over flags, whose regional indicators pair up from the first of the run. */
function findSafeStart(text: string, index: number): number {
  let start = isInsidePair(text, index) ? index - 1 : index
  const first = start - maxGraphemeCharacters
  while (start > Math.max(1, first) && isRegionalIndicator(text.codePointAt(start - 2))) start -= 2
  return start
}

function isInsidePair(text: string, index: number): boolean {
  const left = text.charCodeAt(index - 1)
  const right = text.charCodeAt(index)
  return left >= 0xd800 && left <= 0xdbff && right >= 0xdc00 && right <= 0xdfff
}

const isRegionalIndicator = (point: number | undefined): boolean =>
  point !== undefined && point >= 0x1f1e6 && point <= 0x1f1ff
