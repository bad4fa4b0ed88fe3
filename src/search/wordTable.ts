import { MemoryError } from '../domain/error.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { RelatedStem, VectorList, WordTable } from '../domain/ports.ts'
import { Matrix, scalarKernel } from './matrix.ts'
import { minSimilarity } from './rankingWeights.ts'

/** Rows of related stems and their similarities: objects would take seven times as much memory. */
type RelatedRows = { readonly rows: Uint32Array; readonly similarities: Float32Array }

/** First bytes of a table file: `TKW1`. */
const magic = 0x31574b54
const headerBytes = 24
/** Bytes of related stems that are kept. */
const maxRelatedBytes = 2_000_000
/** Half of the stems have over 5,000 related ones: keeping these would take more time and memory than they save. */
const maxKeptRelated = 1_024
/** Estimated size of a cached stem besides its related ones. */
const stemOverheadBytes = 400

/**
 * A word table in memory. Its file holds the number of stems and dimensions, the stems in UTF-8, a weight per stem, and
 * the vectors with four bits per value (see tools/recall-table).
 */
export class PackedWordTable implements WordTable {
  readonly dimensions: number
  private readonly stems: readonly string[]
  private readonly rows: ReadonlyMap<string, number>
  /** Vectors scaled by the weight of their stem, so that the vector of a text is their sum. */
  private readonly vectors: Float32Array
  /** Vectors of length 1, for the search of related stems. */
  private readonly matrix: Matrix
  private readonly related = new LruCache<string, RelatedRows>({ maxTotalSize: maxRelatedBytes })

  /** @throws MemoryError `bad-option` if the bytes are not a word table. */
  constructor(bytes: Uint8Array) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const [count, dimensions, stemBytes] =
      bytes.length >= headerBytes ? [4, 8, 12].map((at) => view.getUint32(at, true)) : []
    const isTable =
      count !== undefined &&
      dimensions !== undefined &&
      stemBytes !== undefined &&
      view.getUint32(0, true) === magic &&
      bytes.length === headerBytes + stemBytes + count + (count * dimensions) / 2
    if (!isTable)
      throw new MemoryError('bad-option', 'This is not a word table. Use the file word-table.bin of this package.', {
        param: 'wordTable',
      })
    this.dimensions = dimensions
    this.stems = new TextDecoder().decode(bytes.subarray(headerBytes, headerBytes + stemBytes)).split('\n')
    this.rows = new Map(this.stems.map((stem, row) => [stem, row]))
    this.vectors = new Float32Array(count * dimensions)
    this.matrix = new Matrix(dimensions)
    const [low, high] = [view.getFloat32(16, true), view.getFloat32(20, true)]
    const weightsAt = headerBytes + stemBytes
    const weightOf = (row: number): number => Math.exp(low + ((bytes[weightsAt + row] as number) / 255) * (high - low))
    this.unpack(bytes.subarray(weightsAt + count), weightOf)
  }

  rowOf(stem: string): number | undefined {
    return this.rows.get(stem)
  }

  addTo(sum: Float32Array, row: number, factor = 1): void {
    const from = row * this.dimensions
    for (let at = 0; at < this.dimensions; at++)
      sum[at] = (sum[at] as number) + factor * (this.vectors[from + at] as number)
  }

  /** Estimated bytes of the cached related stems. */
  get cachedBytes(): number {
    return this.related.totalSize
  }

  relatedStems(stem: string, isKnown: (row: number) => boolean): readonly RelatedStem[] {
    const row = this.rows.get(stem)
    if (row === undefined) return []
    const kept = this.related.get(stem)
    if (kept !== undefined) return this.select(kept, isKnown)
    const from = row * this.dimensions
    const scores = this.matrix.scores(this.vectors.subarray(from, from + this.dimensions))
    const found: RelatedStem[] = []
    let count = 0
    // Indexed, because this looks at all stems for every word of a question.
    for (let other = 0; other < scores.length; other++) {
      const similarity = scores[other] as number
      if (similarity <= minSimilarity || other === row) continue
      count++
      if (isKnown(other)) found.push({ row: other, stem: this.stems[other] as string, similarity })
    }
    if (count <= maxKeptRelated) this.keep(stem, row, scores)
    return found
  }

  createVectors(): VectorList {
    return new TopicVectors(this.dimensions)
  }

  private keep(stem: string, row: number, scores: Float32Array): void {
    const found: number[] = []
    scores.forEach((similarity, other) => {
      if (similarity > minSimilarity && other !== row) found.push(other)
    })
    const rows = Uint32Array.from(found)
    const similarities = Float32Array.from(found, (other) => scores[other] as number)
    this.related.set(stem, { rows, similarities }, stemOverheadBytes + rows.byteLength + similarities.byteLength)
  }

  private select({ rows, similarities }: RelatedRows, isKnown: (row: number) => boolean): readonly RelatedStem[] {
    const found: RelatedStem[] = []
    rows.forEach((row, at) => {
      if (isKnown(row)) found.push({ row, stem: this.stems[row] as string, similarity: similarities[at] as number })
    })
    return found
  }

  /** Each byte holds two values, the lower four bits first; a value is stored plus 8. */
  private unpack(packed: Uint8Array, weightOf: (row: number) => number): void {
    const { dimensions, vectors } = this
    const values = new Float32Array(dimensions)
    for (let row = 0; row < this.stems.length; row++) {
      const weight = weightOf(row)
      for (let at = 0; at < dimensions; at++) {
        const byte = packed[(row * dimensions + at) >> 1] as number
        values[at] = (at % 2 === 0 ? byte & 15 : byte >> 4) - 8
        vectors[row * dimensions + at] = weight * (values[at] as number)
      }
      this.matrix.add(values)
    }
  }
}

/** Vectors that are compared without SIMD. */
const maxScalarVectors = 512

/**
 * Vectors of the passages of an index. Most sessions are small, and there may be thousands: only a large index gets a
 * WebAssembly memory of its own.
 */
class TopicVectors implements VectorList {
  private readonly dimensions: number
  private matrix: Matrix
  private few: Float32Array[] | undefined = []

  constructor(dimensions: number) {
    this.dimensions = dimensions
    this.matrix = new Matrix(dimensions, scalarKernel())
  }

  add(values: Float32Array): number {
    if (this.few !== undefined && this.few.push(values.slice()) > maxScalarVectors) {
      this.matrix = new Matrix(this.dimensions)
      for (const earlier of this.few.slice(0, -1)) this.matrix.add(earlier)
      this.few = undefined
    }
    return this.matrix.add(values)
  }

  scores(query: Float32Array): Float32Array {
    return this.matrix.scores(query)
  }
}
