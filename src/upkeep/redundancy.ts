import { check } from '../domain/error.ts'
import { wordsOf } from '../text/words.ts'

/** So many sets are compared each with each: to divide them would take longer. */
const few = 12
/** First words will do if they leave so many comparisons for each set: to divide it into parts takes about as long. */
const cheap = 4

/** The different texts that have words, the newest first: their words as numbers, the rarest first, where those of each start, and where all its copies stand. */
type Sets = {
  readonly words: Uint32Array
  readonly starts: Uint32Array
  readonly places: readonly (readonly number[])[]
}
/** Pairs of sets by the number of words they have together, from one to another: similar ones differ in at most so many. */
type Class = { readonly from: number; to: number; readonly differing: number }
/** A set to compare: its words before `from` are dealt with, and of the others a similar set lacks at most `spare`. */
type Member = { readonly set: number; readonly from: number; readonly spare: number }
/** Members under keys below a limit: two that are similar have a key in common, and are similar in what is left of them, too. */
type Posted = {
  readonly keys: Uint32Array
  readonly limit: number
  readonly owners: Uint32Array
  readonly left: (posting: number) => Member
}
type Meet = (older: number, newer: number) => 'go on' | 'enough'
/** How many words sets must share that have so many together, whom to tell of similar sets, and the sets for which it is enough. */
type Search = Sets & { readonly shared: Uint32Array; readonly meet: Meet; readonly settled: Uint8Array }

/**
 * All pairs of texts, the older one first, that are similar: the number of words both hold, divided by the number of words
 * either holds, is at least the threshold. A text without words is similar to none. There may be very many pairs; to know
 * what is redundant, take `redundantOlder`.
 *
 * @example
 * redundantPairs(['Wait for it', 'go', 'wait for IT!']) // [[0, 2]]
 */
export function redundantPairs(
  texts: readonly string[],
  threshold = 0.9,
): readonly (readonly [older: number, newer: number])[] {
  const pairs: [number, number][] = []
  const met = new Set<number>()
  const sets = setsOf(texts)
  const join: Meet = (older, newer) => {
    const both = older * texts.length + newer
    if (met.has(both)) return 'go on'
    met.add(both)
    for (const one of sets.places[older] ?? [])
      for (const other of sets.places[newer] ?? [])
        if (one < other || older !== newer) pairs.push(one < other ? [one, other] : [other, one])
    return 'go on'
  }
  for (const set of sets.places.keys()) join(set, set)
  findSimilar(sets, threshold, join)
  return pairs.sort((left, right) => left[0] - right[0] || left[1] - right[1])
}

/**
 * Marks with 1 each text that a newer one makes redundant: the older ones of `redundantPairs`, without making the pairs.
 *
 * @example
 * redundantOlder(['ok', 'Wait for it', 'ok', 'wait for IT!']) // [1, 1, 0, 0]
 */
export function redundantOlder(texts: readonly string[], threshold = 0.9): Uint8Array {
  const redundant = new Uint8Array(texts.length)
  const sets = setsOf(texts)
  for (const places of sets.places) for (let at = 1; at < places.length; at++) redundant[places[at] as number] = 1
  findSimilar(sets, threshold, (older) => {
    redundant[sets.places[older]?.[0] as number] = 1
    return 'enough'
  })
  return redundant
}

function setsOf(texts: readonly string[]): Sets {
  const placesOf = new Map<string, number[]>()
  for (let place = texts.length - 1; place >= 0; place--)
    if (placesOf.get(texts[place] as string)?.push(place) === undefined) placesOf.set(texts[place] as string, [place])
  const { words, starts } = numbered([...placesOf.keys()])
  const kept: number[][] = []
  let [start, end] = [0, 0]
  for (const [text, places] of [...placesOf.values()].entries()) {
    const own = words.subarray(start, starts[text + 1]).sort()
    start += own.length
    if (own.length > 0) starts[kept.push(places) - 1] = end
    for (let at = 0; at < own.length; at++) if (at === 0 || own[at] !== words[end - 1]) words[end++] = own[at] as number
  }
  starts[kept.length] = end
  return { words, starts, places: kept }
}

/** The words of all texts, one after the other, numbered from the rarest to the commonest. */
function numbered(texts: readonly string[]): { readonly words: Uint32Array; readonly starts: Uint32Array } {
  const names = new Map<string, number>()
  let words = new Uint32Array(16 * texts.length)
  const starts = new Uint32Array(texts.length + 1)
  let end = 0
  for (const [text, content] of texts.entries()) {
    const found = wordsOf(content)
    if (end + found.length > words.length) {
      const larger = new Uint32Array(2 * (end + found.length))
      larger.set(words)
      words = larger
    }
    for (const word of found) {
      const name = names.get(word) ?? names.size
      if (name === names.size) names.set(word, name)
      words[end++] = name
    }
    starts[text + 1] = end
  }
  const uses = counts(words.subarray(0, end), names.size)
  const { ranks } = inOrder(uses, uses.reduce((most, count) => Math.max(most, count), 0) + 1)
  for (let at = 0; at < end; at++) words[at] = ranks[words[at] as number] as number
  return { words, starts }
}

