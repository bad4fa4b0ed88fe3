import { check } from '../domain/error.ts'
import { wordsOf } from '../text/words.ts'

/** So many sets are compared each with each: to divide them would take longer. */
const few = 12
/** First words are good enough if they leave so many sets to compare each one with. */
const good = 4

/** A text that has words: these by their numbers, the rarest first, and where the text and its copies stand, in order. */
type Entry = { readonly words: Uint32Array; readonly places: readonly number[] }
/** Pairs of sets with so many words together differ, if they are similar, in at most so many. */
type Class = { readonly from: number; to: number; differing: number }
/** A set to be compared, by its place: words before `from` need no comparison, and of the others at most `spare` are missing in a similar set. */
type Member = { readonly place: number; readonly from: number; readonly spare: number }
/** Members under their signatures, one after the other: similar ones have one in common, and may then be looked at as `rest` has it. */
type Posted = {
  readonly hashes: Uint32Array
  readonly owners: Uint32Array
  readonly rest: (posting: number) => Member
}

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
  const entries = entriesOf(texts)
  for (const { places } of entries) for (const [at, older] of places.entries()) for (const newer of places.slice(at + 1)) pairs.push([older, newer])
  const met = new Set<number>()
  findSimilar(entries, threshold, (older, newer) => {
    const pair = older * entries.length + newer
    if (met.has(pair)) return 'go on'
    met.add(pair)
    for (const left of (entries[older] as Entry).places)
      for (const right of (entries[newer] as Entry).places) pairs.push(left < right ? [left, right] : [right, left])
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
  const entries = entriesOf(texts)
  for (const { places } of entries) for (let at = 0; at < places.length - 1; at++) redundant.add(places[at] as number)
  findSimilar(entries, threshold, (older) => {
    redundant.add(newestOf(entries[older] as Entry))
    return 'enough'
  })
  return redundant
}

const newestOf = ({ places }: Entry): number => places.at(-1) as number

/** All different texts that have words, the newest first. */
function entriesOf(texts: readonly string[]): Entry[] {
  const placesOf = new Map<string, number[]>()
  for (let place = 0; place < texts.length; place++) {
    const text = texts[place] as string
    const places = placesOf.get(text)
    if (places === undefined) placesOf.set(text, [place])
    else places.push(place)
  }
  const { words, ends } = numbered([...placesOf.keys()])
  const entries = Array.from(placesOf.values(), (places, at) => ({ words: words.subarray(ends[at - 1] ?? 0, ends[at]).sort(), places }))
  return entries.filter((entry) => entry.words.length > 0).sort((left, right) => newestOf(right) - newestOf(left))
}

/** The words of all texts, one after the other and each once for a text, numbered from the rarest to the commonest. */
function numbered(texts: readonly string[]): { readonly words: Uint32Array; readonly ends: Uint32Array } {
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
  const ranks = inOrder(Uint32Array.from(uses), texts.length + 1).ranks
  for (let at = 0; at < end; at++) words[at] = ranks[words[at] as number] as number
  return { words, ends }
}

/** The same numbers with room for twice as many as are needed. */
function enlarged(numbers: Uint32Array, needed: number): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(2 * needed)
  larger.set(numbers)
  return larger
}

/** The place each of the keys, which are below a limit, has when they are sorted, and where each key ends. */
function inOrder(keys: Uint32Array, limit: number): { readonly ranks: Uint32Array; readonly ends: Uint32Array } {
  const ends = new Uint32Array(limit)
  for (let at = 0; at < keys.length; at++) ends[keys[at] as number]!++
  let end = 0
  for (let key = 0; key < limit; key++) {
    const count = ends[key] as number
    ends[key] = end
    end += count
  }
  const ranks = new Uint32Array(keys.length)
  for (let at = 0; at < keys.length; at++) ranks[at] = ends[keys[at] as number]!++
  return { ranks, ends }
}

/** Meets similar entries by their places, the older one first, until for that one it is `enough`; it may meet two of them again. */
function findSimilar(entries: readonly Entry[], threshold: number, meet: (older: number, newer: number) => 'go on' | 'enough'): void {
  check('threshold', threshold, threshold > 0 && threshold <= 1, 'a number above 0 and at most 1')
  const largest = entries.reduce((most, { words }) => Math.max(most, words.length), 0)
  const shared = Uint32Array.from({ length: 2 * largest + 1 }, (_, sum) => leastShared(sum, threshold))
  const search = new Search(entries, shared, meet)
  for (const one of classesOf(shared)) search.among(membersOf(one, entries, shared, threshold), one.differing)
}

/** Sums of sizes, those together for which similar sets may differ in about as many words. */
function classesOf(shared: Uint32Array): Class[] {
  const classes: Class[] = [{ from: 0, to: 0, differing: 0 }]
  for (let sum = 1; sum < shared.length; sum++) {
    const differing = sum - 2 * (shared[sum] as number)
    const last = classes.at(-1) as Class
    if (differing > last.differing) classes.push({ from: sum, to: sum, differing: differing + (differing >> 3) })
    else last.to = sum
  }
  return classes
}

