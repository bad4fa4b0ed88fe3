import { type Fact, type Json, type Millis, parseMessageId, type Source } from '../../domain/entry.ts'
import { getOrCompute } from '../../domain/keyed.ts'
import { runSync, type Work } from '../../domain/work.ts'
import type { FactCandidate } from './fields.ts'

const maxSourcesPerFact = 8
const defaultMaxFacts = 400
/** Work of merging a fact, in characters, and the chains that it is compared with in the time of one. */
const mergeChars = 4
const chainsPerChar = 8
/** Of more chains that share a word, those that changed last are compared. */
const maxChainsPerWord = 1_000

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
  const chains = new FactChains(existing)
  let created = 0
  for (const candidate of withTimes(candidates, options.at)) {
    const { key, chain: continued } = yield* chains.resolveSlot(candidate)
    const chain = continued ?? chains.get(candidate.field, key, candidate.value)
    const createId = (): string => options.createId(created)
    const { facts } = chain
    // A list value that was replaced is current again when it is repeated later.
    const isSlot = key !== '' || continued !== undefined || facts.some(({ until }) => until !== undefined)
    if (isSlot && chains.isMerged(chain, candidate)) {
      yield mergeChars
      continue
    }
    const merged = (isSlot ? mergeIntoSlot : mergeIntoList)(facts, { ...candidate, key }, createId)
    if (merged?.isNew === true) created++
    if (merged !== undefined) chains.index(chain, merged.fact, candidate.source)
    yield mergeChars
  }
  const after = prune(chains.listFacts(), options.maxFacts ?? defaultMaxFacts)
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
type Chain = {
  readonly facts: Fact[]
  /** Number of chains that were created before. */
  readonly order: number
  /** Normalised value of the last fact, if that is a statement. */
  text: string
}

/** Fields with slots of their own: `sections` of a document and custom fields are no facts about the user. */
const separateFields: ReadonlySet<string> = new Set(['document_structure', 'custom_fields'])

const chainName = (field: string, key: string, value: Json): string =>
  JSON.stringify(key === '' ? [field, key, normalizeValue(value)] : [separateFields.has(field) ? field : 'slot', key])

const passageName = ({ message, session }: Source, text: string): string => JSON.stringify([message, session, text])

type ResolvedSlot = { readonly key: string; readonly chain?: Chain }

/** The chains of a session, and indexes that find the few of them that a candidate may continue. */
class FactChains {
  private readonly byName = new Map<string, Chain>()
  /** Chains of facts about the user by the base of their key, and by a word of the last value. */
  private readonly byBase = new Map<string, Chain[]>()
  private readonly byWord = new Map<string, Set<Chain>>()
  /** Chains by the ids of their facts, by message and value: a chain may have thousands of facts. */
  private readonly byPassage = new Map<string, Map<string, Chain>>()
  /** Facts with their current sources. */
  private readonly byId = new Map<string, Fact>()

  constructor(facts: readonly Fact[]) {
    for (const fact of facts) this.get(fact.field, fact.key, fact.value).facts.push(fact)
    for (const chain of this.byName.values()) {
      chain.facts.sort(byFirstMention)
      for (const fact of chain.facts) for (const source of fact.sources) this.indexPassage(chain, fact, source)
      this.indexLast(chain)
    }
  }

  /** Returns the chain of a slot, or of one value of a list. */
  get(field: string, key: string, value: Json): Chain {
    const name = chainName(field, key, value)
    const known = this.byName.get(name)
    if (known !== undefined) return known
    const chain: Chain = { facts: [], order: this.byName.size, text: '' }
    this.byName.set(name, chain)
    if (!separateFields.has(field)) getOrCompute(this.byBase, baseOf(key), () => []).push(chain)
    return chain
  }

  listFacts(): readonly Fact[] {
    return [...this.byName.values()].flatMap(({ facts }) => facts)
  }

  /** Updates the indexes after a source was added to a fact of a chain. */
  index(chain: Chain, fact: Fact, source: Source): void {
    this.indexPassage(chain, fact, source)
    if (chain.facts.at(-1) === fact) this.indexLast(chain)
  }

  private indexPassage(chain: Chain, fact: Fact, source: Source): void {
    const name = passageName(source, normalizeValue(fact.value))
    getOrCompute(this.byPassage, name, () => new Map()).set(fact.id, chain)
    this.byId.set(fact.id, fact)
  }

  private indexLast(chain: Chain): void {
    const last = chain.facts.at(-1)
    chain.text = last !== undefined && statementFields.has(last.field) ? normalizeValue(last.value) : ''
    if (last === undefined || chain.text === '') return
    const decision = last.field === 'key_decisions' && last.key === '' ? [anyDecision] : []
    for (const word of [...decision, ...wordsOf(chain.text)]) {
      const chains = getOrCompute(this.byWord, word, () => new Set())
      chains.delete(chain)
      chains.add(chain)
      const [oldest] = chains
      if (chains.size > maxChainsPerWord && oldest !== undefined) chains.delete(oldest)
    }
  }

  /** True if a chain has the value of a candidate from the same passage. */
  isMerged(chain: Chain, candidate: FactCandidate): boolean {
    return this.chainsFrom(candidate).includes(chain)
  }

  /** Lists the chains that have the value of a candidate from the same passage. */
  private chainsFrom({ source, value }: FactCandidate): readonly Chain[] {
    const chains: Chain[] = []
    for (const [id, chain] of this.byPassage.get(passageName(source, normalizeValue(value))) ?? [])
      if (this.byId.get(id)?.sources.some((other) => isSamePassage(other, source)) === true) chains.push(chain)
    return chains
  }

