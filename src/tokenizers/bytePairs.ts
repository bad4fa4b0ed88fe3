/** A published rank table: the token with rank i as text, or as bytes where it is not valid UTF-8 by itself. */
type RankTable = readonly (string | readonly number[])[]

const none = 0x7fffffff
/** How many joins are remembered; each has one slot, until another comes there. */
const slots = 65_536

/** The rank of every token, by its bytes: one character per byte, so that plain ASCII is its own key. */
export class Ranks {
  readonly #ranks = new Map<string, number>()
  readonly #bytes: Int32Array
  readonly #pairs = new Float64Array(slots).fill(-1)
  readonly #joined = new Int32Array(slots)

  constructor(table: RankTable) {
    table.forEach((token, rank) => {
      this.#ranks.set(typeof token === 'string' ? toBytes(token) : String.fromCharCode(...token), rank)
    })
    this.#bytes = Int32Array.from({ length: 256 }, (_, byte) => this.#ranks.get(String.fromCharCode(byte)) ?? none)
  }

  get(bytes: string): number | undefined {
    return this.#ranks.get(bytes)
  }

  /** Every token, by its bytes. */
  keys(): Iterable<string> {
    return this.#ranks.keys()
  }

  /** The token of a single byte. */
  ofByte(byte: number): number {
    return this.#bytes[byte] as number
  }

  /** The token that two neighbours become, of which `bytes` from `start` to `end` consist. Most pairs come again and again: no text is cut out for them. */
  ofPair(left: number, right: number, bytes: string, start: number, end: number): number {
    const pair = left * 0x100000 + right
    const slot = (Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b)) >>> 16
    if (this.#pairs[slot] === pair) return this.#joined[slot] as number
    const joined = this.#ranks.get(bytes.slice(start, end)) ?? none
    this.#pairs[slot] = pair
    this.#joined[slot] = joined
    return joined
  }
}

/** Indexes a rank table by the bytes of its tokens. */
export const readRanks = (table: RankTable): Ranks => new Ranks(table)

/** The UTF-8 bytes of a text, one character each; half a surrogate pair becomes U+FFFD, as everywhere else. */
export function toBytes(text: string): string {
  let at = 0
  while (at < text.length && text.charCodeAt(at) < 0x80) at++
  if (at === text.length) return text
  let bytes = text.slice(0, at)
  while (at < text.length) {
    const point = text.codePointAt(at) as number
    bytes += encoded(point >= 0xd800 && point <= 0xdfff ? 0xfffd : point)
    at += point > 0xffff ? 2 : 1
  }
  return bytes
}

/** One code point; written out because a table has 100,000 tokens to convert before the first count. */
function encoded(point: number): string {
  const tail = 0x80 | (point & 0x3f)
  if (point < 0x80) return String.fromCharCode(point)
  if (point < 0x800) return String.fromCharCode(0xc0 | (point >> 6), tail)
  const middle = 0x80 | ((point >> 6) & 0x3f)
  if (point < 0x10000) return String.fromCharCode(0xe0 | (point >> 12), middle, tail)
  return String.fromCharCode(0xf0 | (point >> 18), 0x80 | ((point >> 12) & 0x3f), middle, tail)
}

/**
 * How many tokens byte pair encoding makes of a string of bytes (at most 65,536 of them): again and again the pair
 * with the lowest rank is joined, the leftmost of equals first. A heap finds it, so time grows with n log n.
 */
export function countMerged(bytes: string, ranks: Ranks): number {
  const parts = chain(bytes, ranks)
  const { next, previous, token, rank, heap } = parts
  const offer = (start: number): void => {
    const middle = next[start] as number
    const joined =
      middle >= bytes.length
        ? none
        : ranks.ofPair(token[start] as number, token[middle] as number, bytes, start, next[middle] as number)
    rank[start] = joined
    if (joined !== none) heap.push(joined * 65_536 + start)
  }
  for (let start = 0; start < bytes.length; start++) offer(start)
  let count = bytes.length
  for (let best = heap.pop(); best !== undefined; best = heap.pop()) {
    const start = best % 65_536
    // An entry whose pair has since been joined with a neighbour is stale.
    if (rank[start] !== (best - start) / 65_536) continue
    join(parts, start, bytes.length)
    count -= 1
    offer(start)
    const before = previous[start] as number
    if (before >= 0) offer(before)
  }
  return count
}

/** A binary heap of numbers, the smallest on top. */
class Heap {
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

/** Parts of a string as a linked list; a part is named by where it starts, `token` is its own rank and `rank` that of it and its successor. */
type Chain = {
  readonly next: Int32Array
  readonly previous: Int32Array
  readonly token: Int32Array
  readonly rank: Int32Array
  readonly heap: Heap
}

/** Used again for every string, as large as the largest so far: most have a few bytes, and to make room would take longer than to join them. */
let room: Chain = roomFor(64)

function roomFor(length: number): Chain {
  const column = (): Int32Array => new Int32Array(length)
  return { next: column(), previous: column(), token: column(), rank: column(), heap: new Heap(2 * length) }
}

function chain(bytes: string, ranks: Ranks): Chain {
  if (bytes.length > room.next.length) room = roomFor(2 * bytes.length)
  for (let at = 0; at < bytes.length; at++) {
    room.next[at] = at + 1
    room.previous[at] = at - 1
    room.token[at] = ranks.ofByte(bytes.charCodeAt(at))
  }
  return room
}

function join({ next, previous, token, rank }: Chain, start: number, length: number): void {
  const gone = next[start] as number
  const after = next[gone] as number
  next[start] = after
  token[start] = rank[start] as number
  rank[gone] = none
  if (after < length) previous[after] = start
}
