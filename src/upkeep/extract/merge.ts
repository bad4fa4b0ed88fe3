import { type Fact, type Json, type Millis, parseMessageId, type Source } from '../../domain/entry.ts'
import { runSync, type Work } from '../../domain/work.ts'
import type { FactCandidate } from './fields.ts'

const maxSourcesPerFact = 8
const defaultMaxFacts = 400
/** Work of merging a fact, in characters, and the stored facts that it is compared with in the time of one. */
const mergeChars = 4
const factsPerChar = 8

/** `at` replaces missing times, `createId` names new facts, `maxFacts` limits their number. */
type MergeOptions = { readonly at: Millis; readonly createId: (index: number) => string; readonly maxFacts?: number }

/** Facts to write, and the ids of facts to delete. */
export type MergeResult = { readonly put: readonly Fact[]; readonly drop: readonly string[] }

/**
 * Merges extracted facts into stored ones. A different value of the same slot supersedes the previous one, which stays
 * in history with an end time; preferences, decisions and facts share their slots. Facts without a slot are lists,
 * which only grow, in the order of the mentions. A repeated mention adds at most a source, so merging the same facts
 * twice changes nothing as long as the limit is not exceeded.
 *
 * @example
 * mergeFacts([dark], [light], { at: now, createId: (index) => `f${index}` }) // put: dark with `until`, light that supersedes it
 */
export const mergeFacts = (
  existing: readonly Fact[],
  candidates: readonly FactCandidate[],
  options: MergeOptions,
): MergeResult => runSync(mergeFactsInSteps(existing, candidates, options))

/** `mergeFacts` as interruptible work. */
export function* mergeFactsInSteps(
  existing: readonly Fact[],
  candidates: readonly FactCandidate[],
  options: MergeOptions,
): Work<MergeResult> {
  const before = new Map(existing.map((fact) => [fact.id, fact]))
  const chains = chainsOf(existing)
  let created = 0
  for (const candidate of withTimes(candidates, options.at)) {
    const slot = resolveSlot(chains, candidate)
    const mergeInto = slot.key === '' && slot.chain === undefined ? mergeIntoList : mergeIntoSlot
    const chain = slot.chain ?? chainFor(chains, candidate.field, slot.key, candidate.value)
    if (mergeInto(chain, { ...candidate, key: slot.key }, () => options.createId(created))) created++
    yield mergeChars + (chain.length + (mayContinueSlot(candidate) ? chains.size : 0)) / factsPerChar
  }
  const after = prune([...chains.values()].flat(), options.maxFacts ?? defaultMaxFacts)
  const remaining = new Set(after.map(({ id }) => id))
  return {
    put: after.filter((fact) => !isSameFact(fact, before.get(fact.id))),
    drop: existing.map(({ id }) => id).filter((id) => !remaining.has(id)),
  }
}

/** Filters the facts that held at a time. */
export const factsAsOf = (facts: readonly Fact[], at: Millis): readonly Fact[] =>
  facts.filter((fact) => fact.at <= at && (fact.until === undefined || fact.until > at))

/** Facts of one slot or one list value, in the order of their mentions. */
type Chain = Fact[]

function chainsOf(facts: readonly Fact[]): Map<string, Chain> {
  const chains = new Map<string, Chain>()
  for (const fact of facts) chainFor(chains, fact.field, fact.key, fact.value).push(fact)
  for (const chain of chains.values()) chain.sort(byFirstMention)
  return chains
}

/** Fields with slots of their own: `sections` of a document and custom fields are no facts about the user. */
const separateFields: ReadonlySet<string> = new Set(['document_structure', 'custom_fields'])

/** Returns the chain of a slot, or of one value of a list. */
function chainFor(chains: Map<string, Chain>, field: string, key: string, value: Json): Chain {
  const name = chainName(field, key, value)
  const chain = chains.get(name) ?? []
  chains.set(name, chain)
  return chain
}

const chainName = (field: string, key: string, value: Json): string =>
  JSON.stringify(key === '' ? [field, key, normalizeValue(value)] : [separateFields.has(field) ? field : 'slot', key])

type ResolvedSlot = { readonly key: string; readonly chain?: Chain }

/**
 * Resolves the slot of a candidate. One that says it changes or replaces something continues the slot it refers to:
 * `the deadline moved to 21 March` means `deadline.report` if that is the only deadline.
 */