/** How often each number below a limit is there. */
function counts(numbers: Uint32Array, limit: number): Uint32Array {
  const found = new Uint32Array(limit)
  for (let at = 0; at < numbers.length; at++)
    found[numbers[at] as number] = (found[numbers[at] as number] as number) + 1
  return found
}

/** The place each number has when they are sorted, equal ones as they are, and where each number below the limit ends then. */
function inOrder(numbers: Uint32Array, limit: number): { readonly ranks: Uint32Array; readonly ends: Uint32Array } {
  const ends = counts(numbers, limit)
  for (let number = 0, end = 0; number < limit; number++) {
    const count = ends[number] as number
    ends[number] = end
    end += count
  }
  const ranks = new Uint32Array(numbers.length)
  for (let at = 0; at < numbers.length; at++) {
    ranks[at] = ends[numbers[at] as number] as number
    ends[numbers[at] as number] = (ranks[at] as number) + 1
  }
  return { ranks, ends }
}

const sizeOf = ({ starts }: Sets, set: number): number => (starts[set + 1] as number) - (starts[set] as number)

/** Meets similar sets, the older one first, until for that one it is `enough`; the same two may be met again. */
function findSimilar(sets: Sets, threshold: number, meet: Meet): void {
  check('threshold', threshold, threshold > 0 && threshold <= 1, 'a number above 0 and at most 1')
  const largest = sets.places.reduce((most, _, set) => Math.max(most, sizeOf(sets, set)), 0)
  const shared = Uint32Array.from({ length: 2 * largest + 1 }, (_, sum) => leastShared(sum, threshold))
  const search = { ...sets, shared, meet, settled: new Uint8Array(sets.places.length) }
  for (const one of classesOf(shared)) compareAmong(search, membersOf(one, search, threshold), one.differing)
}

/** All sums of two sizes, those together for which similar sets may differ in about as many words. */
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

/** The sets of which the class has pairs, as far as their sizes tell. */
function membersOf({ from, to }: Class, search: Search, threshold: number): Member[] {
  const leastOther = (size: number): number => {
    let other = Math.max(1, from - size, Math.floor(size * threshold) - 1)
    while (other / size < threshold) other++
    return other
  }
  const found = [...search.places.keys()].filter((set) => {
    const size = sizeOf(search, set)
    return size + leastOther(size) <= to && size / leastOther(size) >= threshold
  })
  const smallest = found.reduce((least, set) => Math.min(least, sizeOf(search, set)), to)
  return found.map((set) => {
    const size = sizeOf(search, set)
    return {
      set,
      from: search.starts[set] as number,
      spare: size - (search.shared[size + Math.max(leastOther(size), smallest)] as number),
    }
  })
}

/** How many words two sets must share that have so many together. */
function leastShared(sum: number, threshold: number): number {
  let least = Math.max(0, Math.floor((sum * threshold) / (1 + threshold)) - 1)
  while (least / (sum - least) < threshold) least++
  return least
}

/** Meets similar ones among members, the newest first: compares few each with each, and divides many in whichever way leaves fewer to compare. */
function compareAmong(search: Search, members: readonly Member[], differing: number, depth = 0): void {
  const sets = Uint32Array.from(members, ({ set }) => set)
  let open = 0
  for (let at = 1; at < sets.length; at++) {
    // A line that is written again and again is like the next one: most often nothing else has to be compared.
    compareAll(search, sets, at - 1, at + 1)
    open += 1 - (search.settled[sets[at] as number] as number)
  }
  if (open === 0) return
  const words = byFirstWords(search, members)
  let [best, cost] = [words, costOf(search, words, sets)]
  if (cost > cheap * sets.length) {
    const parts = byParts(search, members, differing + 1, depth)
    const other = costOf(search, parts, sets)
    if (other < cost) [best, cost] = [parts, other]
  }
  // Half of the comparisons must be saved, or dividing might never end.
  if (4 * cost > open * sets.length) compareAll(search, sets, 0, sets.length)
  else divide(search, best, sets, (rest) => compareAmong(search, rest, differing, depth + 1))
}

/** How many comparisons there are of members under the same keys. */
function costOf({ settled }: Search, { keys, limit, owners }: Posted, sets: Uint32Array): number {
  const found = counts(keys, limit)
  let cost = 0
  for (let at = 0; at < keys.length; at++) {
    if (settled[sets[owners[at] as number] as number] === 0) cost += (found[keys[at] as number] as number) - 1
  }
  return cost / 2
}

