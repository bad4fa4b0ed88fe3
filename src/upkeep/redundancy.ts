import { check } from '../domain/error.ts'
import { wordsOf } from '../text/words.ts'

/** Words are looked up together until no more texts than this are likely to hold all of them. */
const few = 16
/** At most so many together, the more the fewer words may be missing: there are many ways to choose from many words. */
const depths = [
  { missing: 3, words: 4 },
  { missing: 10, words: 2 },
  { missing: Number.POSITIVE_INFINITY, words: 1 },
] as const

/** Texts that hold the same words: these by their numbers, the rarest first, and where the texts stand, in order. */
type Group = { readonly words: Uint32Array; readonly places: number[] }
/** All texts that have words, those with the newest text first, and the part of the texts each word is in. */
type Grouped = { readonly groups: readonly Group[]; readonly parts: Float64Array }

/**
 * All pairs of texts, the older one first, that are similar: the number of words both hold, divided by the number of words
 * either holds, is at least the threshold. A text without words is similar to none. There may be very many pairs; to know
 * what is redundant, take `redundantOlder`.
 *
 * @example
 * redundantPairs(['Wait for it', 'go', 'wait for IT!']) // [[0, 2]]
 */
export function redundantPairs(texts: readonly string[], threshold = 0.9): readonly (readonly [older: number, newer: number])[] {
  const pairs: [number, number][] = []
  const grouped = groupsOf(texts)
  for (const { places } of grouped.groups) for (const [at, older] of places.entries()) for (const newer of places.slice(at + 1)) pairs.push([older, newer])
  findSimilar(grouped, threshold, (one, other) => {
    for (const left of one.places) for (const right of other.places) pairs.push(left < right ? [left, right] : [right, left])
    return 'go on'
  })
  return pairs.sort((left, right) => left[0] - right[0] || left[1] - right[1])
}

/**
 * Where the texts stand that a newer one makes redundant: the older ones of `redundantPairs`, without making the pairs.
 *
 * @example
 * redundantOlder(['ok', 'Wait for it', 'ok', 'wait for IT!']) // Set { 0, 1 }
 */
export function redundantOlder(texts: readonly string[], threshold = 0.9): ReadonlySet<number> {
  const redundant = new Set<number>()
  const grouped = groupsOf(texts)
  for (const { places } of grouped.groups) for (const older of places.slice(0, -1)) redundant.add(older)
  findSimilar(grouped, threshold, (older) => {
    redundant.add(newestOf(older))
    return 'enough'
  })
  return redundant
}

const newestOf = ({ places }: Group): number => places.at(-1) as number

function groupsOf(texts: readonly string[]): Grouped {
  const distinct = [...new Set(texts)]
  const { words, ends, parts } = numbered(distinct)
  const groups: Group[] = []
  const groupOf = new Map<string, Group>()
  const slots = new Int32Array(2 ** Math.ceil(Math.log2(distinct.length + 1) + 1))
  for (const [at, text] of distinct.entries()) {
    const own = words.subarray(ends[at - 1] ?? 0, ends[at]).sort()
    if (own.length > 0) groupOf.set(text, groups[placeIn(groups, own, slots)] as Group)
  }
  for (const [place, text] of texts.entries()) groupOf.get(text)?.places.push(place)
  return { groups: groups.sort((left, right) => newestOf(right) - newestOf(left)), parts }
}

/** The place of the group with these words, which is made if there is none; `slots` has room for it by the hash of its words. */
function placeIn(groups: Group[], words: Uint32Array, slots: Int32Array): number {
  let hash = words.length
  for (const word of words) hash = Math.imul(hash ^ word, 0x9e3779b1) ^ (hash >>> 15)
  for (let slot = hash & (slots.length - 1); ; slot = (slot + 1) & (slots.length - 1)) {
    const place = (slots[slot] as number) - 1
    const known = groups[place]?.words
    if (known?.length === words.length && share(known, words, words.length)) return place
    if (known === undefined) {
      slots[slot] = groups.push({ words, places: [] })
      return groups.length - 1
    }
  }
}