function resolveSlot(chains: Map<string, Chain>, candidate: FactCandidate): ResolvedSlot {
  const { field, key, value } = candidate
  if (!mayContinueSlot(candidate)) return { key }
  if (key !== '' && chains.has(chainName(field, key, value))) return { key }
  const isMerged = ({ value: known, sources }: Fact): boolean =>
    sources.some((source) => isSamePassage(source, candidate.source)) && normalizeValue(known) === normalizeValue(value)
  const slots = [...chains.values()].filter((chain) => chain[0] !== undefined && !separateFields.has(chain[0].field))
  const own = slots.find((chain) => chain.some(isMerged))
  if (own !== undefined) return { key: own[0]?.key ?? key, chain: own }
  const current = slots.filter((chain) => isOpenBefore(chain.at(-1), candidate))
  const base = baseOf(key)
  const [slot, another] = key === '' ? [] : current.filter((chain) => baseOf(chain[0]?.key ?? '') === base)
  const target = slot !== undefined && another === undefined ? slot : findReplaced(current, candidate)
  return target?.[0] === undefined ? { key } : { key: target[0].key, chain: target }
}

/** True for a candidate that says that it changes or replaces something. */
const mayContinueSlot = ({ field, revises, replaces }: FactCandidate): boolean =>
  (revises !== undefined || replaces !== undefined) && !separateFields.has(field)

/** True if a fact is current and was mentioned before a candidate. */
const isOpenBefore = (fact: Fact | undefined, candidate: FactCandidate): boolean =>
  fact !== undefined && fact.until === undefined && compareMentions(firstMention(fact), candidate) < 0

function baseOf(key: string): string {
  const end = key.indexOf('.')
  return end < 0 ? key : key.slice(0, end)
}

/** Finds the chain whose value a candidate replaces by name; a change of mind without one means the last decision. */
function findReplaced(current: readonly Chain[], { field, key, replaces }: FactCandidate): Chain | undefined {
  const term = replaces === undefined ? '' : normalizeValue(replaces)
  if (term === '' && (key !== '' || field !== 'key_decisions')) return undefined
  const isReplaced = (last: Fact): boolean =>
    term === ''
      ? last.field === field && last.key === ''
      : statementFields.has(last.field) && containsWord(normalizeValue(last.value), term)
  let latest: Chain | undefined
  for (const chain of current) {
    const last = chain.at(-1)
    if (last === undefined || !isReplaced(last)) continue
    if (latest === undefined || byFirstMention(last, latest.at(-1) as Fact) > 0) latest = chain
  }
  return latest
}

const statementFields: ReadonlySet<string> = new Set(['user_preferences', 'key_decisions', 'important_facts'])

function containsWord(text: string, word: string): boolean {
  const at = text.indexOf(word)
  return at >= 0 && !/[\p{L}\p{N}]/u.test(text.charAt(at - 1)) && !/[\p{L}\p{N}]/u.test(text.charAt(at + word.length))
}

/** True if a value repeats another one, or its beginning: `SQLite` repeats `SQLite 3.39`. */
const isRestatement = (value: Json, repeated: Json): boolean =>
  `${normalizeValue(value)} `.startsWith(`${normalizeValue(repeated)} `)

/** Normalises a value: ignores case, white space and trailing punctuation. */
function normalizeValue(value: Json): string {
  if (typeof value === 'string') return value.toLowerCase().replace(/\s+/g, ' ').replace(trailingPunctuation, '').trim()
  if (Array.isArray(value)) return JSON.stringify(value.map(normalizeValue))
  if (typeof value !== 'object' || value === null) return String(value)
  return JSON.stringify(
    Object.entries(value)
      .map(([name, inner]) => [name, normalizeValue(inner)])
      .sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  )
}

const trailingPunctuation = /[\s.,;:!?…。！？/]{1,20}$/

/** Time, source and value: enough to order two mentions. */
type Mention = { readonly at: Millis; readonly source: Source | undefined; readonly value: Json }

const firstMention = ({ at, sources: [source], value }: Fact): Mention => ({ at, source, value })

/** Orders by time, then message sequence, then position in the message. */
const compareMentions = (a: Mention, b: Mention): number =>
  a.at - b.at ||
  sequenceOfMention(a) - sequenceOfMention(b) ||
  spanStart(a) - spanStart(b) ||
  compare(JSON.stringify(a.value), JSON.stringify(b.value))
const sequenceOfMention = ({ source }: Mention): number =>
  source === undefined ? 0 : (parseMessageId(source.message) ?? 0)
const spanStart = ({ source }: Mention): number => source?.span?.[0] ?? 0
const compare = <T extends string | number>(a: T, b: T): number => (a === b ? 0 : a < b ? -1 : 1)

/** Orders facts by their first one. */
export const byFirstMention = (a: Fact, b: Fact): number => compareMentions(firstMention(a), firstMention(b))

const withTimes = (candidates: readonly FactCandidate[], at: Millis): readonly FactCandidate[] =>
  candidates
    .map((candidate) => (Number.isFinite(candidate.at) ? candidate : { ...candidate, at }))
    .sort(compareMentions)

