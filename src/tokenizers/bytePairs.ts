/** A published rank table: the token with rank i as text, or as bytes if it is not valid UTF-8 by itself. */
type RankTable = readonly (string | readonly number[])[]

const noRank = 0x7fffffff
/** Slots of the direct-mapped cache of merged pairs. */
const pairCacheSlots = 65_536

/** Maps tokens to their ranks. Keys are byte strings, one character per byte, so that ASCII text is its own key. */
export class RankIndex {
  readonly #ranks = new Map<string, number>()
  readonly #byteRanks: Int32Array
  /** Pair cache: `left * 2^20 + right` in `#pairs`, the rank of the merged token in `#merged`. */
  readonly #pairs = new Float64Array(pairCacheSlots).fill(-1)
  readonly #merged = new Int32Array(pairCacheSlots)

  constructor(table: RankTable) {
    table.forEach((token, rank) => {
      this.#ranks.set(typeof token === 'string' ? toByteString(token) : String.fromCharCode(...token), rank)
    })
    this.#byteRanks = Int32Array.from(
      { length: 256 },
      (_, byte) => this.#ranks.get(String.fromCharCode(byte)) ?? noRank,
    )
  }

  get(bytes: string): number | undefined {
    return this.#ranks.get(bytes)
  }

  /** Byte strings of all tokens. */
  keys(): Iterable<string> {
    return this.#ranks.keys()
  }

  rankOfByte(byte: number): number {
    return this.#byteRanks[byte] as number
  }

  /**
   * Rank of the token that merges two neighbours, which span `bytes` from `start` to `end`. The cache avoids slicing
   * for frequent pairs.
   */
  rankOfPair(left: number, right: number, bytes: string, start: number, end: number): number {
    const pair = left * 0x100000 + right
    const slot = (Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b)) >>> 16
    if (this.#pairs[slot] === pair) return this.#merged[slot] as number
    const merged = this.#ranks.get(bytes.slice(start, end)) ?? noRank
    this.#pairs[slot] = pair
    this.#merged[slot] = merged
    return merged
  }
}

/** Indexes a rank table by the bytes of its tokens. */
export const createRankIndex = (table: RankTable): RankIndex => new RankIndex(table)

/** Encodes text as UTF-8, one character per byte. Lone surrogates become U+FFFD, as in TextEncoder. */
export function toByteString(text: string): string {
  let at = 0
  while (at < text.length && text.charCodeAt(at) < 0x80) at++
  if (at === text.length) return text
  let bytes = text.slice(0, at)
  while (at < text.length) {
    const point = text.codePointAt(at) as number
    bytes += encodeCodePoint(point >= 0xd800 && point <= 0xdfff ? 0xfffd : point)
    at += point > 0xffff ? 2 : 1
  }
  return bytes
}

/** Hand-written because 100,000 or more tokens of a table are encoded before the first count. */
function encodeCodePoint(point: number): string {
  const last = 0x80 | (point & 0x3f)
  if (point < 0x80) return String.fromCharCode(point)
  if (point < 0x800) return String.fromCharCode(0xc0 | (point >> 6), last)
  const middle = 0x80 | ((point >> 6) & 0x3f)
  if (point < 0x10000) return String.fromCharCode(0xe0 | (point >> 12), middle, last)
  return String.fromCharCode(0xf0 | (point >> 18), 0x80 | ((point >> 12) & 0x3f), middle, last)
}

/**
 * Counts the tokens that byte pair encoding makes of a byte string of at most 65,536 bytes. Repeatedly merges the pair
 * with the lowest rank, the leftmost first among equals. A heap keeps this at O(n log n).
 */
export function countBpeTokens(bytes: string, ranks: RankIndex): number {
  const parts = resetParts(bytes, ranks)
  const { next, previous, token, pairRank, heap } = parts
  const enqueuePair = (start: number): void => {
    const middle = next[start] as number
    const merged =
      middle >= bytes.length
        ? noRank
        : ranks.rankOfPair(token[start] as number, token[middle] as number, bytes, start, next[middle] as number)
    pairRank[start] = merged
    // Heap key: rank in the upper bits, start position in the lower 16.
    if (merged !== noRank) heap.push(merged * 65_536 + start)
  }
  for (let start = 0; start < bytes.length; start++) enqueuePair(start)
  let count = bytes.length
  for (let best = heap.pop(); best !== undefined; best = heap.pop()) {
    const start = best % 65_536
    // Skip stale entries: one of the two parts has since been merged with another neighbour.
    if (pairRank[start] !== (best - start) / 65_536) continue
    mergeWithNext(parts, start, bytes.length)
    count -= 1
    enqueuePair(start)
    const before = previous[start] as number
    if (before >= 0) enqueuePair(before)
  }
  return count
}

/** Binary min-heap of numbers. With the shared `Heap`, Chinese and other long runs take twice as long to count. */
class MinHeap {
  readonly #items: Float64Array
  #size = 0

  constructor(capacity: number) {
    this.#items = new Float64Array(capacity)
  }

  push(item: number): void {
    const items = this.#items
    let at = this.#size++
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent] as number
      if (above <= item) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  pop(): number | undefined {
    if (this.#size === 0) return undefined
    const items = this.#items
    const top = items[0] as number
    const last = items[--this.#size] as number
    const size = this.#size
    let at = 0
    for (let child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size && (items[child + 1] as number) < (items[child] as number)) child += 1
      if ((items[child] as number) >= last) break
      items[at] = items[child] as number
      at = child
    }
    items[at] = last
    return top
  }
}

/**
 * Parts of a byte string as a doubly linked list, indexed by start position. `token` is the rank of the part,
 * `pairRank` the rank of the part merged with its successor.
 */
type Parts = {
  readonly next: Int32Array
  readonly previous: Int32Array
  readonly token: Int32Array
  readonly pairRank: Int32Array
  readonly heap: MinHeap
}

/** Shared buffers, grown on demand: most strings have a few bytes, and allocating would take longer than merging. */
let buffers: Parts = allocateParts(64)

function allocateParts(length: number): Parts {
  const column = (): Int32Array => new Int32Array(length)
  return { next: column(), previous: column(), token: column(), pairRank: column(), heap: new MinHeap(2 * length) }
}

function resetParts(bytes: string, ranks: RankIndex): Parts {
  if (bytes.length > buffers.next.length) buffers = allocateParts(2 * bytes.length)
  for (let at = 0; at < bytes.length; at++) {
    buffers.next[at] = at + 1
    buffers.previous[at] = at - 1
    buffers.token[at] = ranks.rankOfByte(bytes.charCodeAt(at))
  }
  return buffers
}

function mergeWithNext({ next, previous, token, pairRank }: Parts, start: number, length: number): void {
  const removed = next[start] as number
  const after = next[removed] as number
  next[start] = after
  token[start] = pairRank[start] as number
  pairRank[removed] = noRank
  if (after < length) previous[after] = start
}
