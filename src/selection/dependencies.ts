import type { Work } from '../domain/work.ts'
import type { Line } from './lines.ts'

/** Maximum lines required by one line. */
const maxRequiredLines = 4
/** Cost of a line, in characters. */
const lineWork = 4

/** Lines to select together with a line: all `required`, including itself, and one of `neighbours`, best first. */
export type LineDependencies = { readonly required: readonly number[]; readonly neighbours: readonly number[] }

/**
 * Finds the dependencies of each line of a message. A bracket requires the previous line, a line ending in a colon or
 * an open bracket the next one, a diff line the header of its hunk, and a line of code one neighbour. Undefined for a
 * line that contains no word even with its dependencies.
 */
export function* findDependencies(lines: readonly Line[]): Work<readonly (LineDependencies | undefined)[]> {
  const hunkHeaders = findHunkHeaders(lines)
  const wordless = lines.map(({ text }) => !/[\p{L}\p{N}]/u.test(text))
  yield lines.length * lineWork
  const dependencies: (LineDependencies | undefined)[] = []
  for (const index of lines.keys()) {
    const required = findRequired(lines, wordless, index)
    dependencies.push(toDependencies(lines, wordless, required, hunkHeaders[index]))
    yield lineWork
  }
  return dependencies
}

function toDependencies(
  lines: readonly Line[],
  wordless: readonly boolean[],
  required: ReadonlySet<number>,
  header: number | undefined,
): LineDependencies | undefined {
  if ([...required].every((at) => wordless[at])) return undefined
  const code = [...required].filter((at) => lines[at]?.block !== undefined && !wordless[at])
  const neighbours = code.length === 1 ? findNeighbours(lines, wordless, code[0] as number, required) : []
  return { required: header === undefined ? [...required] : [...required, header], neighbours }
}

function findRequired(lines: readonly Line[], wordless: readonly boolean[], index: number): Set<number> {
  const required = new Set([index])
  for (const at of required) {
    if (required.size >= maxRequiredLines) break
    const line = lines[at] as Line
    if (wordless[at] && isSameBlock(line, lines[at - 1])) required.add(at - 1)
    if (introducesNext(line) && at + 1 < lines.length) required.add(at + 1)
  }
  return required
}

/** A signature without its body would look like an empty function. */
const introducesNext = ({ text, block }: Line): boolean =>
  block === undefined ? text.endsWith(':') : /[[({:]$/.test(text)

const isSameBlock = (line: Line, other: Line | undefined): boolean => other !== undefined && other.block === line.block

/** Returns the neighbours of a line of code, preferring one that introduces it. */
function findNeighbours(
  lines: readonly Line[],
  wordless: readonly boolean[],
  index: number,
  required: ReadonlySet<number>,
): readonly number[] {
  const line = lines[index] as Line
  const neighbours = [index + 1, index - 1].filter((at) => isSameBlock(line, lines[at]) && !required.has(at))
  const rank = (at: number): number => {
    if (wordless[at]) return 3
    return introducesNext(lines[at] as Line) ? (at < index ? 0 : 2) : 1
  }
  return neighbours.sort((left, right) => rank(left) - rank(right))
}

const hunkHeader = /^@@ -\d/
const diffLine = /^(?:[-+ \\]|@@)/

/** Returns for each line of a diff the index of its hunk header. */
function findHunkHeaders(lines: readonly Line[]): readonly (number | undefined)[] {
  let header: number | undefined
  return lines.map((line, index) => {
    if (hunkHeader.test(line.text)) header = index
    else if (header !== undefined && !(isSameBlock(line, lines[header]) && diffLine.test(line.text))) header = undefined
    return header === index ? undefined : header
  })
}