/** The words of all texts, one after the other and each once for a text, numbered from the rarest to the commonest. */
function numbered(texts: readonly string[]): { readonly words: Uint32Array; readonly ends: Uint32Array; readonly parts: Float64Array } {
  const names = new Map<string, number>()
  const uses: number[] = []
  const lastUse: number[] = []
  let words = new Uint32Array(16 * texts.length)
  const ends = new Uint32Array(texts.length)
  let end = 0
  for (const [place, text] of texts.entries()) {
    const found = wordsOf(text)
    if (end + found.length > words.length) words = enlarged(words, end + found.length)
    for (const word of found) {
      let name = names.get(word)
      if (name === undefined) {
        name = uses.push(0) - 1
        names.set(word, name)
      } else if (lastUse[name] === place) continue
      lastUse[name] = place
      uses[name] = (uses[name] as number) + 1
      words[end++] = name
    }
    ends[place] = end
  }
  const order = Uint32Array.from(uses.keys()).sort((left, right) => (uses[left] as number) - (uses[right] as number))
  const ranks = new Uint32Array(order.length)
  for (let rank = 0; rank < order.length; rank++) ranks[order[rank] as number] = rank
  for (let at = 0; at < end; at++) words[at] = ranks[words[at] as number] as number
  return { words, ends, parts: Float64Array.from(order, (name) => (uses[name] as number) / texts.length) }
}

/** The same numbers with room for twice as many as are needed. */
function enlarged(numbers: Uint32Array<ArrayBuffer>, needed: number): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(2 * needed)
  larger.set(numbers)
  return larger
}

/**
 * Meets similar groups, the one whose newest text is older first, until for that one it is `enough`.
 *
 * Of two sets of `a` and `b` words that share at least `n`, the first word shared is one of the first `a - n + 1` and
 * `b - n + 1`, the second one of one more, and so on: otherwise too few words are left. Each set is therefore posted under
 * its first words, which are its rarest, and under several of them together where one alone is in many texts.
 */
function findSimilar(grouped: Grouped, threshold: number, meet: (older: Group, newer: Group) => 'go on' | 'enough'): void {
  check('threshold', threshold, threshold > 0 && threshold <= 1, 'a number above 0 and at most 1')
  const index = new Index(grouped, threshold)
  for (const [place, older] of grouped.groups.entries()) {
    for (const newer of index.similarTo(place)) if (meet(older, newer) === 'enough') break
    index.add(place)
  }
}

class Index {
  readonly #groups: readonly Group[]
  readonly #parts: Float64Array
  readonly #threshold: number
  /** Which sizes the sets have. */
  readonly #sizes: Uint8Array
  /** Chains of postings, the latest first, by the hash of words and of the size of the set that holds them; 0 ends one. */
  readonly #heads: Uint32Array
  #next: Uint32Array<ArrayBuffer>
  #owners: Uint32Array<ArrayBuffer>
  #postings = 0
  /** For whom a group was looked at last. */
  readonly #seen: Int32Array
  readonly #asked: number[] = []

  constructor({ groups, parts }: Grouped, threshold: number) {
    this.#groups = groups
    this.#parts = parts
    this.#threshold = threshold
    const sizes = groups.map(({ words }) => words.length)
    const postings = sizes.reduce((sum, size) => sum + size - leastPartner(size, threshold) + 1, 1)
    this.#sizes = new Uint8Array(sizes.reduce((most, size) => Math.max(most, size), 0) + 1)
    this.#heads = new Uint32Array(2 ** Math.ceil(Math.log2(postings) + 1))
    this.#next = new Uint32Array(2 * postings)
    this.#owners = new Uint32Array(2 * postings)
    this.#seen = new Int32Array(groups.length).fill(-1)
  }

