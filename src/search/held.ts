import { isSession } from '../domain/admission.ts'
import { type Derived, type Entry, type Millis, messageId, sequenceOf, textOf } from '../domain/entry.ts'
import { kept } from '../domain/getOrCompute.ts'
import { formatKey, type Key } from '../domain/key.ts'
import type { Query } from '../domain/ports.ts'
import type { Meaning, Pointed } from './meaning.ts'
import { type Both, mixed } from './mix.ts'
import { type Limits, SearchIndex, unlimited } from './score.ts'
import { searchTerms } from './terms.ts'
import { type IndexParts, Texts } from './texts.ts'

/** A message as an index takes it. */
export type Indexed = {
  readonly sequence: number
  readonly at: Millis
  readonly name: string | undefined
  readonly terms: readonly string[]
}
/** An entry that was found, not read yet. */
export type Found = {
  readonly key: Key
  readonly id: string /** Of a message; 0 of anything else. */
  readonly sequence: number
  readonly score: number
  readonly why: Readonly<Record<string, number>>
}

/** What is held, as plain data. */
export type HeldParts = {
  readonly stamp: number
  readonly lineage: string
  readonly sessions: readonly { readonly key: Key; readonly reached: number; readonly derived: readonly Derived[] }[]
  readonly said: IndexParts
}

type Known = { readonly place: number; readonly entry: Derived }

/** So many of the best by words and by meaning are mixed. */
const pool = 1_000

/** What is held in RAM of a session or a scope so that it can be searched: words, derived entries, and vectors once they are asked for. */
export class Held {
  stamp = 0
  lineage = ''
  /** Work on what is held is done one after the other. */
  busy: Promise<unknown> = Promise.resolve()
  meaning: Meaning | undefined
  /** How much of its size is counted against the room there is. */
  counted = 0
  /** How many messages were held when it was last kept elsewhere. */
  kept = 0
  private rested = 0
  private said = new SearchIndex()
  private known = new SearchIndex()
  private keys: Key[] = []
  private numbers = new Map<string, number>()
  private reached: number[] = []
  private derived: Map<string, Known>[] = []
  private learnt: { readonly key: Key; readonly entry: Derived }[] = []
  private changed: { readonly key: Key; readonly entry: Derived }[] = []

  /** Lets go of everything, to begin anew. */
  clear(): void {
    const { busy, counted } = this
    Object.assign(this, new Held(), { busy, counted })
  }

  get size(): number {
    return this.said.size + this.known.size + (this.meaning?.size ?? 0)
  }

  /** How many messages are held. */
  get messages(): number {
    return this.said.size
  }

  parts(): HeldParts {
    const sessions = this.keys.map((key, owner) => ({
      key,
      reached: this.reached[owner] ?? 0,
      derived: [...(this.derived[owner]?.values() ?? [])].map(({ entry }) => entry),
    }))
    return { stamp: this.stamp, lineage: this.lineage, sessions, said: this.said.parts() }
  }

  /** Begins with what was held elsewhere or earlier. */
  adopt({ stamp, lineage, sessions, said }: HeldParts): void {
    this.stamp = stamp
    this.lineage = lineage
    this.said = new SearchIndex(Texts.of(said))
    this.kept = this.said.size
    for (const { key, reached, derived } of sessions) {
      this.reached[this.numberOf(key)] = reached
      this.learn(key, derived)
    }
  }

  /** Whether so much was taken in since this was last true. */
  isRested(much: number): boolean {
    if (this.size - this.rested < much) return false
    this.rested = this.size
    return true
  }

  /** The sequence number up to which a session's messages are held. */
  reachedOf(key: Key): number {
    return this.reached[this.numberOf(key)] ?? 0
  }

  hear(key: Key, messages: readonly Indexed[]): void {
    const owner = this.numberOf(key)
    for (const message of messages) {
      this.said.add({ owner, ...message })
      this.reached[owner] = message.sequence
    }
  }

  /** Brings the derived entries of a session to what they are now. */
  learn(key: Key, entries: readonly Derived[]): void {
    const owner = this.numberOf(key)
    const before = this.derived[owner] ?? new Map<string, Known>()
    const after = new Map<string, Known>()
    for (const entry of entries) {
      const old = before.get(entry.id)
      const isSame =
        old !== undefined &&
        old.entry.at === entry.at &&
        old.entry.kind === entry.kind &&
        textOf(old.entry) === textOf(entry)
      after.set(entry.id, { place: isSame ? old.place : this.note(key, entry), entry })
      if (isSame) before.delete(entry.id)
      else if (old !== undefined) this.changed.push({ key, entry })
    }
    for (const { place, entry } of before.values()) {
      this.known.remove(place)
      this.meaning?.remove(key, entry.id)
    }
    this.derived[owner] = after
  }

