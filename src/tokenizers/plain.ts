const [space, apostrophe, slash] = [32, 39, 47]

/** What a character is to the encodings; anything that is not plain ASCII is for their patterns to tell. */
const kinds = { other: 0, small: 1, capital: 2, digit: 3, sign: 4, space: 5, line: 6 } as const
const kindOf = Uint8Array.from({ length: 128 }, (_, code) => {
  const letter = String.fromCharCode(code)
  if (/[a-z]/.test(letter)) return kinds.small
  if (/[A-Z]/.test(letter)) return kinds.capital
  if (/[0-9]/.test(letter)) return kinds.digit
  if (code > space && code < 127) return kinds.sign
  return letter === ' ' ? kinds.space : letter === '\n' ? kinds.line : kinds.other
})

/** The code of a character, or -1 behind the last: asking a text for what it does not have would slow down every other look. */
export const codeAt = (text: string, at: number): number => (at < text.length ? text.charCodeAt(at) : -1)
export const isSmall = (code: number): boolean => code > 96 && code < 123
const kindAt = (text: string, at: number): number => {
  const code = codeAt(text, at)
  return code >= 0 && code < 128 ? (kindOf[code] as number) : kinds.other
}
const isLetter = (kind: number): boolean => kind === kinds.small || kind === kinds.capital

/**
 * The end of the piece that begins here, where both encodings end it at the same place for plain ASCII; the place itself,
 * where it takes their patterns to tell. Most pieces are plain, and looking at a few characters takes a fraction of the time.
 */
export function endOfPlain(text: string, at: number): number {
  const kind = kindAt(text, at)
  if (isLetter(kind)) return endOfWord(text, at, at)
  if (kind === kinds.digit) return endOfDigits(text, at)
  if (kind === kinds.line) return endOfLines(text, at)
  if (kind !== kinds.space && kind !== kinds.sign) return at
  const next = kindAt(text, at + 1)
  // A space or a sign belongs to the word behind it, but an apostrophe may be that of a contraction.
  if (isLetter(next)) return text.charCodeAt(at) === apostrophe ? at : endOfWord(text, at, at + 1)
  if (kind === kinds.sign || next === kinds.sign) return endOfSigns(text, at)
  return next === kinds.digit ? at + 1 : at
}

/** Capitals, then small letters. */
function endOfWord(text: string, at: number, start: number): number {
  let end = start
  while (kindAt(text, end) === kinds.capital) end++
  while (kindAt(text, end) === kinds.small) end++
  return endsWord(codeAt(text, end)) ? end : at
}

/** Whether a word of plain letters is sure to end before this: a letter of another script, an accent, the rest of a contraction may still belong to it. */
export const endsWord = (code: number): boolean =>
  code < 65 ? code !== apostrophe : (code > 90 && code < 97) || (code > 122 && code < 128)

/** Up to three; what follows the first two may be a digit of another script. */
function endOfDigits(text: string, at: number): number {
  let end = at + 1
  while (end < at + 3 && kindAt(text, end) === kinds.digit) end++
  return end === at + 3 || codeAt(text, end) < 128 ? end : at
}

/** Signs in a row, with a space before them or not, and the ends of lines behind them. */
function endOfSigns(text: string, at: number): number {
  let end = at + 1
  while (kindAt(text, end) === kinds.sign) end++
  while (kindAt(text, end) === kinds.line) end++
  // Behind the end of a line one of the encodings takes slashes along.
  return end === text.length || (kindAt(text, end) !== kinds.other && codeAt(text, end) !== slash) ? end : at
}

/** Ends of lines in a row, if no other white space follows. */
function endOfLines(text: string, at: number): number {
  let end = at + 1
  while (kindAt(text, end) === kinds.line) end++
  const kind = kindAt(text, end)
  return end === text.length || (kind !== kinds.other && kind !== kinds.space) ? end : at
}
