/** The memory of a matrix and the product over it: the query at 0, the rows after it, `stride` numbers each. */
export type Kernel = {
  /** Makes room for so many numbers, keeps those there are and gives all of them; earlier views are void. Throws when there is no room. */
  reserve(length: number): Float32Array
  /** Writes query · row for each row from `scores` on. It may read and score up to the next multiple of `lanes` rows. */
  multiply(stride: number, rows: number, scores: number): void
}

/**
 * Rows are read at so many places at once, each a share of them apart. One stream leaves a core waiting for memory at the
 * start of every page; eight take all it can deliver, nearly twice as much. More gain nothing, nor does a fused multiply-add.
 */
export const lanes = 8

type Exports = {
  readonly memory: WebAssembly.Memory
  readonly multiply: (width: number, rowStep: number, scores: number, scoreStep: number) => void
}

const page = 65_536
const float = 4
let compiled: WebAssembly.Module | undefined

/** A kernel of 128-bit vectors, or nothing where these are missing: no WebAssembly, no SIMD in it, a policy against it, no address space left. */
export function simdKernel(): Kernel | undefined {
  try {
    compiled ??= new WebAssembly.Module(assemble())
    const { memory, multiply } = new WebAssembly.Instance(compiled).exports as Exports
    return {
      reserve(length) {
        const missing = Math.ceil((length * float - memory.buffer.byteLength) / page)
        if (missing > 0) memory.grow(missing)
        return new Float32Array(memory.buffer)
      },
      multiply(stride, rows, scores) {
        const share = Math.ceil(rows / lanes)
        multiply(stride * float, share * stride * float, scores * float, share * float)
      },
    }
  } catch {
    return undefined
  }
}

/** Instructions as bytes, each after its operands and before its own constants. */
type Code = readonly number[]

const op =
  (...code: Code) =>
  (...operands: readonly Code[]): Code => [...operands.flat(), ...code]
const join = op()
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
const perLane = (make: (lane: number) => Code): Code => Array.from({ length: lanes }, (_, lane) => make(lane)).flat()

const part = (of: Code, place: number): Code => op(0xfd, 0x1f, place)(of) // f32x4.extract_lane
const total = (of: Code): Code => addFloats(addFloats(part(of, 0), part(of, 1)), addFloats(part(of, 2), part(of, 3)))

/** The locals: addresses and lengths in bytes, the first four given by the caller, then an address and a sum for each lane. */
const [width, rowStep, scores, scoreStep, end, column, at, row] = [0, 1, 2, 3, 4, 5, 6, 7]
const query = row + lanes
const sum = query + 1

const multiplyBody = (): Code =>
  join(
    set(end, add(get(scores), get(scoreStep))),
    set(at, get(width)),
    perLane((lane) => join(set(row + lane, get(at)), advance(at, get(rowStep)))),
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
      perLane((lane) => join(storeFloat(get(at), total(get(sum + lane))), advance(at, get(scoreStep)))),
      advance(scores, constant(4)),
    ),
  )

/** A length in seven bits a byte, the lowest first, and what it is the length of. */
const sized = (body: Code): Code => [...leb128(body.length), ...body]
const leb128 = (value: number): Code => (value < 128 ? [value] : [(value & 127) | 128, ...leb128(value >>> 7)])
const section = (id: number, ...body: Code): Code => [id, ...sized(body)]
const name = (text: string): Code => sized(Array.from(text, (letter) => letter.charCodeAt(0)))

/** The module: one function type, one function, one memory, the names of both and the function's code. */
function assemble(): Uint8Array<ArrayBuffer> {
  const [i32, v128] = [0x7f, 0x7b]
  const locals = [2, query - end, i32, 1 + lanes, v128]
  return Uint8Array.of(
    ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, 1, 0x60, 4, i32, i32, i32, i32, 0),
    ...section(3, 1, 0),
    ...section(5, 1, 0, 0),
    ...section(7, 2, ...name('multiply'), 0, 0, ...name('memory'), 2, 0),
    ...section(10, 1, ...sized([...locals, ...multiplyBody(), 0x0b])),
  )
}
