import { pipeline } from 'node:stream/promises'
import { CsvError, parse } from 'csv-parse'
import { TextBuffer } from '../limits.ts'

const delimiters = [',', ';', '\t', '|'] as const
/** Limit of one row; an unclosed quotation mark would otherwise consume the rest of the file. */
const maxRowChars = 100_000
/** Size of the input chunks given to the parser. */
const inputChunkChars = 16_384

/**
 * Formats each row of a table as one line with `column: value` pairs; returns undefined if the text is not a table.
 *
 * @example
 * await parseCsv('item;price\nTea;3,20\n', 100) // 'item: Tea; price: 3,20\n'
 */
export async function parseCsv(csv: string, maxCharacters: number): Promise<string | undefined> {
  const buffer = new TextBuffer(maxCharacters)
  let columns: readonly string[] | undefined
  let rowCount = 0
  const addRow = (row: readonly string[]): void => {
    rowCount++
    if (columns === undefined) columns = row.map(collapseWhitespace)
    else buffer.write(`${formatRow(columns, row)}\n`)
  }
  const options = {
    delimiter: detectDelimiter(csv),
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: maxRowChars,
  }
  try {
    await pipeline(
      splitInput(csv, () => rowCount),
      parse(options),
      async (rows: AsyncIterable<readonly string[]>) => {
        for await (const row of rows) addRow(row)
      },
    )
  } catch (error) {
    if (error instanceof CsvError || error instanceof NotATableError) return undefined
    throw error
  }
  return buffer.length === 0 ? undefined : buffer.text
}

class NotATableError extends Error {}

/** Yields the input in chunks while rows are parsed from it; the parser would buffer an endless row in memory. */
function* splitInput(text: string, countRows: () => number): Generator<string> {
  let lastCount = 0
  let lastProgress = 0
  for (let offset = 0; offset < text.length; offset += inputChunkChars) {
    if (countRows() !== lastCount) {
      lastCount = countRows()
      lastProgress = offset
    }
    if (offset - lastProgress > maxRowChars + 8 * inputChunkChars) throw new NotATableError()
    yield text.slice(offset, offset + inputChunkChars)
  }
}

function formatRow(columns: readonly string[], row: readonly string[]): string {
  const cells = row.map((value, index) => ({
    column: columns[index] || `column ${index + 1}`,
    value: collapseWhitespace(value),
  }))
  return cells.flatMap(({ column, value }) => (value === '' ? [] : [`${column}: ${value}`])).join('; ')
}

const collapseWhitespace = (value: string): string => value.replace(/\s+/g, ' ').trim()

/** Detects the delimiter as the one that is most frequent in the first line. */
export function detectDelimiter(csv: string): string {
  const [header = ''] = csv.trimStart().slice(0, maxRowChars).split('\n', 1)
  const countFields = (delimiter: string): number => header.split(delimiter).length
  return delimiters.reduce(
    (best: string, delimiter) => (countFields(delimiter) > countFields(best) ? delimiter : best),
    ',',
  )
}
