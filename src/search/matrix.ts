import { MemoryError } from '../domain/error.ts'
import { laneCount, type MatrixKernel, simdKernel } from './simd.ts'

/**
 * Normalised vectors of equal length. Computes the exact cosine of all rows with a query.
 *
 * @example
 * const matrix = new Matrix(2)
 * matrix.add(Float32Array.of(3, 4))
 * matrix.scores(Float32Array.of(0, 1)) // [0.8]
 */
export class Matrix {
  readonly dimensions: number
  private readonly kernel: MatrixKernel
  /** Floats per row, rounded up to a whole number of 128-bit vectors. */
  private readonly stride: number
  /** Layout: the query, then the rows, then the scores. Replaced on growth. */
  private floats: Float32Array = new Float32Array()
  /** Row capacity, in blocks of `laneCount`. */
  private blockCapacity = 0
  private length = 0

  constructor(dimensions: number, kernel: MatrixKernel = simdKernel() ?? scalarKernel()) {
    if (!Number.isSafeInteger(dimensions) || dimensions < 1) {
      throw new MemoryError('bad-option', `dimensions is ${dimensions}. Use a whole number of 1 or more.`, {
        param: 'dimensions',
      })
    }
    this.dimensions = dimensions
    this.stride = Math.ceil(dimensions / 4) * 4
    this.kernel = kernel
  }

  get rows(): number {
    return this.length
  }

  /**
   * Adds a vector, scaled to length 1, and returns its row. A vector of zeros or with a non-finite value is stored as
   * zeros and scores 0.
   */
  add(values: Float32Array): number {
    this.check(values)
    if (this.length === this.blockCapacity * laneCount) this.grow()
    this.write(1 + this.length, values)
    return this.length++
  }

  /** Replaces the vector of a row. */
  replace(row: number, values: Float32Array): void {
    this.check(values)
    this.write(1 + row, values)
  }

  /** Returns the cosine of each row with the query. The result is valid until the next call. */
  scores(query: Float32Array): Float32Array {
    this.check(query)
    if (this.length === 0) return new Float32Array()
    this.write(0, query)
    const from = this.stride * (1 + this.blockCapacity * laneCount)
    this.kernel.multiply(this.stride, this.length, from)
    return this.floats.subarray(from, from + this.length)
  }

  private check({ length }: Float32Array): void {
    if (length === this.dimensions) return
    throw new MemoryError(
      'bad-option',
      `The vector has ${length} dimensions instead of ${this.dimensions}. Embed all texts with the same model.`,
      {
        param: 'dimensions',
      },
    )
  }

  private write(slot: number, values: Float32Array): void {
    let squares = 0
    for (const value of values) squares += value * value
    // 0 for zeros, NaN and infinity.
    const scale = squares > 0 ? 1 / Math.sqrt(squares) : 0
    const from = slot * this.stride
    // Before the memory grew, scores may have been stored here.
    this.floats.fill(0, from, from + this.stride)
    if (scale === 0) return
    for (let at = 0; at < values.length; at++) this.floats[from + at] = (values[at] as number) * scale
  }

  /** Doubles the capacity, or grows by as much of that as can be allocated. */
  private grow(): void {
    let cause: unknown
    for (let more = Math.max(1, this.blockCapacity); more > 0; more = Math.floor(more / 2)) {
      const capacity = (this.blockCapacity + more) * laneCount
      try {
        this.floats = this.kernel.reserve(this.stride * (1 + capacity) + capacity)
        this.blockCapacity += more
        return
      } catch (error) {
        cause = error
      }
    }
    throw new MemoryError(
      'full',
      `Out of memory after ${this.length} vectors of ${this.dimensions} dimensions. Erase old sessions or embed with fewer dimensions.`,
      { cause },
    )
  }
}

/** Fallback kernel without SIMD: the same scores, about four times slower. */
export function scalarKernel(): MatrixKernel {
  let floats = new Float32Array()
  return {
    reserve(length) {
      const larger = new Float32Array(length)
      larger.set(floats)
      floats = larger
      return floats
    },
    multiply(stride, rows, scores) {
      for (let row = 0; row < rows; row += 4) floats.set(multiplyFourRows(floats, stride, row), scores + row)
    },
  }
}

/** Multiplies four rows at once, so that the query is read once and the four sums are independent. */
function multiplyFourRows(floats: Float32Array, stride: number, row: number): readonly number[] {
  const first = stride * (1 + row)
  const [second, third, fourth] = [first + stride, first + 2 * stride, first + 3 * stride]
  let [a, b, c, d] = [0, 0, 0, 0]
  for (let at = 0; at < stride; at++) {
    const value = floats[at] as number
    a += value * (floats[first + at] as number)
    b += value * (floats[second + at] as number)
    c += value * (floats[third + at] as number)
    d += value * (floats[fourth + at] as number)
  }
  return [a, b, c, d]
}
