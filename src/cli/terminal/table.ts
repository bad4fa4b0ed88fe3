import stringWidth from 'fast-string-width'
import { type Line, stripControlCharacters, toSingleLine } from './output.ts'

type TableOptions = {
  /** The first row is a header. */
  readonly header?: boolean
  /** Columns that are aligned right. */
  readonly numeric?: ReadonlySet<number>
  /** Width to which the widest column is shortened. Default: the terminal's; unlimited in a pipe. */
  readonly width?: number
}

const separator = '  '
/** A column is never shortened below this width. */
const minColumnWidth = 12

/** Formats rows as lines with aligned columns. In a terminal, the widest column is shortened to fit. */
export function formatTable(rows: readonly (readonly string[])[], options: TableOptions = {}): Line[] {
  const { header = false, numeric = new Set(), width = terminalWidth() } = options
  const cells = rows.map((row) => row.map((cell) => toSingleLine(stripControlCharacters(cell))))
  const widths: number[] = []
  for (const row of cells)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, stringWidth(cell))
  shrinkToFit(widths, numeric, width)
  const format = (cell: string, column: number): string => {
    const text = truncateText(cell, widths[column] ?? 0)
    const padding = ' '.repeat(Math.max(0, (widths[column] ?? 0) - stringWidth(text)))
    return numeric.has(column) ? padding + text : text + padding
  }
  return cells.map((row, index) => {
    const text = row.map(format).join(separator).trimEnd()
    return header && index === 0 ? { text, style: 'bold' } : text
  })
}

/** Columns of the terminal that standard output goes to; unlimited in a pipe. */
export const terminalWidth = (): number =>
  process.stdout.isTTY === true ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY

/** Takes what is too much from the widest text columns. */
function shrinkToFit(widths: number[], numeric: ReadonlySet<number>, width: number): void {
  const total = (): number =>
    widths.reduce((sum, columnWidth) => sum + columnWidth + separator.length, -separator.length)
  while (total() > width) {
    let widest = -1
    for (const [column, columnWidth] of widths.entries())
      if (!numeric.has(column) && columnWidth > minColumnWidth && columnWidth > (widths[widest] ?? 0)) widest = column
    if (widest < 0) return
    const others = widths.filter((columnWidth, column) => column !== widest && columnWidth < (widths[widest] ?? 0))
    const goal = Math.max(minColumnWidth, (widths[widest] ?? 0) - (total() - width), ...others)
    widths[widest] = goal < (widths[widest] ?? 0) ? goal : (widths[widest] ?? 0) - 1
  }
}

const segmenter = new Intl.Segmenter()

/** Shortens a text to a number of terminal columns, with an ellipsis. Wide characters take two columns. */
export function truncateText(text: string, width: number): string {
  if (stringWidth(text) <= width) return text
  let shown = ''
  let used = 0
  for (const { segment } of segmenter.segment(text)) {
    used += stringWidth(segment)
    if (used > width - 1) break
    shown += segment
  }
  return `${shown.trimEnd()}…`
}

/** Shortens a text to one line of the terminal, indented by some columns. */
export const fitLine = (text: string, indent = 0): string =>
  ' '.repeat(indent) + truncateText(toSingleLine(stripControlCharacters(text)), terminalWidth() - indent)
