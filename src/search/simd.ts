/** Memory and dot products of a matrix: the query at 0, the rows after it, `stride` floats each. */
export type MatrixKernel = {
  /**
   * Grows the memory to `length` floats, keeps its content and returns a view of all of it. Earlier views become
   * invalid. Throws if it cannot grow.
   */
  reserve(length: number): Float32Array
  /**
   * Writes query · row for each row, starting at `scores`. May read and write up to the next multiple of `laneCount`
   * rows.
   */
  multiply(stride: number, rows: number, scores: number): void
}

/**
 * Rows processed in parallel, each in its own part of the matrix. A single stream stalls at the start of every memory
 * page; eight streams reach nearly twice its throughput, the limit of a core. More streams or fused multiply-add gain
 * nothing.
 */
export const laneCount = 8

type Exports = {
  readonly memory: WebAssembly.Memory
  readonly multiply: (width: number, rowStep: number, scores: number, scoreStep: number) => void
}

const pageBytes = 65_536
const floatBytes = 4
let compiled: WebAssembly.Module | undefined

/**
 * Creates a WebAssembly kernel, or returns undefined if WebAssembly or its SIMD is missing or blocked, or address space
 * is exhausted.
 */
export function simdKernel(): MatrixKernel | undefined {
  try {
    compiled ??= new WebAssembly.Module(assemble())
    const { memory, multiply } = new WebAssembly.Instance(compiled).exports as Exports
    return {
      reserve(length) {
        const missingPages = Math.ceil((length * floatBytes - memory.buffer.byteLength) / pageBytes)
        if (missingPages > 0) memory.grow(missingPages)
        return new Float32Array(memory.buffer)
      },
      multiply(stride, rows, scores) {
        const rowsPerLane = Math.ceil(rows / laneCount)
        multiply(stride * floatBytes, rowsPerLane * stride * floatBytes, scores * floatBytes, rowsPerLane * floatBytes)
      },
    }
  } catch {
    return undefined
  }
}

/** WebAssembly instructions as bytes: operands, opcode, immediates. */
type Code = readonly number[]

const op =
  (...code: Code) =>
  (...operands: readonly Code[]): Code => [...operands.flat(), ...code]
const concat = op()
const add = op(0x6a) // i32.add
const addFloats = op(0x92) // f32.add
const storeFloat = op(0x38, 2, 0) // f32.store
const load = op(0xfd, 0x00, 4, 0) // v128.load
const splat = op(0xfd, 0x11) // i32x4.splat
const addVectors = op(0xfd, 0xe4, 1) // f32x4.add
const multiplyVectors = op(0xfd, 0xe6, 1) // f32x4.mul
const get = (local: number): Code => [0x20, local]
const set = (local: number, value: Code): Code => [...value, 0x21, local]
const constant = (below64: number): Code => [0x41, below64]
const advance = (local: number, by: Code): Code => set(local, add(get(local), by))
const repeatWhileBelow = (local: number, end: number, ...body: readonly Code[]): Code => [
  ...[0x03, 0x40], // loop, without a result
  ...op(0x49, 0x0d, 0, 0x0b)(...body, get(local), get(end)), // i32.lt_u, br_if, end
]
const perLane = (make: (lane: number) => Code): Code =>
  Array.from({ length: laneCount }, (_, lane) => make(lane)).flat()

const extractLane = (of: Code, lane: number): Code => op(0xfd, 0x1f, lane)(of) // f32x4.extract_lane
const sumLanes = (of: Code): Code =>
  addFloats(addFloats(extractLane(of, 0), extractLane(of, 1)), addFloats(extractLane(of, 2), extractLane(of, 3)))

/** Locals: byte addresses and lengths, the first four are parameters; then a row address and a sum per lane. */
const [width, rowStep, scores, scoreStep, end, column, at, row] = [0, 1, 2, 3, 4, 5, 6, 7]
const query = row + laneCount
const sum = query + 1

const multiplyBody = (): Code =>
  concat(
    set(end, add(get(scores), get(scoreStep))),
    set(at, get(width)),
    perLane((lane) => concat(set(row + lane, get(at)), advance(at, get(rowStep)))),
    repeatWhileBelow(
      scores,
      end,
      perLane((lane) => set(sum + lane, splat(constant(0)))),
      set(column, constant(0)),
      repeatWhileBelow(
        column,
        width,
        set(query, load(get(column))),
        perLane((lane) =>
          set(sum + lane, addVectors(get(sum + lane), multiplyVectors(get(query), load(get(row + lane))))),
        ),
        perLane((lane) => advance(row + lane, constant(16))),
        advance(column, constant(16)),
      ),
      set(at, get(scores)),
      perLane((lane) => concat(storeFloat(get(at), sumLanes(get(sum + lane))), advance(at, get(scoreStep)))),
      advance(scores, constant(4)),
    ),
  )

/** Prefixes bytes with their length as LEB128. */
const withLength = (body: Code): Code => [...leb128(body.length), ...body]
const leb128 = (value: number): Code => (value < 128 ? [value] : [(value & 127) | 128, ...leb128(value >>> 7)])
const section = (id: number, ...body: Code): Code => [id, ...withLength(body)]
const name = (text: string): Code => withLength(Array.from(text, (letter) => letter.charCodeAt(0)))

/** Assembles a module with one function type, one function, one memory, the exports of both and the function body. */
function assemble(): Uint8Array<ArrayBuffer> {
  const [i32, v128] = [0x7f, 0x7b]
  const locals = [2, query - end, i32, 1 + laneCount, v128]
  return Uint8Array.of(
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, 1, 0x60, 4, i32, i32, i32, i32, 0),
    ...section(3, 1, 0),
    ...section(5, 1, 0, 0),
    ...section(7, 2, ...name('multiply'), 0, 0, ...name('memory'), 2, 0),
    ...section(10, 1, ...withLength([...locals, ...multiplyBody(), 0x0b])),
  )
}
