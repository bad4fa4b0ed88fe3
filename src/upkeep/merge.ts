import { type Fact, type Json, type Millis, type Source, sequenceOf } from '../domain/entry.ts'
import { type Found, isKeyed } from './extract/found.ts'

/** More messages than these are not cited for one fact: they say nothing new. */
const mostSources = 8
const mostFacts = 400

/** `at` stands in for a message without a time; `id` names the new facts; `most` is how many facts there may be. */
type Given = { readonly at: Millis; readonly id: (place: number) => string; readonly most?: number }

/** The facts to write again or anew, and the ids of those that go. */
export type Merged = { readonly put: readonly Fact[]; readonly drop: readonly string[] }

/**
 * Brings what was found into what is known. Of objects, another value for the same key supersedes the one before it, which
 * stays in history until the time the new one was said; lists only grow, in the order in which things were said. What is
 * said again adds a source at most, so that to merge the same twice changes nothing as long as there is room for all of it.
 *
 * @example
 * mergeFacts([dark], [light], { at: now, id: (place) => `f${place}` }) // put: dark with `until`, light that supersedes it
 */
export function mergeFacts(existing: readonly Fact[], found: readonly Found[], given: Given): Merged {
  const before = new Map(existing.map((fact) => [fact.id, fact]))
  const chains = chainsOf(existing)
  let made = 0
  for (const one of timed(found, given.at)) {
    const chain = chainFor(chains, one.field, one.key, one.value)
    const isNew = isKeyed(one.field) ? tell(chain, one, () => given.id(made)) : list(chain, one, () => given.id(made))
    if (isNew) made++
  }
  const after = pruned([...chains.values()].flat(), given.most ?? mostFacts)
  const kept = new Set(after.map(({ id }) => id))
  return {
    put: after.filter((fact) => !isSame(fact, before.get(fact.id))),
    drop: existing.map(({ id }) => id).filter((id) => !kept.has(id)),
  }
}

/** What held at a time: said by then, and not superseded by then. */
export const factsAsOf = (facts: readonly Fact[], at: Millis): readonly Fact[] =>
  facts.filter((fact) => fact.at <= at && (fact.until === undefined || fact.until > at))

/** What was said about one matter, in the order in which it was said. */
type Chain = Fact[]

function chainsOf(facts: readonly Fact[]): Map<string, Chain> {
  const chains = new Map<string, Chain>()
  for (const fact of facts) chainFor(chains, fact.field, fact.key, fact.value).push(fact)
  for (const chain of chains.values()) chain.sort(bySaid)
  return chains
}

/** The chain of a key of an object, or of one value of a list. */
function chainFor(chains: Map<string, Chain>, field: string, key: string, value: Json): Chain {
  const name = JSON.stringify(isKeyed(field) ? [field, key] : [field, key, likeness(value)])
  const chain = chains.get(name) ?? []
  chains.set(name, chain)
  return chain
}

/** What two values have in common that differ only in case, in white space or in how they trail off. */
function likeness(value: Json): string {
  if (typeof value === 'string') return value.toLowerCase().replace(/\s+/g, ' ').replace(trailing, '').trim()
  if (Array.isArray(value)) return JSON.stringify(value.map(likeness))
  if (typeof value !== 'object' || value === null) return String(value)
  return JSON.stringify(
    Object.entries(value)
      .map(([name, inner]) => [name, likeness(inner)])
      .sort(([a = ''], [b = '']) => (a < b ? -1 : 1)),
  )
}

const trailing = /[\s.,;:!?…。！？/]{1,20}$/

/** When, where and what: enough to say which of two was said first. */
type Said = { readonly at: Millis; readonly source: Source | undefined; readonly value: Json }

const saidIn = ({ at, sources: [source], value }: Fact): Said => ({ at, source, value })

/** By time; in the same moment by the place of the message in its session, then by that of the words in it. */
const order = (a: Said, b: Said): number =>
  a.at - b.at ||
  sequence(a) - sequence(b) ||
  from(a) - from(b) ||
  compare(JSON.stringify(a.value), JSON.stringify(b.value))
const sequence = ({ source }: Said): number => (source === undefined ? 0 : (sequenceOf(source.message) ?? 0))
const from = ({ source }: Said): number => source?.span?.[0] ?? 0
const compare = <T extends string | number>(a: T, b: T): number => (a === b ? 0 : a < b ? -1 : 1)