  /** Entries that say something else than before, once: the vector that is held of them may be of either text. */
  doubtful(): readonly { readonly key: Key; readonly entry: Derived }[] {
    const { changed } = this
    this.changed = []
    return changed
  }

  point(vectors: readonly Pointed[]): void {
    for (const vector of vectors) this.meaning?.add(vector)
  }

  /** What was found, best first; equals in an order that depends on nothing but themselves. */
  search(query: Query): readonly Found[] {
    const { text = '', vector, limit } = query
    if (vector === undefined) return cut(this.byWords(text, query, limit), limit)
    if (text === '') return cut(this.byMeaning(query, limit), limit)
    const both = new Map<string, Found & Both>()
    for (const one of cut(this.byWords(text, query, pool), pool))
      both.set(nameOf(one), { ...one, words: one.score, meaning: 0 })
    for (const one of cut(this.byMeaning(query, pool), pool)) {
      const had = both.get(nameOf(one))
      both.set(nameOf(one), { ...one, why: { ...had?.why, ...one.why }, words: had?.words ?? 0, meaning: one.score })
    }
    const candidates = [...both.values()]
    const scores = mixed(candidates)
    return cut(
      candidates.map(({ key, id, sequence, why }, at) => ({ key, id, sequence, why, score: scores[at] as number })),
      limit,
    )
  }

  private byWords(text: string, query: Query, most: number): Found[] {
    const limits = limitsOf(query, most)
    const has = (kind: Entry['kind']): boolean => query.kinds === undefined || query.kinds.includes(kind)
    const heard = has('message') ? this.said.rank(text, limits) : []
    const found = heard.map(({ place, score, why }): Found => {
      const sequence = this.said.sequenceAt(place)
      return { key: this.keys[this.said.ownerAt(place)] as Key, id: messageId(sequence), sequence, score, why }
    })
    if (query.kinds?.every((kind) => kind === 'message')) return found
    // one kind could crowd out another before it is filtered, so all that match are looked at
    for (const { place, score, why } of this.known.rank(text, {
      ...limits,
      ...{ before: unlimited.before, most: this.known.size },
    })) {
      const { key, entry } = this.learnt[place] as { key: Key; entry: Derived }
      if (has(entry.kind)) found.push({ key, id: entry.id, sequence: 0, score, why })
    }
    return found
  }

  private byMeaning(query: Query, most: number): Found[] {
    const near =
      this.meaning?.rank(query.vector?.values ?? new Float32Array(0), query.kinds, limitsOf(query, most)) ?? []
    return near.map(({ key, id, score }) => ({
      key,
      id,
      sequence: sequenceOf(id) ?? 0,
      score,
      why: { meaning: score },
    }))
  }

  /** Derived entries stand for themselves: each is a session of its own, so that none lends anything to its neighbours. */
  private note(key: Key, entry: Derived): number {
    this.learnt.push({ key, entry })
    return this.known.add({
      owner: this.known.size,
      sequence: 0,
      at: entry.at,
      name: undefined,
      terms: searchTerms(textOf(entry)),
    })
  }

  private numberOf(key: Key): number {
    return kept(this.numbers, formatKey(key), () => this.keys.push(key) - 1)
  }
}

const nameOf = ({ key, id }: Found): string => `${formatKey(key)} ${id}`

function limitsOf(
  { before = unlimited.before, from = unlimited.from, to = unlimited.to }: Query,
  most: number,
): Limits {
  return { before, from, to, most }
}

function cut(found: readonly Found[], limit: number): readonly Found[] {
  return found.toSorted((a, b) => b.score - a.score || inOrder(a, b)).slice(0, limit)
}

/** What was said in a session before what its scope knows, the later message first; else by key and id. */
function inOrder(a: Found, b: Found): number {
  if (a.key !== b.key) {
    const own = Number(isSession(b)) - Number(isSession(a))
    if (own !== 0) return own
    const [first, second] = [formatKey(a.key), formatKey(b.key)]
    if (first !== second) return first < second ? -1 : 1
  }
  return a.sequence !== b.sequence ? b.sequence - a.sequence : a.id < b.id ? -1 : 1
}