/** The sets that may be similar to another one in the class. */
function membersOf({ from, to }: Class, entries: readonly Entry[], shared: Uint32Array, threshold: number): Member[] {
  const members: number[] = []
  const partner = (size: number): number => Math.max(from - size, leastPartner(size, threshold))
  let smallest = Number.POSITIVE_INFINITY
  for (let place = 0; place < entries.length; place++) {
    const size = (entries[place] as Entry).words.length
    const other = partner(size)
    if (size + other > to || size / other < threshold) continue
    members.push(place)
    smallest = Math.min(smallest, size)
  }
  return members.map((place) => {
    const size = (entries[place] as Entry).words.length
    return { place, from: 0, spare: size - (shared[size + Math.max(smallest, partner(size))] as number) }
  })
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

class Search {
  readonly #entries: readonly Entry[]
  readonly #shared: Uint32Array
  readonly #meet: (older: number, newer: number) => 'go on' | 'enough'
  /** For which sets it is enough. */
  readonly #settled: Uint8Array

  constructor(entries: readonly Entry[], shared: Uint32Array, meet: (older: number, newer: number) => 'go on' | 'enough') {
    this.#entries = entries
    this.#shared = shared
    this.#meet = meet
    this.#settled = new Uint8Array(entries.length)
  }

  among(members: readonly Member[], differing: number, depth = 0): void {
    let open = 0
    for (let at = 1; at < members.length; at++) {
      this.#compare((members[at] as Member).place, (members[at - 1] as Member).place)
      open += 1 - (this.#settled[(members[at] as Member).place] as number)
    }
    if (open === 0) return
    const most = (open * members.length) / 2
    let best = this.#sorted(this.#byFirstWords(members), members)
    if (best.cost > good * members.length) {
      const other = this.#sorted(this.#byParts(members, differing, depth), members)
      if (other.cost < best.cost) best = other
    }
    if (2 * best.cost > most) {
      this.#compareAll(
        Uint32Array.from(members, ({ place }) => place),
        0,
        members.length,
      )
      return
    }
    const { ends, order, places, rest } = best
    let start = 0
    for (const end of ends) {
      if (end - start > few) this.among(Array.from(order.subarray(start, end), rest), differing, depth + 1)
      else if (end - start > 1) this.#compareAll(places, start, end)
      start = end
    }
  }

  #sorted({ hashes, owners, rest }: Posted, members: readonly Member[]) {
    const bits = Math.ceil(Math.log2(hashes.length + 1)) + 1
    for (let at = 0; at < hashes.length; at++) hashes[at] = (hashes[at] as number) >>> (32 - bits)
    const { ranks, ends } = inOrder(hashes, 2 ** bits)
    const order = new Uint32Array(hashes.length)
    const places = new Uint32Array(hashes.length)
    let cost = 0
    for (let at = 0; at < ranks.length; at++) {
      const place = (members[owners[at] as number] as Member).place
      order[ranks[at] as number] = at
      places[ranks[at] as number] = place
      const key = hashes[at] as number
      if (this.#settled[place] === 0) cost += ((ends[key] as number) - (key === 0 ? 0 : (ends[key - 1] as number)) - 1) / 2
    }
    return { ends, order, places, cost, rest }
  }

  #byFirstWords(members: readonly Member[]): Posted {
    const entries = this.#entries
    let count = 0
    const lastOf = ({ place, from, spare }: Member): number => Math.min(from + spare, (entries[place] as Entry).words.length)
    for (const member of members) count += Math.max(0, lastOf(member) - member.from + 1)
    const hashes = new Uint32Array(count)
    const owners = new Uint32Array(count)
    const ats = new Uint32Array(count)
    let posting = 0
    for (let owner = 0; owner < members.length; owner++) {
      const member = members[owner] as Member
      const { words } = entries[member.place] as Entry
      const last = lastOf(member)
      for (let at = member.from; at <= last; at++) {
        hashes[posting] = Math.imul(at < words.length ? (words[at] as number) + 1 : 0, 0x9e3779b1)
        ats[posting] = at
        owners[posting++] = owner
      }
    }
    const rest = (posting: number): Member => {
      const { place, from, spare } = members[owners[posting] as number] as Member
      const at = ats[posting] as number
      return { place, from: Math.min(at + 1, (entries[place] as Entry).words.length), spare: spare - (at - from) }
    }
    return { hashes, owners, rest }
  }

  #byParts(members: readonly Member[], differing: number, depth: number): Posted {
    const parts = differing + 1
    const hashes = new Uint32Array(members.length * parts)
    const owners = new Uint32Array(hashes.length)
    for (let owner = 0; owner < members.length; owner++) {
      const { place, from } = members[owner] as Member
      const { words } = this.#entries[place] as Entry
      const first = owner * parts
      for (let at = from; at < words.length; at++) {
        let hash = Math.imul((words[at] as number) + 1, 0x9e3779b1 + 2 * depth)
        hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b)
        hash ^= hash >>> 13
        hashes[first + (((hash >>> 16) * parts) >>> 16)]! += Math.imul(hash, 0xc2b2ae35)
      }
      for (let part = 0; part < parts; part++) {
        owners[first + part] = owner
        hashes[first + part] = Math.imul((hashes[first + part] as number) + part, 0x9e3779b1)
      }
    }
    return { hashes, owners, rest: (posting) => members[owners[posting] as number] as Member }
  }

  #compareAll(places: Uint32Array, from: number, to: number): void {
    for (let older = from + 1; older < to; older++) {
      for (let newer = older - 1; newer >= from && this.#settled[places[older] as number] === 0; newer--)
        this.#compare(places[older] as number, places[newer] as number)
    }
  }

  #compare(older: number, newer: number): void {
    if (older === newer || this.#settled[older] === 1) return
    const [one, other] = [(this.#entries[older] as Entry).words, (this.#entries[newer] as Entry).words]
    if (share(one, other, this.#shared[one.length + other.length] as number) && this.#meet(older, newer) === 'enough') this.#settled[older] = 1
  }
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
