const [space, apostrophe, slash] = [32, 39, 47]

/** Character classes of the split patterns for ASCII. Everything else, including \r and \t, is `other`. */
const classes = { other: 0, lower: 1, upper: 2, digit: 3, punctuation: 4, space: 5, newline: 6 } as const
const classOfCode = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[a-z]/.test(character)) return classes.lower
  if (/[A-Z]/.test(character)) return classes.upper
  if (/[0-9]/.test(character)) return classes.digit
  if (code > space && code < 127) return classes.punctuation
  return character === ' ' ? classes.space : character === '\n' ? classes.newline : classes.other
})

/** Character code, or -1 past the end: an out-of-range charCodeAt would deoptimise every caller. */
export const codeAt = (text: string, at: number): number => (at < text.length ? text.charCodeAt(at) : -1)
export const isLowercase = (code: number): boolean => code > 96 && code < 123
export const isUppercase = (code: number): boolean => code > 64 && code < 91
const classAt = (text: string, at: number): number => {
  const code = codeAt(text, at)
  return code >= 0 && code < 128 ? (classOfCode[code] as number) : classes.other
}
const isLetterClass = (kind: number): boolean => kind === classes.lower || kind === classes.upper

/**
 * Returns the end of the piece that starts at `at` if it is ASCII and both encodings end it at the same position;
 * otherwise returns `at`, and the caller must use the split pattern. Most pieces take this path, which is several times
 * faster.
 */
export function endOfAsciiPiece(text: string, at: number): number {
  const kind = classAt(text, at)
  if (isLetterClass(kind)) return endOfWord(text, at, at)
  if (kind === classes.digit) return endOfDigits(text, at)
  if (kind === classes.newline) return endOfNewlines(text, at)
  if (kind !== classes.space && kind !== classes.punctuation) return at
  const next = classAt(text, at + 1)
  // A space or punctuation mark belongs to the word after it, except an apostrophe, which may start a contraction.
  if (isLetterClass(next)) return text.charCodeAt(at) === apostrophe ? at : endOfWord(text, at, at + 1)
  if (kind === classes.punctuation || next === classes.punctuation) return endOfPunctuation(text, at)
  return next === classes.digit ? at + 1 : at
}

/** Uppercase letters, then lowercase letters. */
function endOfWord(text: string, at: number, start: number): number {
  let end = start
  while (classAt(text, end) === classes.upper) end++
  while (classAt(text, end) === classes.lower) end++
  return isWordBoundary(codeAt(text, end)) ? end : at
}

/**
 * True if a word of ASCII letters certainly ends before this code. A non-ASCII letter, an accent or a contraction may
 * continue it.
 */
export const isWordBoundary = (code: number): boolean =>
  code < 65 ? code !== apostrophe : (code > 90 && code < 97) || (code > 122 && code < 128)

/** Up to three digits. Fewer than three may be followed by a non-ASCII digit. */
function endOfDigits(text: string, at: number): number {
  let end = at + 1
  while (end < at + 3 && classAt(text, end) === classes.digit) end++
  return end === at + 3 || codeAt(text, end) < 128 ? end : at
}

/** Punctuation, optionally after one space, with the newlines behind it. */
function endOfPunctuation(text: string, at: number): number {
  let end = at + 1
  while (classAt(text, end) === classes.punctuation) end++
  while (classAt(text, end) === classes.newline) end++
  // o200k_base includes slashes after the newlines, cl100k_base does not.
  return end === text.length || (classAt(text, end) !== classes.other && codeAt(text, end) !== slash) ? end : at
}

/** Consecutive newlines, if no other white space follows. */
function endOfNewlines(text: string, at: number): number {
  let end = at + 1
  while (classAt(text, end) === classes.newline) end++
  const kind = classAt(text, end)
  return end === text.length || (kind !== classes.other && kind !== classes.space) ? end : at
}
