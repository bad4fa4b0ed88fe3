import { pipeline } from 'node:stream/promises'
import { CsvError, parse } from 'csv-parse'
import { Paper } from './paper.ts'

const delimiters = [',', ';', '\t', '|'] as const
/** A quotation mark nobody closes would take in all the rest. */
const longestRow = 100_000
const slice = 16_384

/**
 * Each row of a table on a line of its own, every value after the name of its column; undefined if it is no table.
 *
 * @example
 * await csvText('item;price\nTea;3,20\n', 100) // 'item: Tea; price: 3,20\n'
 */
export async function csvText(csv: string, most: number): Promise<string | undefined> {
  const paper = new Paper(most)
  let names: readonly string[] | undefined
  let rows = 0
  const take = (row: readonly string[]): void => {
    rows++
    if (names === undefined) names = row.map(oneLine)
    else paper.write(`${lineOf(names, row)}\n`)
  }
  const options = {
    delimiter: delimiterOf(csv),
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: longestRow,
  }
  try {
    await pipeline(
      slices(csv, () => rows),
      parse(options),
      async (parsed: AsyncIterable<readonly string[]>) => {
        for await (const row of parsed) take(row)
      },
    )
  } catch (error) {
    if (error instanceof CsvError || error instanceof NoTable) return undefined
    throw error
  }
  return paper.length === 0 ? undefined : paper.text
}

class NoTable extends Error {}

/** A text bit by bit, for as long as rows come of it: one that goes on and on would take all memory there is. */
function* slices(text: string, rows: () => number): Generator<string> {
  let [seen, since] = [0, 0]
  for (let at = 0; at < text.length; at += slice) {
    if (rows() !== seen) [seen, since] = [rows(), at]
    if (at - since > longestRow + 8 * slice) throw new NoTable()
    yield text.slice(at, at + slice)
  }
}

function lineOf(names: readonly string[], row: readonly string[]): string {
  const cells = row.map((value, at) => [names[at] || `column ${at + 1}`, oneLine(value)] as const)
  return cells.flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`])).join('; ')
}

const oneLine = (value: string): string => value.replace(/\s+/g, ' ').trim()

/** The one that stands most often in the first line. */
function delimiterOf(csv: string): string {
  const [header = ''] = csv.trimStart().slice(0, longestRow).split('\n', 1)
  const count = (delimiter: string): number => header.split(delimiter).length
  return delimiters.reduce((best: string, delimiter) => (count(delimiter) > count(best) ? delimiter : best), ',')
}
