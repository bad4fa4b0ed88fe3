import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Matrix, plainKernel } from '../../src/search/matrix.ts'
import { type Kernel, simdKernel } from '../../src/search/simd.ts'

const of = (...values: number[]) => Float32Array.of(...values)
const filled = (kernel: Kernel | undefined, rows: readonly Float32Array[], dimensions = rows[0]?.length ?? 1) => {
  const matrix = new Matrix(dimensions, kernel)
  for (const row of rows) matrix.add(row)
  return matrix
}

/** The plain cosine, in double precision. */
function cosine(a: Float32Array, b: Float32Array): number {
  const product = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, at) => sum + value * (y[at] as number), 0)
  const lengths = Math.sqrt(product(a, a)) * Math.sqrt(product(b, b))
  return lengths === 0 ? 0 : product(a, b) / lengths
}

/** A query and rows of one length. */
const anyVectors = fc.integer({ min: 1, max: 400 }).chain((dimensions) => {
  const values = fc.float32Array({ minLength: dimensions, maxLength: dimensions, min: -1_000, max: 1_000, noNaN: true })
  return fc.record({ query: values, rows: fc.array(values, { maxLength: 50, size: 'max' }) })
})

/** A vector that has a component in every dimension and differs from its neighbours. */
const wave = (row: number, dimensions: number) =>
  Float32Array.from({ length: dimensions }, (_, at) => Math.sin(row * 0.7 + at * (1 + row)))

const kernels: readonly (readonly [string, () => Kernel | undefined])[] = [
  ['the 128-bit kernel', simdKernel],
  ['the plain kernel', plainKernel],
]

describe.each(kernels)('a matrix on %s', (_, makeKernel) => {
  const kernel = () => {
    const made = makeKernel()
    expect(made).toBeDefined()
    return made
  }

  it('scores every row by its cosine with the query', () => {
    fc.assert(
      fc.property(anyVectors, ({ query, rows }) => {
        const scores = filled(kernel(), rows, query.length).scores(query)
        expect(scores).toHaveLength(rows.length)
        for (const [row, values] of rows.entries())
          expect(Math.abs((scores[row] as number) - cosine(values, query))).toBeLessThan(1e-5)
      }),
      { numRuns: 50 },
    )
  })

  it('scores whatever its length', () => {
    const scores = filled(kernel(), [of(3, 4), of(-30, -40), of(4e37, 3e37), of(0, 1e-40)]).scores(of(0, 2))
    const expected = [0.8, -0.8, 0.6, 1]
    for (const [row, score] of scores.entries()) expect(score).toBeCloseTo(expected[row] as number, 6)
  })

  it('scores a vector with itself 1', () => {
    const rows = Array.from({ length: 20 }, (_, row) => wave(row, 384))
    const matrix = filled(kernel(), rows)
    for (const [row, values] of rows.entries()) expect(matrix.scores(values)[row]).toBeCloseTo(1, 6)
  })

  it('scores a vector without a direction 0, as a row and as the query', () => {
    const blank = [
      of(0, 0, 0),
      of(1, Number.NaN, 0),
      of(Number.POSITIVE_INFINITY, 1, 1),
      of(0, 0, Number.NEGATIVE_INFINITY),
    ]
    const matrix = filled(kernel(), [...blank, of(1, 2, 3)])
    expect([...matrix.scores(of(1, 2, 3))].slice(0, 4)).toEqual([0, 0, 0, 0])
    for (const query of blank) expect([...matrix.scores(query)]).toEqual([0, 0, 0, 0, 0])
  })

  it('keeps its rows while it grows, also when it is asked in between', () => {
    const dimensions = 383
    const matrix = new Matrix(dimensions, kernel())
    for (let row = 0; row < 600; row++) {
      expect(matrix.add(wave(row, dimensions))).toBe(row)
      expect(matrix.scores(wave(row, dimensions))[row]).toBeCloseTo(1, 6)
    }
    expect(matrix.rows).toBe(600)
    const query = wave(1_000, dimensions)
    const scores = matrix.scores(query)
    expect(scores).toHaveLength(600)
    for (const [row, score] of scores.entries())
      expect(Math.abs(score - cosine(wave(row, dimensions), query))).toBeLessThan(1e-5)
  })

  it('keeps rows of its own', () => {
    const values = of(1, 0)
    const matrix = filled(kernel(), [values])
    values.set([0, 1])
    expect([...matrix.scores(of(1, 0))]).toEqual([1])
  })

  it('is empty at first', () => {
    const matrix = new Matrix(3, kernel())
    expect([matrix.dimensions, matrix.rows, matrix.scores(of(1, 2, 3)).length]).toEqual([3, 0, 0])
  })
})

