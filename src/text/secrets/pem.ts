import type { SecretMatch } from './match.ts'

const boundary = /-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
// Separators of lines: line breaks, also escaped as `\n`, with quotation or string syntax around them.
const gap = String.raw`(?:\\{1,4}[nrt]|[\s"'\`>|+,\\]){0,40}`
const header = String.raw`(?:${gap}[A-Z][\w-]{1,20}: [^\n\\]{1,120}(?=[\n\\])){0,6}`
/** Base64 lines of a key; the last one may be short if nothing follows it on the line. */
const lines = new RegExp(
  String.raw`${header}(?:${gap}[A-Za-z0-9+/=]{16,})+(?:${gap}[A-Za-z0-9+/=]{1,15}(?=[ \t"'\`]{0,8}(?:[\n\r\\]|$)))?`,
  'y',
)
/** A key of 16,384 bits has about 13,000 characters. */
const maxPemCharacters = 20_000

/** Cheap prefilter: if false, the text contains no PEM block. */
export const mayContainPem = (text: string): boolean => text.includes('-----')

/** Finds private keys between `BEGIN` and `END`; a truncated key ends with its last line. */
export function findPemBlocks(text: string): SecretMatch[] {
  const boundaries = [...text.matchAll(boundary)]
  const found: SecretMatch[] = []
  boundaries.forEach((begin, index) => {
    lines.lastIndex = begin.index + begin[0].length
    // Code that searches for PEM blocks contains the boundaries without key lines.
    if (begin[1] !== 'BEGIN' || !lines.test(text)) return
    const next = boundaries[index + 1]
    const isComplete = next?.[1] === 'END' && next.index - begin.index < maxPemCharacters
    found.push({ kind: 'pem', start: begin.index, end: isComplete ? next.index + next[0].length : lines.lastIndex })
  })
  return found
}
