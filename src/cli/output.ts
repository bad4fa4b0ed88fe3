import type { Json } from '../domain/entry.ts'

/** Writes a result to standard output: one JSON value with `--json`, lines of text otherwise. */
export function printResult(json: boolean | undefined, value: unknown, lines: readonly string[]): void {
  process.stdout.write(
    json === true ? `${JSON.stringify(value)}\n` : lines.map((line) => `${stripControlCharacters(line)}\n`).join(''),
  )
}

/** Removes control characters that a terminal would execute, and bidirectional overrides; keeps newlines and tabs. */
export const stripControlCharacters = (text: string): string =>
  text.replaceAll(/[^\P{Cc}\n\t]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')

const progressIntervalMs = 100

/** Progress of a long operation on one line of standard error that is overwritten; silent unless it is a terminal. */
export function createProgressLine(): { readonly update: (text: string) => void; readonly clear: () => void } {
  const isTerminal = process.stderr.isTTY === true
  let updatedAt = 0
  return {
    update: (text) => {
      const now = performance.now()
      if (!isTerminal || now - updatedAt < progressIntervalMs) return
      updatedAt = now
      process.stderr.write(`\r\u001b[K${text}`)
    },
    clear: () => void (isTerminal && process.stderr.write('\r\u001b[K')),
  }
}

/** Formats a timestamp as `2026-03-01 09:00:00 UTC`. */
export const formatTime = (at: number): string =>
  Number.isFinite(at) && Math.abs(at) < 8.64e15
    ? `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
    : 'unknown time'

/** Collapses whitespace to one line and truncates it with an ellipsis. */
export function truncateLine(text: string, maxLength = 100): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= maxLength ? line : `${[...line].slice(0, maxLength - 1).join('')}…`
}

/** Formats a fact or a piece of knowledge as `key: value`, or as the value alone when the key is empty. */
export function formatStatement({ key, value }: { readonly key: string; readonly value: Json }): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return key === '' ? text : `${key}: ${text}`
}

/** Formats rows as lines with aligned columns; `numericColumns` are aligned right. */
export function formatTable(
  rows: readonly (readonly string[])[],
  numericColumns: ReadonlySet<number> = new Set(),
): string[] {
  const widths: number[] = []
  for (const row of rows)
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
  const pad = (cell: string, column: number): string =>
    numericColumns.has(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)
  return rows.map((row) => row.map(pad).join('  ').trimEnd())
}

/** Formats a range of message ids: `m1–m18`, or `m1` for a single message. */
export const formatRange = (first: string, last: string): string => (first === last ? first : `${first}–${last}`)