describe('a matrix refuses', () => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('%d dimensions', (dimensions) =>
    expect(() => new Matrix(dimensions)).toThrow(
      expect.objectContaining({
        code: 'bad-option',
        param: 'dimensions',
        message: `dimensions is ${dimensions}; it must be a whole number from 1.`,
      }),
    ),
  )

  it.each([[of()], [of(1)], [of(1, 2, 3)]])('a vector of another length, as a row or as the query', (values) => {
    const message = `a vector has ${values.length} dimensions; all must have 2, so embed them with one model.`
    const refusal = expect.objectContaining({ code: 'bad-option', param: 'dimensions', message })
    const matrix = new Matrix(2)
    expect(() => matrix.add(values)).toThrow(refusal)
    expect(() => matrix.scores(values)).toThrow(refusal)
    expect(matrix.rows).toBe(0)
  })
})

describe('where memory ends', () => {
  /** Has room for so many numbers and no more. */
  const narrow = (most: number): Kernel => {
    const inner = plainKernel()
    const reserve = (length: number) => {
      if (length > most) throw new RangeError('no room')
      return inner.reserve(length)
    }
    return { ...inner, reserve }
  }

  it('a matrix takes what there is, then says it is full and keeps what it has', () => {
    // a query and 48 rows of 4 numbers, and 48 scores: 32 rows doubled do not fit
    const matrix = new Matrix(4, narrow(4 + 48 * 4 + 48))
    for (let row = 0; row < 48; row++) matrix.add(wave(row, 4))
    const message =
      'there is no memory for more than 48 vectors of 4 dimensions; erase old sessions or embed with fewer dimensions.'
    expect(() => matrix.add(wave(48, 4))).toThrow(
      expect.objectContaining({ code: 'full', message, cause: new RangeError('no room') }),
    )
    expect(matrix.rows).toBe(48)
    expect(matrix.scores(wave(47, 4))[47]).toBeCloseTo(1, 6)
  })

  it('the 128-bit kernel counts on past 2 GiB and refuses more than 4', () => {
    const kernel = simdKernel() as Kernel
    const scores = 2 ** 29 - 2
    const floats = kernel.reserve(scores + 16)
    for (let row = -1; row < 16; row++) floats[4 + 4 * row] = row < 0 ? 1 : row
    kernel.multiply(4, 16, scores)
    expect([...floats.subarray(scores, scores + 16)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    expect(() => kernel.reserve(2 ** 30 + 1)).toThrow(RangeError)
  })
})

describe('where 128-bit vectors are missing', () => {
  afterEach(() => {
    vi.unstubAllGlobals()
  })

  it('a matrix does without WebAssembly', () => {
    vi.stubGlobal('WebAssembly', undefined)
    expect(simdKernel()).toBeUndefined()
    expect([...filled(undefined, [of(1, 0), of(0, 1)]).scores(of(0, 5))]).toEqual([0, 1])
  })

  it('a matrix does without address space', () => {
    const Instance = function Instance() {
      throw new RangeError('could not allocate memory')
    }
    vi.stubGlobal('WebAssembly', { Module: WebAssembly.Module, Instance })
    expect(simdKernel()).toBeUndefined()
    expect([...filled(undefined, [of(1, 0), of(0, 1)]).scores(of(0, 5))]).toEqual([0, 1])
  })
})
