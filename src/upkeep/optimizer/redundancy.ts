import { checkOption } from '../../domain/error.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { splitWords } from '../../text/words.ts'

/** Up to this many sets are compared pairwise: partitioning them would take longer. */
const maxPairwiseSets = 12
/** Comparisons per set below which grouping by first words is good enough: partitioning costs about as much. */
const cheapComparisons = 4
/** Cost of a text beside its characters, of a posting of a word, and of a comparison, in characters. */
const textWork = 20
const postingWork = 0.5
const comparisonWork = 2

/** Word sets of the distinct texts that have words, newest first. */
type WordSets = {
  /** Word ids of all sets, each sorted from the rarest to the most frequent word. */
  readonly words: Uint32Array
  /** Start of each set in `words`, and the end of the last one. */
  readonly starts: Uint32Array
  /** Indexes of all copies of each text, newest first. */
  readonly copies: readonly (readonly number[])[]
}

/** A range of summed sizes of two sets. Similar pairs in it differ in at most `maxDiffering` words. */
type SizeClass = { readonly from: number; to: number; readonly maxDiffering: number }

/** A set to compare. Its words before `from` are settled; a similar set lacks at most `maxMissing` of the others. */
type Member = { readonly set: number; readonly from: number; readonly maxMissing: number }

/** Members grouped under keys below `keyLimit`. Similar members share a key, and stay similar in their `rest`. */
type Grouping = {
  readonly keys: Uint32Array
  readonly keyLimit: number
  /** Index of the member of each posting. */
  readonly owners: Uint32Array
  readonly rest: (posting: number) => Member
}

type Search = WordSets & {
  /** Number of words that two similar sets must share, by the sum of their sizes. */
  readonly minShared: Uint32Array
  /** 1 for each set that is similar to a newer one. */
  readonly redundant: Uint8Array
}

/**
 * Marks with 1 each text that a newer text makes redundant. Two texts are similar if the number of words in both
 * divided by the number of words in either is at least the threshold. Texts without words are similar to none.
 *
 * Runs in nearly linear time on typical histories: similar sets are found by shared rare words or equal vocabulary
 * parts instead of by comparing all pairs.
 *
 * @example
 * markRedundant(['ok', 'Wait for it', 'ok', 'wait for IT!']) // [1, 1, 0, 0]
 */
export const markRedundant = (texts: readonly string[], threshold = 0.9): Uint8Array =>
  runSync(markRedundantInSteps(texts, threshold))

/** `markRedundant` as interruptible work. */
export function* markRedundantInSteps(texts: readonly string[], threshold: number): Work<Uint8Array> {
  const redundant = new Uint8Array(texts.length)
  const sets = yield* buildWordSets(texts)
  const isRedundantSet = yield* findRedundantSets(sets, threshold)
  for (const [set, copies] of sets.copies.entries())
    for (const [at, index] of copies.entries()) if (at > 0 || isRedundantSet[set] === 1) redundant[index] = 1
  return redundant
}

function* buildWordSets(texts: readonly string[]): Work<WordSets> {
  const copiesOf = new Map<string, number[]>()
  for (let index = texts.length - 1; index >= 0; index--) {
    const text = texts[index] as string
    if (copiesOf.get(text)?.push(index) === undefined) copiesOf.set(text, [index])
  }
  yield copiesOf.size * textWork
  const { words, starts } = yield* numberWords([...copiesOf.keys()])
  const copies: number[][] = []
  let [start, end] = [0, 0]
  for (const [text, indexes] of [...copiesOf.values()].entries()) {
    const own = words.subarray(start, starts[text + 1]).sort()
    start += own.length
    if (own.length > 0) starts[copies.push(indexes) - 1] = end
    for (let at = 0; at < own.length; at++) if (at === 0 || own[at] !== words[end - 1]) words[end++] = own[at] as number
    yield textWork + own.length
  }
  starts[copies.length] = end
  return { words, starts, copies }
}