function divide(
  search: Search,
  { keys, limit, owners, left }: Posted,
  sets: Uint32Array,
  goOn: (members: Member[]) => void,
): void {
  const { ranks, ends } = inOrder(keys, limit)
  const [postings, sorted] = [new Uint32Array(ranks.length), new Uint32Array(ranks.length)]
  for (let posting = 0; posting < ranks.length; posting++) {
    postings[ranks[posting] as number] = posting
    sorted[ranks[posting] as number] = sets[owners[posting] as number] as number
  }
  for (let key = 0, start = 0; key < limit; key++) {
    const end = ends[key] as number
    if (end - start > few) goOn(Array.from(postings.subarray(start, end), left))
    else compareAll(search, sorted, start, end)
    start = end
  }
}

function compareAll(search: Search, sets: Uint32Array, from: number, to: number): void {
  for (let at = from + 1; at < to; at++) {
    const older = sets[at] as number
    for (let next = at - 1; next >= from && search.settled[older] === 0; next--) {
      const newer = sets[next] as number
      if (older !== newer && isSimilar(search, older, newer) && search.meet(older, newer) === 'enough')
        search.settled[older] = 1
    }
  }
}

function isSimilar({ words, starts, shared }: Search, one: number, another: number): boolean {
  let [at, other] = [starts[one] as number, starts[another] as number]
  const [end, otherEnd] = [starts[one + 1] as number, starts[another + 1] as number]
  const needed = shared[end - at + otherEnd - other] as number
  // how many words of each may be missing in the other
  let [spare, otherSpare] = [end - at - needed, otherEnd - other - needed]
  while (spare >= 0 && otherSpare >= 0 && at < end && other < otherEnd) {
    const difference = (words[at] as number) - (words[other] as number)
    if (difference <= 0) at++
    if (difference >= 0) other++
    if (difference < 0) spare--
    if (difference > 0) otherSpare--
  }
  // Words of one that remain when the other ends are missing too.
  return spare >= end - at && otherSpare >= otherEnd - other
}

/**
 * Members by their first words, one more than may be lacking: the first word two similar ones share is among them, and the
 * words before it are lacking. Where so many may be lacking that nothing need be shared, the end counts as a word of all.
 */
function byFirstWords({ words, starts }: Sets, members: readonly Member[]): Posted {
  const most = members.reduce((sum, { spare }) => sum + spare + 1, 0)
  const [keys, owners, ats] = [new Uint32Array(most), new Uint32Array(most), new Uint32Array(most)]
  const bits = bitsFor(most)
  let count = 0
  for (let owner = 0; owner < members.length; owner++) {
    const { set, from, spare } = members[owner] as Member
    const end = starts[set + 1] as number
    for (let at = from; at <= end && at <= from + spare; at++) {
      keys[count] = Math.imul(at < end ? (words[at] as number) + 1 : 0, 0x9e3779b1) >>> (32 - bits)
      ats[count] = at
      owners[count++] = owner
    }
  }
  const left = (posting: number): Member => {
    const { set, from, spare } = members[owners[posting] as number] as Member
    const at = ats[posting] as number
    return { set, from: Math.min(at + 1, starts[set + 1] as number), spare: spare - (at - from) }
  }
  return { keys: keys.subarray(0, count), limit: 2 ** bits, owners, left }
}

/** Members by all their words in each of some parts of the vocabulary: with more parts than differing words, one part is the same. */
function byParts({ words, starts }: Sets, members: readonly Member[], parts: number, depth: number): Posted {
  const [count, bits] = [members.length, bitsFor(members.length)]
  const keys = new Uint32Array(count * parts)
  for (let owner = 0; owner < count; owner++) {
    const { set, from } = members[owner] as Member
    for (let at = from; at < (starts[set + 1] as number); at++) {
      // Each depth has parts of its own, or what was together would stay so.
      const mixed = Math.imul((words[at] as number) + 1, 0x9e3779b1 + 2 * depth)
      const hash = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b)
      const key = count * (((hash >>> 16) * parts) >>> 16) + owner
      keys[key] = (keys[key] as number) + Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
    }
  }
  const owners = new Uint32Array(keys.length)
  for (let at = 0; at < keys.length; at++) {
    keys[at] = Math.floor(at / count) * 2 ** bits + (Math.imul(keys[at] as number, 0x9e3779b1) >>> (32 - bits))
    owners[at] = at % count
  }
  return { keys, limit: parts * 2 ** bits, owners, left: (posting) => members[posting % count] as Member }
}

/** How many bits a key needs for so many of them to be different, most of them. */
const bitsFor = (count: number): number => Math.ceil(Math.log2(count + 1)) + 1
