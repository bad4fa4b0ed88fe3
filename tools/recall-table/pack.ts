/** Packs trained word vectors into the table file of the package. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type OptionValues, runCommand } from './commandLine.ts'
import { encodeWordTable, parseFullTable, quantizeRows, type TrainedRows } from './tableFile.ts'

const usage = `Usage: npx node tools/recall-table/pack.ts --stems FILE (--arrays FOLDER | --full-table FILE) --out FILE

Packs trained word vectors into a table file and prints its size as JSON.

  --stems FILE       stems.txt of examples.ts, one stem per line in the order of the rows
  --arrays FOLDER    output of train.py: trained.json, values.i8 and weights.f32
  --full-table FILE  table that is packed already and still has rows for stopwords and hash buckets
  --out FILE         table file to write, for example data/word-table.bin`

function readArrays(folder: string): TrainedRows {
  const { rows, dimensions } = JSON.parse(readFileSync(join(folder, 'trained.json'), 'utf8')) as {
    rows: number
    dimensions: number
  }
  const weights = readFileSync(join(folder, 'weights.f32'))
  return quantizeRows({
    rows,
    dimensions,
    values: new Int8Array(readFileSync(join(folder, 'values.i8'))),
    // A copy, because a view of floats must start at a multiple of four bytes.
    weights: new Float32Array(new Uint8Array(weights).buffer),
  })
}

function readTrained({ arrays, 'full-table': fullTable }: OptionValues): TrainedRows {
  if (arrays !== undefined && fullTable === undefined) return readArrays(arrays)
  if (fullTable !== undefined && arrays === undefined) return parseFullTable(readFileSync(fullTable))
  throw new Error('Use either --arrays or --full-table. Try --help.')
}

runCommand({
  usage,
  options: ['stems', 'arrays', 'full-table', 'out'],
  required: ['stems', 'out'],
  run: (values) => {
    const stems = readFileSync(values.stems as string, 'utf8')
      .replace(/\n$/, '')
      .split('\n')
    const trained = readTrained(values)
    const file = encodeWordTable(trained, stems)
    writeFileSync(values.out as string, file)
    console.log(JSON.stringify({ stems: stems.length, dimensions: trained.dimensions, bytes: file.length }))
  },
})
