import { clipMiddle } from '../../text/clip.ts'
import { type FencedLine, linesOf } from '../../text/fences.ts'
import type { Category } from '../item.ts'

/** Something found in a message, and where: `text.slice(start, end)`, cut if it is long. */
export type Found = {
  readonly category: Category
  readonly content: string
  readonly start: number
  readonly end: number
}

/** So much of a block is kept. */
const most = { head: 3_000, tail: 1_000 }
/** So many lines make a table: its head, its rule and a row. */
const leastTable = 3
/** So many lines after a command are taken for its result. */
const result = 8

const dataLanguages = new Set(
  'json json5 jsonc jsonl csv tsv yaml yml toml ini log output console terminal text txt md markdown mdc'.split(' '),
)

/** The blocks of a text: fenced code, diffs, tables, commands with their results, and JSON; what is in none of them is in `rest`. */
export function blocksIn(text: string): { readonly found: readonly Found[]; readonly rest: readonly FencedLine[] } {
  const whole = jsonIn(text)
  if (whole !== undefined) return { found: [whole], rest: [] }
  const lines = linesOf(text)
  const found: Found[] = []
  const rest: FencedLine[] = []
  for (let at = 0; at < lines.length; ) {
    const end = endOf(text, lines, at)
    if (end === undefined) rest.push(lines[at++] as FencedLine)
    else {
      found.push(blockOf(text, lines.slice(at, end.next), end.category))
      at = end.next
    }
  }
  return { found, rest }
}

/** The line after the block that begins here, if one does. */
function endOf(
  text: string,
  lines: readonly FencedLine[],
  at: number,
): { readonly next: number; readonly category: Category } | undefined {
  const line = lines[at] as FencedLine
  const said = (place: number): string => text.slice(lines[place]?.start, lines[place]?.end)
  const until = (holds: (line: string) => boolean, limit = Number.POSITIVE_INFINITY): number => {
    let next = at + 1
    while (next < lines.length && next - at <= limit && lines[next]?.fence === 'none' && holds(said(next))) next++
    return next
  }
  if (line.fence === 'open') {
    let next = at + 1
    while (lines[next]?.fence === 'inside') next++
    const isEmpty = next === at + 1
    const category = dataLanguages.has(line.language) || isCommand(said(at + 1)) ? 'data' : 'code'
    return isEmpty ? undefined : { next: lines[next]?.fence === 'close' ? next + 1 : next, category }
  }
  if (line.fence !== 'none') return undefined
  const first = said(at)
  if (isDiffStart(first)) return { next: until(isDiff), category: 'code' }
  if (isRow(first) && until(isRow) - at >= leastTable) return { next: until(isRow), category: 'data' }
  return isCommand(first)
    ? { next: until((next) => /\S/.test(next) && !isCommand(next), result), category: 'data' }
    : undefined
}

const isDiffStart = (line: string): boolean => /^(?:diff --git |@@ -\d)/.test(line)
const isDiff = (line: string): boolean =>
  /^(?:[-+ @\\]|diff --git |index |new file|deleted file|similarity|rename )/.test(line)
const isRow = (line: string): boolean => /^\s{0,8}\|/.test(line)
/** Behind a prompt: `$ npm test`, `ann@host src % npm test`. */
const isCommand = (line: string): boolean =>
  /^\s{0,8}(?:[\w.@:~/#-]{1,60} ){0,2}(?:[\w.@:~/#-]{0,60}\$|[%❯]) \S/.test(line)

function blockOf(text: string, lines: readonly FencedLine[], category: Category): Found {
  const [start, end] = [lines[0]?.start ?? 0, lines.at(-1)?.end ?? 0]
  const content = clipMiddle(text.slice(start, end).trimEnd(), most.head, most.tail, '\n...\n')
  return { category, content, start, end }
}

function jsonIn(text: string): Found | undefined {
  const json = text.trim()
  if (!/^[[{]/.test(json) || !/[\]}]$/.test(json.slice(-1))) return undefined
  try {
    JSON.parse(json)
    return { category: 'data', content: clipMiddle(json, most.head, most.tail, '\n...\n'), start: 0, end: text.length }
  } catch {
    return undefined
  }
}
