import { hash } from 'node:crypto'
import { clip } from '../../text/clip.ts'

/** Characters a line's hash has: 30 bits are enough to see that a line changed, and leave open which of many lines it was. */
const width = 5
/** Files with more lines are only compared as a whole; more pairs of changed lines than this are counted without regard to their order. */
const most = { lines: 5_000, pairs: 1_000_000 }
/** How much of the changed lines is quoted. */
const quoted = { lines: 3, characters: 100 }

/**
 * A text as the hashes of its lines, one after the other; a text of too many lines as nothing. It matters neither how
 * lines end nor what white space is at their end.
 *
 * @example
 * packed('one\ntwo').length // 10
 */
export function packed(text: string): string {
  const lines = linesOf(text)
  return lines.length > most.lines ? '' : lines.map(short).join('')
}

/**
 * What changed between a text of which only `packed` was kept and the present one; `undefined` where too much is unknown
 * to say.
 *
 * @example
 * difference(packed('a\nb\nc'), 'a\nB!\nc') // '+1 −1 lines around 2: first changed lines: "B!"'
 */
export function difference(before: string, text: string): string | undefined {
  const lines = linesOf(text)
  if (before === '' || lines.length > most.lines) return undefined
  const old = before.match(new RegExp(`.{${width}}`, 'g')) ?? []
  const now = lines.map(short)
  const { head, tail } = sameEnds(old, now)
  const [gone, come] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)]
  if (gone.length === 0 && come.length === 0) return 'only line ends or white space at the end of lines changed'
  const kept = keptOf(gone, come)
  const counts = `+${come.length - kept} −${gone.length - kept} lines around ${range(head + 1, head + Math.max(1, come.length))}`
  const fresh = unknownTo(gone, come).map((at) => quote(lines[head + at] ?? ''))
  const shown = fresh.filter((line) => line !== '""').slice(0, quoted.lines)
  return shown.length === 0 ? counts : `${counts}: first changed lines: ${shown.join(', ')}`
}

const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
const short = (line: string): string => hash('sha256', line.trimEnd(), 'base64').slice(0, width)
const range = (first: number, last: number): string => (first === last ? `${first}` : `${first}–${last}`)
const quote = (line: string): string => JSON.stringify(clip(line.trim(), quoted.characters, '…'))

/** How many lines at the start and at the end are the same. */
function sameEnds(old: readonly string[], now: readonly string[]): { readonly head: number; readonly tail: number } {
  const shorter = Math.min(old.length, now.length)
  let head = 0
  while (head < shorter && old[head] === now[head]) head++
  let tail = 0
  while (tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  return { head, tail }
}

/** How many lines stayed: the longest common subsequence, or where that is too much work, the lines both have. */
function keptOf(gone: readonly string[], come: readonly string[]): number {
  if (gone.length * come.length > most.pairs) return come.length - unknownTo(gone, come).length
  let above = new Uint16Array(come.length + 1)
  for (const line of gone) {
    const row = new Uint16Array(come.length + 1)
    for (let at = 1; at < row.length; at++)
      row[at] = come[at - 1] === line ? (above[at - 1] ?? 0) + 1 : Math.max(above[at] ?? 0, row[at - 1] ?? 0)
    above = row
  }
  return above.at(-1) ?? 0
}

/** The places of lines that were not there before, each old line counted once. */
function unknownTo(gone: readonly string[], come: readonly string[]): number[] {
  const left = new Map<string, number>()
  for (const line of gone) left.set(line, (left.get(line) ?? 0) + 1)
  return come.flatMap((line, at) => {
    const count = left.get(line) ?? 0
    if (count > 0) left.set(line, count - 1)
    return count > 0 ? [] : [at]
  })
}
