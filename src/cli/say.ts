import type { Json } from '../domain/entry.ts'

/** Writes an answer: one JSON value for programs, lines for people. */
export function say(json: boolean | undefined, value: unknown, lines: readonly string[]): void {
  process.stdout.write(
    json === true ? `${JSON.stringify(value)}\n` : lines.map((line) => `${printable(line)}\n`).join(''),
  )
}

/** Text without the control characters a terminal would obey, also those that turn the order of letters round. */
export const printable = (text: string): string =>
  text.replaceAll(/[^\P{Cc}\n\t]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')

/** Tells people how far long work has come, on one line that is written over; programs and files are told nothing. */
export function progressLine(): { readonly tell: (text: string) => void; readonly end: () => void } {
  const isShown = process.stderr.isTTY === true
  let last = 0
  return {
    tell: (text) => {
      const now = performance.now()
      if (!isShown || now - last < 100) return
      last = now
      process.stderr.write(`\r\u001b[K${text}`)
    },
    end: () => void (isShown && process.stderr.write('\r\u001b[K')),
  }
}

export { many } from '../text/formatCount.ts'

/** A time as people read it. */
export const timeOf = (at: number): string =>
  Number.isFinite(at) && Math.abs(at) < 8.64e15
    ? `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
    : 'at no time'

/** Text on one line, cut where a line ends. */
export function glimpse(text: string, most = 100): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  return line.length <= most ? line : `${[...line].slice(0, most - 1).join('')}…`
}

/** What is said of a key; what has none is said as it is. */
export function statement({ key, value }: { readonly key: string; readonly value: Json }): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return key === '' ? text : `${key}: ${text}`
}

/** Rows as lines with their columns one below the other; columns of numbers stand flush right. */
export function aligned(rows: readonly (readonly string[])[], numbers: ReadonlySet<number> = new Set()): string[] {
  const widths: number[] = []
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length)
  const filled = (cell: string, at: number): string =>
    numbers.has(at) ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)
  return rows.map((row) => row.map(filled).join('  ').trimEnd())
}

/** Messages that follow each other, as people read them. */
export const runOf = (first: string, last: string): string => (first === last ? first : `${first}–${last}`)
