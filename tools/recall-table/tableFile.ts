/** Reads trained word vectors and writes the table file that the package ships. README.md describes the format. */

/** Trained rows, with values of four bits. Rows after the stems belong to stopwords and hash buckets. */
export type TrainedRows = {
  readonly rows: number
  readonly dimensions: number
  /** Range of the natural logarithm of the weights. */
  readonly low: number
  readonly high: number
  /** One byte per row: the logarithm of its weight, from `low` (0) to `high` (255). */
  readonly weights: Uint8Array
  /** Two values per byte, the lower four bits first; a value is stored plus 8. */
  readonly vectors: Uint8Array
}

/** Arrays that train.py writes: values from -7 to 7, and the factor of each row in the vector of a text. */
export type TrainedArrays = {
  readonly rows: number
  readonly dimensions: number
  readonly values: Int8Array
  readonly weights: Float32Array
}

const magic = 'TKW1'
const headerBytes = 24
const fullTableHeaderBytes = 16
const maxValue = 7
const valueOffset = 8

/** Rounds the weights of trained arrays to one byte each and packs two values into a byte. */
export function quantizeRows({ rows, dimensions, values, weights }: TrainedArrays): TrainedRows {
  checkShape(rows, dimensions)
  if (values.length !== rows * dimensions || weights.length !== rows)
    throw new Error(
      `The arrays hold ${values.length} values and ${weights.length} weights, but ${rows} rows of ${dimensions} ` +
        'dimensions were announced. Run train.py again.',
    )
  const logs = Float64Array.from(weights, Math.log)
  if (!logs.every(Number.isFinite)) throw new Error('Weights must be positive numbers. Run train.py again.')
  if (values.some((value) => Math.abs(value) > maxValue))
    throw new Error(`Values must be from -${maxValue} to ${maxValue}. Run train.py again.`)
  // The range spans all rows, also those that are not shipped, so that a table packed from arrays has the same weights
  // as one packed from a full table.
  const low = logs.reduce((one, other) => Math.min(one, other), Infinity)
  const high = logs.reduce((one, other) => Math.max(one, other), -Infinity)
  const scale = high > low ? 255 / (high - low) : 0
  const vectors = new Uint8Array(values.length / 2)
  for (let at = 0; at < vectors.length; at++) {
    const [lower, upper] = [values[2 * at] as number, values[2 * at + 1] as number]
    vectors[at] = (lower + valueOffset) | ((upper + valueOffset) << 4)
  }
  return { rows, dimensions, low, high, weights: Uint8Array.from(logs, (log) => (log - low) * scale + 0.5), vectors }
}

/** Reads a full table: rows u32, dimensions u32, low f32, high f32, a weight byte per row, the packed vectors. */
export function parseFullTable(bytes: Uint8Array): TrainedRows {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  if (bytes.length < fullTableHeaderBytes) throw new Error('The full table is shorter than its header.')
  const [rows, dimensions] = [view.getUint32(0, true), view.getUint32(4, true)]
  checkShape(rows, dimensions)
  const expectedBytes = fullTableHeaderBytes + rows + (rows * dimensions) / 2
  if (bytes.length !== expectedBytes)
    throw new Error(
      `A full table of ${rows} rows of ${dimensions} values has ${expectedBytes} bytes, this file ${bytes.length}.`,
    )
  const vectorsAt = fullTableHeaderBytes + rows
  return {
    rows,
    dimensions,
    low: view.getFloat32(8, true),
    high: view.getFloat32(12, true),
    weights: bytes.subarray(fullTableHeaderBytes, vectorsAt),
    vectors: bytes.subarray(vectorsAt),
  }
}

/** Encodes the rows of the stems, which come first, as a table file. */
export function encodeWordTable(trained: TrainedRows, stems: readonly string[]): Uint8Array {
  checkStems(stems, trained.rows)
  const stemList = new TextEncoder().encode(stems.join('\n'))
  const weightsAt = headerBytes + stemList.length
  const vectorsAt = weightsAt + stems.length
  const vectorBytes = (stems.length * trained.dimensions) / 2
  const file = new Uint8Array(vectorsAt + vectorBytes)
  const view = new DataView(file.buffer)
  file.set(new TextEncoder().encode(magic))
  view.setUint32(4, stems.length, true)
  view.setUint32(8, trained.dimensions, true)
  view.setUint32(12, stemList.length, true)
  view.setFloat32(16, trained.low, true)
  view.setFloat32(20, trained.high, true)
  file.set(stemList, headerBytes)
  file.set(trained.weights.subarray(0, stems.length), weightsAt)
  file.set(trained.vectors.subarray(0, vectorBytes), vectorsAt)
  return file
}

/** Reads the stems of a table file. */
export function readStems(file: Uint8Array): readonly string[] {
  const decoder = new TextDecoder()
  if (decoder.decode(file.subarray(0, magic.length)) !== magic) throw new Error('This is not a word table.')
  const stemBytes = new DataView(file.buffer, file.byteOffset).getUint32(12, true)
  return decoder.decode(file.subarray(headerBytes, headerBytes + stemBytes)).split('\n')
}

function checkShape(rows: number, dimensions: number): void {
  if (rows > 0 && dimensions > 0 && dimensions % 2 === 0) return
  throw new Error(`A table needs rows and an even number of dimensions, not ${rows} rows of ${dimensions} dimensions.`)
}

function checkStems(stems: readonly string[], rows: number): void {
  if (stems.length > rows)
    throw new Error(
      `${stems.length} stems need as many rows, but only ${rows} were trained. Use the stems of training.`,
    )
  if (stems.some((stem) => stem === '' || /\s/.test(stem)))
    throw new Error('The stem list has an empty line or a space. It must have one stem per line.')
  if (new Set(stems).size !== stems.length) throw new Error('The stem list has a stem twice.')
}