/** The order in which facts were said. */
export const bySaid = (a: Fact, b: Fact): number => order(saidIn(a), saidIn(b))

const timed = (found: readonly Found[], at: Millis): readonly Found[] =>
  found.map((one) => (Number.isFinite(one.at) ? one : { ...one, at })).sort(order)

/** A value of a list: once, from the first time it was said. */
function list(chain: Chain, found: Found, id: () => string): boolean {
  const known = chain[0]
  if (known === undefined) chain.push(factOf(found, id()))
  else chain[0] = found.at < known.at ? saidEarlier(known, found) : saidAgain(known, found)
  return known === undefined
}

/** A value of a key: it holds from when it was said until the next one was. */
function tell(chain: Chain, found: Found, id: () => string): boolean {
  const same = likeness(found.value)
  if (
    chain.some((fact) => likeness(fact.value) === same && fact.sources.some((source) => overlaps(source, found.source)))
  )
    return false
  const next = chain.findIndex((fact) => order(found, saidIn(fact)) < 0)
  const place = next < 0 ? chain.length : next
  const [holding, later] = [chain[place - 1], chain[place]]
  // what the oldest one superseded is forgotten, and what is older still is not taken up again
  if (holding === undefined && later?.supersedes !== undefined) return false
  const until = holding === undefined ? undefined : Math.min(holding.until ?? found.at, found.at)
  if (
    holding !== undefined &&
    likeness(holding.value) === same &&
    (later !== undefined || holding.until === undefined)
  ) {
    chain[place - 1] = saidAgain(holding, found)
    return false
  }
  if (holding !== undefined && until !== undefined) chain[place - 1] = { ...holding, until }
  if (later !== undefined && likeness(later.value) === same) {
    chain[place] = saidEarlier(later, found)
    return false
  }
  const fact = {
    ...factOf(found, id()),
    ...(holding === undefined ? {} : { supersedes: holding.id }),
    ...(later === undefined ? {} : { until: later.at }),
  }
  if (later !== undefined) chain[place] = { ...later, supersedes: fact.id }
  chain.splice(place, 0, fact)
  return true
}

function factOf({ field, key, value, importance, at, source }: Found, id: string): Fact {
  return { kind: 'fact', id, at, field, key, value, importance, sources: [source] }
}

function saidAgain(fact: Fact, found: Found): Fact {
  const isCited =
    fact.sources.length >= mostSources || fact.sources.some(({ message }) => message === found.source.message)
  return {
    ...fact,
    importance: Math.max(fact.importance, found.importance),
    sources: isCited ? fact.sources : [...fact.sources, found.source],
  }
}

function saidEarlier(fact: Fact, found: Found): Fact {
  const others = fact.sources.filter(({ message }) => message !== found.source.message)
  return { ...saidAgain(fact, found), at: found.at, sources: [found.source, ...others].slice(0, mostSources) }
}

/** The same words of the same message, however exactly they are cited. */
function overlaps(one: Source, other: Source): boolean {
  if (one.message !== other.message || one.session !== other.session) return false
  if (one.span === undefined || other.span === undefined) return true
  return one.span[0] < other.span[1] && other.span[0] < one.span[1]
}

/** As many facts as there may be: what was superseded longest ago goes first, then what matters least and is oldest. */
function pruned(facts: readonly Fact[], most: number): readonly Fact[] {
  const gone = new Set([...facts].sort(byLoss).slice(0, Math.max(0, facts.length - most)))
  return facts.filter((fact) => !gone.has(fact))
}

/** What is as old is told apart by what it says, so that the same ones go whenever this is asked. */
const byLoss = (a: Fact, b: Fact): number =>
  compare(ends(a), ends(b)) ||
  (a.until === undefined ? a.importance - b.importance : 0) ||
  bySaid(a, b) ||
  compare(about(a), about(b))
const ends = ({ until = Number.POSITIVE_INFINITY }: Fact): number => until
const about = ({ field, key, value }: Fact): string => JSON.stringify([field, key, value])

const isSame = (fact: Fact, before: Fact | undefined): boolean =>
  before !== undefined && (fact === before || written(fact) === written(before))

/** A fact as one text, whatever the order of its fields. */
const written = (fact: Fact): string => JSON.stringify(Object.entries(fact).sort(([a], [b]) => (a < b ? -1 : 1)))
