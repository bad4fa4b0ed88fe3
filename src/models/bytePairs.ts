/** The rank of every token, by its bytes: one character per byte, so that plain ASCII is its own key. */
export type Ranks = ReadonlyMap<string, number>

/** A published rank table: the token with rank i as text, or as bytes where it is not valid UTF-8 by itself. */
type RankTable = readonly (string | readonly number[])[]

const none = 0x7fffffff

/** Indexes a rank table by the bytes of its tokens. */
export function readRanks(table: RankTable): Ranks {
  const ranks = new Map<string, number>()
  table.forEach((token, rank) => {
    ranks.set(typeof token === 'string' ? toBytes(token) : String.fromCharCode(...token), rank)
  })
  return ranks
}

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
  const parts = chain(bytes.length)
  const heap = new Heap(2 * bytes.length)
  const rankOf = (start: number): number => {
    const middle = parts.next[start] as number
    if (middle >= bytes.length) return none
    return ranks.get(bytes.slice(start, parts.next[middle])) ?? none
  }
  const offer = (start: number): void => {
    const rank = rankOf(start)
    parts.rank[start] = rank
    if (rank !== none) heap.push(rank * 65_536 + start)
  }
  for (let start = 0; start < bytes.length; start++) offer(start)
  let count = bytes.length
  for (let best = heap.pop(); best !== undefined; best = heap.pop()) {
    const start = best % 65_536
    // An entry whose pair has since been joined with a neighbour is stale.
    if (parts.rank[start] !== (best - start) / 65_536) continue
    join(parts, start)
    count -= 1
    offer(start)
    const before = parts.previous[start] as number
    if (before >= 0) offer(before)
  }
  return count
}

/** Parts of a string as a linked list; a part is named by where it starts, `rank` is that of it and its successor. */
type Chain = { readonly next: Int32Array; readonly previous: Int32Array; readonly rank: Int32Array }

function chain(length: number): Chain {
  const parts = { next: new Int32Array(length), previous: new Int32Array(length), rank: new Int32Array(length).fill(none) }
  for (let at = 0; at < length; at++) {
    parts.next[at] = at + 1
    parts.previous[at] = at - 1
  }
  return parts
}

function join(parts: Chain, start: number): void {
  const gone = parts.next[start] as number
  const after = parts.next[gone] as number
  parts.next[start] = after
  parts.rank[gone] = none
  if (after < parts.previous.length) parts.previous[after] = start
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
