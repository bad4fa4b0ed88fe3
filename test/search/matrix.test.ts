import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Matrix, scalarKernel } from '../../src/search/matrix.ts'
import { type MatrixKernel, simdKernel } from '../../src/search/simd.ts'

const vector = (...values: number[]) => Float32Array.of(...values)
const createMatrix = (
  kernel: MatrixKernel | undefined,
  rows: readonly Float32Array[],
  dimensions = rows[0]?.length ?? 1,
) => {
  const matrix = new Matrix(dimensions, kernel)
  for (const row of rows) matrix.add(row)
  return matrix
}

/** Reference implementation in double precision. */
function cosine(a: Float32Array, b: Float32Array): number {
  const product = (x: Float32Array, y: Float32Array) => x.reduce((sum, value, at) => sum + value * (y[at] as number), 0)
  const lengths = Math.sqrt(product(a, a)) * Math.sqrt(product(b, b))
  return lengths === 0 ? 0 : product(a, b) / lengths
}

/** A query and rows of the same length. */
const anyVectors = fc.integer({ min: 1, max: 400 }).chain((dimensions) => {
  const values = fc.float32Array({ minLength: dimensions, maxLength: dimensions, min: -1_000, max: 1_000, noNaN: true })
  return fc.record({ query: values, rows: fc.array(values, { maxLength: 50, size: 'max' }) })
})

/** Vector with a component in every dimension that differs from those of the neighbouring rows. */
const wave = (row: number, dimensions: number) =>
  Float32Array.from({ length: dimensions }, (_, at) => Math.sin(row * 0.7 + at * (1 + row)))

const kernels: readonly (readonly [string, () => MatrixKernel | undefined])[] = [
  ['simdKernel', simdKernel],
  ['scalarKernel', scalarKernel],
]

