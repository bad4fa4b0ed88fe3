import { MemoryError } from '../domain/error.ts'
import { type Kernel, lanes, simdKernel } from './simd.ts'

/**
 * Vectors of one length, compared with a query all at once and exactly.
 *
 * @example
 * const matrix = new Matrix(2)
 * matrix.add(Float32Array.of(3, 4))
 * matrix.scores(Float32Array.of(0, 1)) // [0.8]
 */
export class Matrix {
  readonly dimensions: number
  private readonly kernel: Kernel
  /** What a row takes: a whole number of 128-bit vectors. */
  private readonly stride: number
  /** The query, then room for the rows, then as much for their scores. Taken anew whenever it grows. */
  private floats: Float32Array = new Float32Array()
  /** Rows there is room for, in blocks of `lanes`. */
  private blocks = 0
  private length = 0

  constructor(dimensions: number, kernel: Kernel = simdKernel() ?? plainKernel()) {
    if (!Number.isSafeInteger(dimensions) || dimensions < 1) {
      throw new MemoryError('bad-option', `dimensions is ${dimensions}; it must be a whole number from 1.`, {
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

  /** Adds a vector at length 1 and gives its row; one without a direction (zeros, not finite) is kept as zeros and scores 0. */
  add(values: Float32Array): number {
    this.check(values)
    if (this.length === this.blocks * lanes) this.grow()
    this.put(1 + this.length, values)
    return this.length++
  }

  /** The cosine of each row with the query, valid until the next call. */
  scores(query: Float32Array): Float32Array {
    this.check(query)
    if (this.length === 0) return new Float32Array()
    this.put(0, query)
    const from = this.stride * (1 + this.blocks * lanes)
    this.kernel.multiply(this.stride, this.length, from)
    return this.floats.subarray(from, from + this.length)
  }

  private check({ length }: Float32Array): void {
    if (length === this.dimensions) return
    throw new MemoryError(
      'bad-option',
      `a vector has ${length} dimensions; all must have ${this.dimensions}, so embed them with one model.`,
      {
        param: 'dimensions',
      },
    )
  }

  private put(place: number, values: Float32Array): void {
    let squares = 0
    for (const value of values) squares += value * value
    // nothing for zeros and NaN, and one by infinity is nothing too
    const scale = squares > 0 ? 1 / Math.sqrt(squares) : 0
    const from = place * this.stride
    // scores may have stood here before the memory grew
    this.floats.fill(0, from, from + this.stride)
    if (scale === 0) return
    for (let at = 0; at < values.length; at++) this.floats[from + at] = (values[at] as number) * scale
  }

  /** Doubles the room, or adds as much of that as there is memory for. */
  private grow(): void {
    let cause: unknown
    for (let more = Math.max(1, this.blocks); more > 0; more = Math.floor(more / 2)) {
      const room = (this.blocks + more) * lanes
      try {
        this.floats = this.kernel.reserve(this.stride * (1 + room) + room)
        this.blocks += more
        return
      } catch (error) {
        cause = error
      }
    }
    const held = `${this.length} vectors of ${this.dimensions} dimensions`
    throw new MemoryError(
      'full',
      `there is no memory for more than ${held}; erase old sessions or embed with fewer dimensions.`,
      { cause },
    )
  }
}

/** The kernel where there are no 128-bit vectors: the same scores, some four times slower. */
export function plainKernel(): Kernel {
  let floats = new Float32Array()
  return {
    reserve(length) {
      const wider = new Float32Array(length)
      wider.set(floats)
      floats = wider
      return floats
    },
    multiply(stride, rows, scores) {
      for (let row = 0; row < rows; row += 4) floats.set(fourProducts(floats, stride, row), scores + row)
    },
  }
}

/** Four rows at once: the query is read once for all, and no sum waits for itself. */
function fourProducts(floats: Float32Array, stride: number, row: number): readonly number[] {
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
