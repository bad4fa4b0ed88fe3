import type { FoundSecret } from './found.ts'

const edge = /-----(BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
// Between the lines: line ends, also as `\n` in a string, and what a quotation or a program puts around them.
const gap = String.raw`(?:\\{1,4}[nrt]|[\s"'\`>|+,\\]){0,40}`
const header = String.raw`(?:${gap}[A-Z][\w-]{1,20}: [^\n\\]{1,120}(?=[\n\\])){0,6}`
/** The lines of a key; the last may be short when it stands alone. */
const lines = new RegExp(
  String.raw`${header}(?:${gap}[A-Za-z0-9+/=]{16,})+(?:${gap}[A-Za-z0-9+/=]{1,15}(?=[ \t"'\`]{0,8}(?:[\n\r\\]|$)))?`,
  'y',
)
/** A key of 16,384 bits takes 13,000 characters. */
const longest = 20_000

/** Whether there may be any: if not, there are none. */
export const mayHoldPem = (text: string): boolean => text.includes('-----')

/** Private keys between `BEGIN` and `END`; one that was cut off goes as far as its lines do. */
export function pemBlocksIn(text: string): FoundSecret[] {
  const edges = [...text.matchAll(edge)]
  const found: FoundSecret[] = []
  edges.forEach((begin, at) => {
    lines.lastIndex = begin.index + begin[0].length
    // A program that looks for such a block only names its edges.
    if (begin[1] !== 'BEGIN' || !lines.test(text)) return
    const next = edges[at + 1]
    const isWhole = next?.[1] === 'END' && next.index - begin.index < longest
    found.push({ kind: 'pem', start: begin.index, end: isWhole ? next.index + next[0].length : lines.lastIndex })
  })
  return found
}
