import type { Line } from './lines.ts'

/** No more lines than these are told for the sake of one. */
const most = 4

/** What is told with a line: all of `needed`, its own place among them, and one of `beside`, the best first, if there are any. */
export type Company = { readonly needed: readonly number[]; readonly beside: readonly number[] }

/**
 * For each line what is told with it: a bracket says nothing without the line before it, a line that leads in to something
 * nothing without the one after it, a line of code little without a neighbour, and a line of a diff nothing without the head
 * of its hunk. A line that would say nothing even so has no company at all.
 */
export function companyOf(lines: readonly Line[]): readonly (Company | undefined)[] {
  const hunks = hunksIn(lines)
  return lines.map((_, place) => {
    const group = needed(lines, place)
    if ([...group].every((at) => isBare(lines[at]))) return undefined
    const code = [...group].filter((at) => lines[at]?.block !== undefined && !isBare(lines[at]))
    const beside = code.length === 1 ? neighbours(lines, code[0] as number, group) : []
    const hunk = hunks[place]
    return { needed: hunk === undefined ? [...group] : [...group, hunk], beside }
  })
}

/** A line, and those without which it says nothing. */
function needed(lines: readonly Line[], place: number): Set<number> {
  const group = new Set([place])
  for (const at of group) {
    if (group.size >= most) break
    const line = lines[at] as Line
    if (isBare(line) && isBeside(line, lines[at - 1])) group.add(at - 1)
    if (leadsIn(line) && lines[at + 1]?.saying === line.saying) group.add(at + 1)
  }
  return group
}

/** Without a name, a number or a word. */
const isBare = (line: Line | undefined): boolean => line !== undefined && !/[\p{L}\p{N}]/u.test(line.text)

/** What goes on in the next line: a signature without its body looks like an empty one. */
const leadsIn = ({ text, block }: Line): boolean => (block === undefined ? text.endsWith(':') : /[[({:]$/.test(text))

const isBeside = (line: Line, other: Line | undefined): boolean =>
  other?.saying === line.saying && other.block === line.block

/** The neighbours of a line of code, first what leads in to it, then what goes on from it. */
function neighbours(lines: readonly Line[], place: number, group: ReadonlySet<number>): readonly number[] {
  const line = lines[place] as Line
  const sides = [place + 1, place - 1].filter((side) => isBeside(line, lines[side]) && !group.has(side))
  const rank = (side: number): number => {
    const other = lines[side] as Line
    if (isBare(other)) return 3
    return leadsIn(other) ? (side < place ? 0 : 2) : 1
  }
  return sides.sort((left, right) => rank(left) - rank(right))
}

const head = /^@@ -\d/
const changed = /^(?:[-+ \\]|@@)/

/** The place of the head of the hunk that a line belongs to, where it belongs to one. */
function hunksIn(lines: readonly Line[]): readonly (number | undefined)[] {
  let hunk: number | undefined
  return lines.map((line, place) => {
    if (head.test(line.text)) hunk = place
    else if (hunk !== undefined && !(isBeside(line, lines[hunk]) && changed.test(line.text))) hunk = undefined
    return hunk === place ? undefined : hunk
  })
}