/** Concatenates the words of all texts as ids from the rarest to the most frequent word. */
function* numberWords(texts: readonly string[]): Work<{ readonly words: Uint32Array; readonly starts: Uint32Array }> {
  const ids = new Map<string, number>()
  let words = new Uint32Array(16 * texts.length)
  const starts = new Uint32Array(texts.length + 1)
  let end = 0
  for (const [text, content] of texts.entries()) {
    const found = yield* splitWordsInSteps(content)
    if (end + found.length > words.length) {
      const larger = new Uint32Array(2 * (end + found.length))
      larger.set(words)
      words = larger
    }
    for (const word of found) {
      const id = ids.get(word) ?? ids.size
      if (id === ids.size) ids.set(word, id)
      words[end++] = id
      if (end % wordsPerStep === 0) yield wordsPerStep
    }
    starts[text + 1] = end
    yield textWork
  }
  const uses = countEach(words.subarray(0, end), ids.size)
  const { ranks } = countingSort(uses, uses.reduce((max, count) => Math.max(max, count), 0) + 1)
  for (let at = 0; at < end; at++) words[at] = ranks[words[at] as number] as number
  return { words, starts }
}

/** Characters split and words numbered in one step. */
const charactersPerStep = 8_192
const wordsPerStep = 2_048

/** Splits a long text at spaces into parts, and each of them into words. */
function* splitWordsInSteps(text: string): Work<readonly string[]> {
  const words: string[] = []
  for (let [start, end] = [0, 0]; start < text.length; start = end) {
    end = Math.min(start + charactersPerStep, text.length)
    const space = end < text.length ? text.lastIndexOf(' ', end) : -1
    if (space > start) end = space
    words.push(...splitWords(text.slice(start, end)))
    yield end - start
  }
  return words
}

/** Counts the occurrences of each number below a limit. */
function countEach(numbers: Uint32Array, limit: number): Uint32Array {
  const counts = new Uint32Array(limit)
  for (let at = 0; at < numbers.length; at++)
    counts[numbers[at] as number] = (counts[numbers[at] as number] as number) + 1
  return counts
}