/** Adds a list value once, dated by its first one. Returns true if a fact was created. */
function mergeIntoList(chain: Chain, candidate: FactCandidate, id: () => string): boolean {
  // A value that was replaced is current again when it is repeated later.
  if (chain.some(({ until }) => until !== undefined)) return mergeIntoSlot(chain, candidate, id)
  const known = chain[0]
  if (known === undefined) chain.push(createFact(candidate, id()))
  else chain[0] = candidate.at < known.at ? addEarlierSource(known, candidate) : addSource(known, candidate)
  return known === undefined
}

/** Inserts a value of a slot; it holds from its mention until the next value. Returns true if a fact was created. */
function mergeIntoSlot(chain: Chain, candidate: FactCandidate, id: () => string): boolean {
  const same = normalizeValue(candidate.value)
  if (
    chain.some(
      (fact) =>
        fact.sources.some((source) => isSamePassage(source, candidate.source)) && normalizeValue(fact.value) === same,
    )
  )
    return false
  // Most candidates are the latest of their slot.
  const index = chain.findLastIndex((fact) => compareMentions(candidate, firstMention(fact)) >= 0) + 1
  const [current, later] = [chain[index - 1], chain[index]]
  // The fact that the oldest one superseded was pruned: older mentions are not added again.
  if (current === undefined && later?.supersedes !== undefined) return false
  const until = current === undefined ? undefined : Math.min(current.until ?? candidate.at, candidate.at)
  if (
    current !== undefined &&
    isRestatement(current.value, candidate.value) &&
    (later !== undefined || current.until === undefined)
  ) {
    chain[index - 1] = addSource(current, candidate)
    return false
  }
  if (current !== undefined && until !== undefined) chain[index - 1] = { ...current, until }
  if (later !== undefined && normalizeValue(later.value) === same) {
    chain[index] = addEarlierSource(later, candidate)
    return false
  }
  const fact = {
    ...createFact(candidate, id()),
    ...(current === undefined ? {} : { supersedes: current.id }),
    ...(later === undefined ? {} : { until: later.at }),
  }
  if (later !== undefined) chain[index] = { ...later, supersedes: fact.id }
  chain.splice(index, 0, fact)
  return true
}

function createFact({ field, key, value, importance, at, source }: FactCandidate, id: string): Fact {
  return { kind: 'fact', id, at, field, key, value, importance, sources: [source] }
}

function addSource(fact: Fact, candidate: FactCandidate): Fact {
  const isCited =
    fact.sources.length >= maxSourcesPerFact || fact.sources.some(({ message }) => message === candidate.source.message)
  return {
    ...fact,
    importance: Math.max(fact.importance, candidate.importance),
    sources: isCited ? fact.sources : [...fact.sources, candidate.source],
  }
}

function addEarlierSource(fact: Fact, candidate: FactCandidate): Fact {
  const others = fact.sources.filter(({ message }) => message !== candidate.source.message)
  return {
    ...addSource(fact, candidate),
    at: candidate.at,
    sources: [candidate.source, ...others].slice(0, maxSourcesPerFact),
  }
}

/** True if two sources cite overlapping passages of the same message. */
function isSamePassage(one: Source, other: Source): boolean {
  if (one.message !== other.message || one.session !== other.session) return false
  if (one.span === undefined || other.span === undefined) return true
  return one.span[0] < other.span[1] && other.span[0] < one.span[1]
}

/** Limits the number of facts: drops those superseded longest ago first, then the least important and oldest. */
function prune(facts: readonly Fact[], maxFacts: number): readonly Fact[] {
  const pruned = new Set([...facts].sort(byPruneOrder).slice(0, Math.max(0, facts.length - maxFacts)))
  return facts.filter((fact) => !pruned.has(fact))
}

/** Breaks ties by content, so that the result is deterministic. */
const byPruneOrder = (a: Fact, b: Fact): number =>
  compare(endTime(a), endTime(b)) ||
  (a.until === undefined ? a.importance - b.importance : 0) ||
  byFirstMention(a, b) ||
  compare(contentOf(a), contentOf(b))
const endTime = ({ until = Number.POSITIVE_INFINITY }: Fact): number => until
const contentOf = ({ field, key, value }: Fact): string => JSON.stringify([field, key, value])

/** True if two facts are equal in all their properties. */
export const isSameFact = (one: Fact, other: Fact | undefined): boolean =>
  other !== undefined && (one === other || canonicalJson(one) === canonicalJson(other))

/** Serialises a fact independently of the order of its properties. */
const canonicalJson = (fact: Fact): string => JSON.stringify(Object.entries(fact).sort(([a], [b]) => (a < b ? -1 : 1)))