  add(place: number): void {
    const { words } = this.#groups[place] as Group
    const size = words.length
    this.#sizes[size] = 1
    const least = leastPartner(size, this.#threshold)
    const [deepest, shallowest] = [this.#depth(size, size), this.#depth(Math.ceil(size / this.#threshold), least)]
    for (const { words: depth } of depths) {
      if (depth > deepest || depth < shallowest) continue
      for (const slot of this.#slots(words, size, size - least, depth)) this.#post(place, slot)
    }
  }

  #post(place: number, slot: number): void {
    const posting = ++this.#postings
    if (posting === this.#owners.length) {
      this.#owners = enlarged(this.#owners, posting)
      this.#next = enlarged(this.#next, posting)
    }
    this.#owners[posting] = place
    this.#next[posting] = this.#heads[slot] as number
    this.#heads[slot] = posting
  }

  /** The groups added that are similar. */
  *similarTo(place: number): Generator<Group> {
    const { words } = this.#groups[place] as Group
    const size = words.length
    for (let other = leastPartner(size, this.#threshold); other < this.#sizes.length && size / other >= this.#threshold; other++) {
      const needed = leastShared(size + other, this.#threshold)
      // Different sets of one size differ in a word.
      if (this.#sizes[other] === 0 || needed > Math.min(size, other) - (size === other ? 1 : 0)) continue
      for (const slot of this.#slots(words, other, size - needed, this.#depth(Math.max(size, other), needed))) {
        for (let posting = this.#heads[slot] as number; posting !== 0; posting = this.#next[posting] as number) {
          const owner = this.#owners[posting] as number
          if (this.#seen[owner] === place) continue
          const group = this.#groups[owner] as Group
          if (group.words.length !== other) continue
          this.#seen[owner] = place
          if (share(words, group.words, needed)) yield group
        }
      }
    }
  }

  /** How many words are looked up together to find sets that share so many, the larger one of this size. */
  #depth(larger: number, shared: number): number {
    const missing = larger - leastPartner(larger, this.#threshold)
    return depths.find((row) => missing <= row.missing && row.words <= shared)?.words ?? 1
  }

  /** Where sets of a size stand that share these words but for some that are missing; good until the next question. */
  #slots(words: Uint32Array, size: number, missing: number, depth: number): readonly number[] {
    this.#asked.length = 0
    this.#take(words, { missing, depth }, 0, 0, size, this.#groups.length)
    return this.#asked
  }

  /** Adds a slot for every choice of words from a place on, with so many taken before, that few texts are likely to hold. */
  #take(words: Uint32Array, limits: { readonly missing: number; readonly depth: number }, from: number, taken: number, before: number, likely: number): void {
    const end = Math.min(limits.missing + taken + 1, words.length)
    for (let at = from; at < end; at++) {
      const word = words[at] as number
      const hash = Math.imul(before ^ word, 0x9e3779b1)
      const texts = likely * (this.#parts[word] as number)
      if (texts <= few || taken + 1 === limits.depth) this.#asked.push((hash ^ (hash >>> 15)) & (this.#heads.length - 1))
      else this.#take(words, limits, at + 1, taken + 1, hash ^ (hash >>> 13), texts)
    }
  }
}

/** The size of the smallest set that can be similar to one of this size: all its words are shared. */
function leastPartner(size: number, threshold: number): number {
  let least = Math.max(1, Math.floor(size * threshold) - 1)
  while (least / size < threshold) least++
  return least
}

/** How many words two sets must share that have so many together. */
function leastShared(sum: number, threshold: number): number {
  let least = Math.max(0, Math.floor((sum * threshold) / (1 + threshold)) - 1)
  while (least / (sum - least) < threshold) least++
  return least
}

/** Whether two sets in order share so many words. */
function share(left: Uint32Array, right: Uint32Array, needed: number): boolean {
  let [at, other] = [0, 0]
  // how many words of each may be missing in the other
  let [leftSpare, rightSpare] = [left.length - needed, right.length - needed]
  while (leftSpare >= 0 && rightSpare >= 0 && at < left.length && other < right.length) {
    const difference = (left[at] as number) - (right[other] as number)
    if (difference <= 0) at++
    if (difference >= 0) other++
    if (difference < 0) leftSpare--
    if (difference > 0) rightSpare--
  }
  // Words of one that remain when the other ends are missing too.
  return leftSpare >= left.length - at && rightSpare >= right.length - other
}