/** Stable counting sort: the rank of each number, and the end position of each value below the limit. */
function countingSort(
  numbers: Uint32Array,
  limit: number,
): { readonly ranks: Uint32Array; readonly ends: Uint32Array } {
  const ends = countEach(numbers, limit)
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

const sizeOf = ({ starts }: WordSets, set: number): number => (starts[set + 1] as number) - (starts[set] as number)

function* findRedundantSets(sets: WordSets, threshold: number): Work<Uint8Array> {
  checkOption('threshold', threshold, threshold > 0 && threshold <= 1, 'a number above 0 and at most 1')
  const largest = sets.copies.reduce((max, _, set) => Math.max(max, sizeOf(sets, set)), 0)
  const minShared = Uint32Array.from({ length: 2 * largest + 1 }, (_, sum) => minSharedWords(sum, threshold))
  const search = { ...sets, minShared, redundant: new Uint8Array(sets.copies.length) }
  for (const sizeClass of sizeClasses(minShared)) {
    const members = membersOf(sizeClass, search, threshold)
    yield sets.copies.length * comparisonWork
    yield* compareMembers(search, members, sizeClass.maxDiffering)
  }
  return search.redundant
}

/** Groups the sums of two sizes for which similar sets may differ in about as many words. */
function sizeClasses(minShared: Uint32Array): SizeClass[] {
  const classes: SizeClass[] = [{ from: 0, to: 0, maxDiffering: 0 }]
  for (let sum = 1; sum < minShared.length; sum++) {
    const differing = sum - 2 * (minShared[sum] as number)
    const last = classes.at(-1) as SizeClass
    if (differing > last.maxDiffering) classes.push({ from: sum, to: sum, maxDiffering: differing + (differing >> 3) })
    else last.to = sum
  }
  return classes
}

/** Lists the sets that can be part of a similar pair of the class, judged by size. */
function membersOf({ from, to }: SizeClass, search: Search, threshold: number): Member[] {
  const minOtherSize = (size: number): number => {
    let other = Math.max(1, from - size, Math.floor(size * threshold) - 1)
    while (other / size < threshold) other++
    return other
  }
  const sets = [...search.copies.keys()].filter((set) => {
    const size = sizeOf(search, set)
    return size + minOtherSize(size) <= to && size / minOtherSize(size) >= threshold
  })
  const smallest = sets.reduce((min, set) => Math.min(min, sizeOf(search, set)), to)
  return sets.map((set) => {
    const size = sizeOf(search, set)
    return {
      set,
      from: search.starts[set] as number,
      maxMissing: size - (search.minShared[size + Math.max(minOtherSize(size), smallest)] as number),
    }
  })
}

/** Computes how many words two similar sets must share, given the sum of their sizes. */
function minSharedWords(sum: number, threshold: number): number {
  let shared = Math.max(0, Math.floor((sum * threshold) / (1 + threshold)) - 1)
  while (shared / (sum - shared) < threshold) shared++
  return shared
}

/**
 * Finds similar pairs among members, newest first: few are compared pairwise, many are grouped by the cheaper method.
 */
function* compareMembers(search: Search, members: readonly Member[], maxDiffering: number, depth = 0): Work<void> {
  const sets = Uint32Array.from(members, ({ set }) => set)
  let open = 0
  for (let at = 1; at < sets.length; at++) {
    // Repeated lines resemble their neighbour, so this check settles most of them.
    compareWithNewer(search, sets, at - 1, at)
    open += 1 - (search.redundant[sets[at] as number] as number)
  }
  yield sets.length * comparisonWork
  if (open === 0) return
  const byWords = groupByFirstWords(search, members)
  yield byWords.keys.length * postingWork
  let [best, cost] = [byWords, comparisonsIn(search, byWords, sets)]
  yield byWords.keys.length * postingWork
  if (cost > cheapComparisons * sets.length) {
    const byParts = groupByParts(search, members, maxDiffering + 1, depth)
    yield byParts.keys.length * postingWork
    const partsCost = comparisonsIn(search, byParts, sets)
    yield byParts.keys.length * postingWork
    if (partsCost < cost) [best, cost] = [byParts, partsCost]
  }
  // Grouping must save at least half of the comparisons; otherwise the recursion might not end.
  if (4 * cost > open * sets.length) yield* comparePairwise(search, sets, 0, sets.length)
  else yield* compareGroups(search, best, sets, (rest) => compareMembers(search, rest, maxDiffering, depth + 1))
}

/** Counts the comparisons between members with equal keys. */
function comparisonsIn({ redundant }: Search, { keys, keyLimit, owners }: Grouping, sets: Uint32Array): number {
  const counts = countEach(keys, keyLimit)
  let comparisons = 0
  for (let at = 0; at < keys.length; at++) {
    if (redundant[sets[owners[at] as number] as number] === 0) comparisons += (counts[keys[at] as number] as number) - 1
  }
  return comparisons / 2
}

function* compareGroups(
  search: Search,
  { keys, keyLimit, owners, rest }: Grouping,
  sets: Uint32Array,
  recurse: (members: Member[]) => Work<void>,
): Work<void> {
  const { ranks, ends } = countingSort(keys, keyLimit)
  const [postings, sorted] = [new Uint32Array(ranks.length), new Uint32Array(ranks.length)]
  for (let posting = 0; posting < ranks.length; posting++) {
    postings[ranks[posting] as number] = posting
    sorted[ranks[posting] as number] = sets[owners[posting] as number] as number
  }
  yield ranks.length * postingWork
  for (let key = 0, start = 0; key < keyLimit; key++) {
    const end = ends[key] as number
    if (end - start > maxPairwiseSets) yield* recurse(Array.from(postings.subarray(start, end), rest))
    else if (end - start > 1) yield* comparePairwise(search, sorted, start, end)
    start = end
  }
}

function* comparePairwise(search: Search, sets: Uint32Array, from: number, to: number): Work<void> {
  for (let at = from + 1; at < to; at++) yield compareWithNewer(search, sets, from, at) * comparisonWork
}

/** Compares a set with the newer ones from an index on, until one is similar. Returns the number of comparisons. */
function compareWithNewer(search: Search, sets: Uint32Array, from: number, at: number): number {
  const older = sets[at] as number
  let next = at - 1
  for (; next >= from && search.redundant[older] === 0; next--) {
    const newer = sets[next] as number
    if (older !== newer && isSimilar(search, older, newer)) search.redundant[older] = 1
  }
  return at - 1 - next
}

function isSimilar({ words, starts, minShared }: Search, one: number, another: number): boolean {
  let [at, other] = [starts[one] as number, starts[another] as number]
  const [end, otherEnd] = [starts[one + 1] as number, starts[another + 1] as number]
  const needed = minShared[end - at + otherEnd - other] as number
  // Number of words of each that may be missing in the other.
  let [missing, otherMissing] = [end - at - needed, otherEnd - other - needed]
  while (missing >= 0 && otherMissing >= 0 && at < end && other < otherEnd) {
    const difference = (words[at] as number) - (words[other] as number)
    if (difference <= 0) at++
    if (difference >= 0) other++
    if (difference < 0) missing--
    if (difference > 0) otherMissing--
  }
  // Words that remain when the other set ends are missing too.
  return missing >= end - at && otherMissing >= otherEnd - other
}

/**
 * Groups members by their first (rarest) words, one more than may be missing: the first word two similar sets share is
 * among them. If so many may be missing that nothing need be shared, the end of a set counts as a word of all sets.
 */
function groupByFirstWords({ words, starts }: WordSets, members: readonly Member[]): Grouping {
  const maxPostings = members.reduce((sum, { maxMissing }) => sum + maxMissing + 1, 0)
  const keys = new Uint32Array(maxPostings)
  const owners = new Uint32Array(maxPostings)
  const positions = new Uint32Array(maxPostings)
  const bits = bitsFor(maxPostings)
  let count = 0
  for (let owner = 0; owner < members.length; owner++) {
    const { set, from, maxMissing } = members[owner] as Member
    const end = starts[set + 1] as number
    for (let at = from; at <= end && at <= from + maxMissing; at++) {
      keys[count] = Math.imul(at < end ? (words[at] as number) + 1 : 0, 0x9e3779b1) >>> (32 - bits)
      positions[count] = at
      owners[count++] = owner
    }
  }
  const rest = (posting: number): Member => {
    const { set, from, maxMissing } = members[owners[posting] as number] as Member
    const at = positions[posting] as number
    return { set, from: Math.min(at + 1, starts[set + 1] as number), maxMissing: maxMissing - (at - from) }
  }
  return { keys: keys.subarray(0, count), keyLimit: 2 ** bits, owners, rest }
}

/**
 * Groups members by a hash of their words in each part of the vocabulary. With more parts than differing words, similar
 * sets are equal in at least one part. A key is the part number in the high bits and `bits` hash bits below.
 */
function groupByParts({ words, starts }: WordSets, members: readonly Member[], parts: number, depth: number): Grouping {
  const [count, bits] = [members.length, bitsFor(members.length)]
  const keys = new Uint32Array(count * parts)
  for (let owner = 0; owner < count; owner++) {
    const { set, from } = members[owner] as Member
    for (let at = from; at < (starts[set + 1] as number); at++) {
      // The hash depends on the depth: with the same parts, the groups would not get smaller.
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
  return { keys, keyLimit: parts * 2 ** bits, owners, rest: (posting) => members[posting % count] as Member }
}

/** Number of hash bits for which `count` keys rarely collide. */
const bitsFor = (count: number): number => Math.ceil(Math.log2(count + 1)) + 1