  /**
   * Resolves the slot of a candidate. One that says it changes or replaces something continues the slot it refers to:
   * `the deadline moved to 21 March` means `deadline.report` if that is the only deadline.
   */
  *resolveSlot(candidate: FactCandidate): Work<ResolvedSlot> {
    const { field, key, value } = candidate
    if (!mayContinueSlot(candidate)) return { key }
    if (key !== '' && this.byName.has(chainName(field, key, value))) return { key }
    const samePassage = this.chainsFrom(candidate)
    const [own] = samePassage.filter(isAboutUser).sort((a, b) => a.order - b.order)
    yield samePassage.length / chainsPerChar
    if (own !== undefined) return { key: own.facts[0]?.key ?? key, chain: own }
    const target = (yield* this.findOnlyCurrent(candidate)) ?? (yield* this.findReplaced(candidate))
    return target?.facts[0] === undefined ? { key } : { key: target.facts[0].key, chain: target }
  }

  /** Finds the current chain with the same base of the key, if there is only one. */
  private *findOnlyCurrent(candidate: FactCandidate): Work<Chain | undefined> {
    if (candidate.key === '') return undefined
    let only: Chain | undefined
    for (const chain of this.byBase.get(baseOf(candidate.key)) ?? []) {
      yield 1 / chainsPerChar
      if (!isOpenBefore(chain.facts.at(-1), candidate)) continue
      if (only !== undefined) return undefined
      only = chain
    }
    return only
  }

  /** Finds the chain whose value a candidate replaces by name; a change of mind without one means the last decision. */
  private *findReplaced(candidate: FactCandidate): Work<Chain | undefined> {
    const { field, key, replaces } = candidate
    const term = replaces === undefined ? '' : normalizeValue(replaces)
    if (term === '' && (key !== '' || field !== 'key_decisions')) return undefined
    const chains = this.chainsOfRarest(term === '' ? [anyDecision] : wordsOf(term))
    const isReplaced = ({ text }: Chain, last: Fact): boolean =>
      term === '' ? last.field === field && last.key === '' : containsWord(text, term)
    let latest: Chain | undefined
    for (const chain of chains) {
      const last = chain.facts.at(-1)
      if (last === undefined || !isOpenBefore(last, candidate) || !isReplaced(chain, last)) continue
      const order = latest === undefined ? 1 : byFirstMention(last, latest.facts.at(-1) as Fact)
      if (latest === undefined || order > 0 || (order === 0 && chain.order < latest.order)) latest = chain
    }
    yield chains.size / chainsPerChar
    return latest
  }

  /** Returns the chains of the rarest of some words. */
  private chainsOfRarest(words: readonly string[]): ReadonlySet<Chain> {
    const found = words.map((word) => this.byWord.get(word) ?? new Set<Chain>())
    return found.reduce((rarest, chains) => (chains.size < rarest.size ? chains : rarest), found[0] ?? new Set())
  }
}

/** Word under which the decisions without a slot are indexed. */
const anyDecision = ''

const isAboutUser = ({ facts: [first] }: Chain): boolean => first !== undefined && !separateFields.has(first.field)

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

const statementFields: ReadonlySet<string> = new Set(['user_preferences', 'key_decisions', 'important_facts'])

/** Different words of a text, as `containsWord` delimits them: it takes a letter of two code units for a delimiter. */
const wordsOf = (text: string): readonly string[] => [
  ...new Set(text.match(/(?:(?![\u{10000}-\u{10ffff}])[\p{L}\p{N}])+/gu)),
]

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

/** Fact that a candidate was merged into, and whether it was created. */
type MergedFact = { readonly fact: Fact; readonly isNew: boolean }

/** Adds a list value once, dated by its first one. */
function mergeIntoList(facts: Fact[], candidate: FactCandidate, createId: () => string): MergedFact {
  const [known] = facts
  const fact =
    known === undefined
      ? createFact(candidate, createId())
      : candidate.at < known.at
        ? addEarlierSource(known, candidate)
        : addSource(known, candidate)
  facts[0] = fact
  return { fact, isNew: known === undefined }
}

/** Inserts a value of a slot; it holds from its mention until the next value. Returns undefined if it was pruned. */
function mergeIntoSlot(facts: Fact[], candidate: FactCandidate, createId: () => string): MergedFact | undefined {
  // Most candidates are the latest of their slot.
  const index = facts.findLastIndex((fact) => compareMentions(candidate, firstMention(fact)) >= 0) + 1
  const [current, later] = [facts[index - 1], facts[index]]
  // The fact that the oldest one superseded was pruned: older mentions are not added again.
  if (current === undefined && later?.supersedes !== undefined) return undefined
  const until = current === undefined ? undefined : Math.min(current.until ?? candidate.at, candidate.at)
  if (
    current !== undefined &&
    isRestatement(current.value, candidate.value) &&
    (later !== undefined || current.until === undefined)
  ) {
    const fact = addSource(current, candidate)
    facts[index - 1] = fact
    return { fact, isNew: false }
  }
  if (current !== undefined && until !== undefined) facts[index - 1] = { ...current, until }
  if (later !== undefined && normalizeValue(later.value) === normalizeValue(candidate.value)) {
    const fact = addEarlierSource(later, candidate)
    facts[index] = fact
    return { fact, isNew: false }
  }
  const fact = {
    ...createFact(candidate, createId()),
    ...(current === undefined ? {} : { supersedes: current.id }),
    ...(later === undefined ? {} : { until: later.at }),
  }
  if (later !== undefined) facts[index] = { ...later, supersedes: fact.id }
  facts.splice(index, 0, fact)
  return { fact, isNew: true }
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