describe.each(kernels)('Matrix with %s', (_, makeKernel) => {
  const kernel = () => {
    const made = makeKernel()
    expect(made).toBeDefined()
    return made
  }

  it('scores returns the cosine of every row with the query', () => {
    fc.assert(
      fc.property(anyVectors, ({ query, rows }) => {
        const scores = createMatrix(kernel(), rows, query.length).scores(query)
        expect(scores).toHaveLength(rows.length)
        for (const [row, values] of rows.entries())
          expect(Math.abs((scores[row] as number) - cosine(values, query))).toBeLessThan(1e-5)
      }),
      { numRuns: 50 },
    )
  })

  it('with vectors of any length ignores the length', () => {
    const scores = createMatrix(kernel(), [
      vector(3, 4),
      vector(-30, -40),
      vector(4e37, 3e37),
      vector(0, 1e-40),
    ]).scores(vector(0, 2))
    const expected = [0.8, -0.8, 0.6, 1]
    for (const [row, score] of scores.entries()) expect(score).toBeCloseTo(expected[row] as number, 6)
  })

  it('with a row as the query returns 1 for it', () => {
    const rows = Array.from({ length: 20 }, (_, row) => wave(row, 384))
    const matrix = createMatrix(kernel(), rows)
    for (const [row, values] of rows.entries()) expect(matrix.scores(values)[row]).toBeCloseTo(1, 6)
  })

  it('with zero or non-finite vectors returns 0, as a row and as the query', () => {
    const withoutDirection = [
      vector(0, 0, 0),
      vector(1, Number.NaN, 0),
      vector(Number.POSITIVE_INFINITY, 1, 1),
      vector(0, 0, Number.NEGATIVE_INFINITY),
    ]
    const matrix = createMatrix(kernel(), [...withoutDirection, vector(1, 2, 3)])
    expect([...matrix.scores(vector(1, 2, 3))].slice(0, 4)).toEqual([0, 0, 0, 0])
    for (const query of withoutDirection) expect([...matrix.scores(query)]).toEqual([0, 0, 0, 0, 0])
  })

  it('with queries between additions keeps its rows while it grows', () => {
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

  it('with an input array changed later keeps the added values', () => {
    const values = vector(1, 0)
    const matrix = createMatrix(kernel(), [values])
    values.set([0, 1])
    expect([...matrix.scores(vector(1, 0))]).toEqual([1])
  })

  it('without rows returns no scores', () => {
    const matrix = new Matrix(3, kernel())
    expect([matrix.dimensions, matrix.rows, matrix.scores(vector(1, 2, 3)).length]).toEqual([3, 0, 0])
  })
})

describe('Matrix', () => {
  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('with %d dimensions throws bad-option', (dimensions) =>
    expect(() => new Matrix(dimensions)).toThrow(
      expect.objectContaining({
        code: 'bad-option',
        param: 'dimensions',
        message: `dimensions is ${dimensions}. Use a whole number of 1 or more.`,
      }),
    ),
  )

  it.each([[vector()], [vector(1)], [vector(1, 2, 3)]])(
    'with a vector of other dimensions throws bad-option, as a row or as the query',
    (values) => {
      const message = `The vector has ${values.length} dimensions instead of 2. Embed all texts with the same model.`
      const error = expect.objectContaining({ code: 'bad-option', param: 'dimensions', message })
      const matrix = new Matrix(2)
      expect(() => matrix.add(values)).toThrow(error)
      expect(() => matrix.scores(values)).toThrow(error)
      expect(matrix.rows).toBe(0)
    },
  )
})

describe('Matrix without memory to grow', () => {
  /** Kernel that can reserve at most `maxFloats`. */
  const limitedKernel = (maxFloats: number): MatrixKernel => {
    const inner = scalarKernel()
    const reserve = (length: number) => {
      if (length > maxFloats) throw new RangeError('out of memory')
      return inner.reserve(length)
    }
    return { ...inner, reserve }
  }

  it('uses the memory there is, then throws full and keeps its rows', () => {
    // Room for a query, 48 rows of 4 floats and 48 scores: doubling 32 rows does not fit.
    const matrix = new Matrix(4, limitedKernel(4 + 48 * 4 + 48))
    for (let row = 0; row < 48; row++) matrix.add(wave(row, 4))
    const message = 'Out of memory after 48 vectors of 4 dimensions. Erase old sessions or embed with fewer dimensions.'
    expect(() => matrix.add(wave(48, 4))).toThrow(
      expect.objectContaining({ code: 'full', message, cause: new RangeError('out of memory') }),
    )
    expect(matrix.rows).toBe(48)
    expect(matrix.scores(wave(47, 4))[47]).toBeCloseTo(1, 6)
  })

  it('with simdKernel addresses memory beyond 2 GiB and throws above 4 GiB', () => {
    const kernel = simdKernel() as MatrixKernel
    const scores = 2 ** 29 - 2
    const floats = kernel.reserve(scores + 16)
    for (let row = -1; row < 16; row++) floats[4 + 4 * row] = row < 0 ? 1 : row
    kernel.multiply(4, 16, scores)
    expect([...floats.subarray(scores, scores + 16)]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15])
    expect(() => kernel.reserve(2 ** 30 + 1)).toThrow(RangeError)
  })
})

describe('Matrix without SIMD', () => {
  afterEach(() => {
    vi.unstubAllGlobals()
  })

  it('without WebAssembly falls back to the scalar kernel', () => {
    vi.stubGlobal('WebAssembly', undefined)
    expect(simdKernel()).toBeUndefined()
    expect([...createMatrix(undefined, [vector(1, 0), vector(0, 1)]).scores(vector(0, 5))]).toEqual([0, 1])
  })

  it('without address space falls back to the scalar kernel', () => {
    const Instance = function Instance() {
      throw new RangeError('could not allocate memory')
    }
    vi.stubGlobal('WebAssembly', { Module: WebAssembly.Module, Instance })
    expect(simdKernel()).toBeUndefined()
    expect([...createMatrix(undefined, [vector(1, 0), vector(0, 1)]).scores(vector(0, 5))]).toEqual([0, 1])
  })
})
