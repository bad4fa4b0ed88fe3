import { isWanted, promised, worth } from '../domain/band.ts'
import { type Derived, isBlank, isSilent, type Message, type Run, type Tokens } from '../domain/entry.ts'
import { kept } from '../domain/getOrCompute.ts'
import type { Origin } from '../domain/ledger.ts'
import type { Hit, Query, Range } from '../domain/ports.ts'
import type { Band, Profile } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'
import type { Stretch } from '../text/when/calendar.ts'
import { preferred } from './prefer.ts'
import { type Pressure, pressureOn } from './pressure.ts'
import { type Circumstances, counting, type Draft, type Reach, reachOf, type Telling } from './reach.ts'
import type { Shared } from './shared.ts'
import { alone, firstOf, lastOf, mayBeTorn, type Unit, unitsOf } from './unit.ts'

/** What the walk through a session asks for; whoever drives it answers from a store, at once or later. */
export type Need = { readonly page: Range } | { readonly search: Query }
export type Answer = { readonly messages: readonly Message[]; readonly hits: readonly Hit[] }
export type Walk<T> = Generator<Need, T, Answer>

/** What a band would like to show, best first. */
export type Wish = {
  readonly band: Band
  readonly units: readonly Unit[]
  readonly derived: readonly Derived[]
  /** The most it may cost. */
  readonly limit: Tokens
  /** Messages that are not shown whole, though there may be room. */
  readonly shorter: readonly Run[]
}

/** Everything that could be shown: the turn that must be, and the wishes of the bands. */
export type Gathered = {
  readonly head: Head
  readonly derived: readonly Derived[]
  /** Where the derived entries come from that are not the session's own. */
  readonly origins: ReadonlyMap<Derived, Origin>
  readonly pressure: Pressure
  /** A system message the session opens with. */
  readonly pinned: Unit | undefined
  /** The newest turn of the user, and what has been said since. */
  readonly asked: Unit | undefined
  readonly since: readonly Unit[]
  /** Whether the question is the newest turn itself, or stands outside the session. */
  readonly stored: boolean
  /** In the order in which the profile's bands are read, and in the one in which they spend. */
  readonly wishes: readonly Wish[]
  readonly byFill: readonly Wish[]
  /** What the files of the scope say on the question. */
  readonly passages?: Wish
}

export type Question = {
  readonly budget: Tokens
  readonly query: string | undefined
  readonly shared: readonly Shared[]
  /** The time that the question names. */
  readonly when?: Stretch | undefined
  /** What a derived entry costs when it is shown whole. */
  readonly price: (entry: Derived) => Tokens
}

/** Lets each band claim its entries, reading no more of the session than could fit the budget. */
export function* gather(head: Head, profile: Profile, question: Question): Walk<Gathered> {
  const { budget, query, when } = question
  const { bands } = profile
  const reader = new Reader(head)
  const origins = new Map<Derived, Origin>()
  const derived = head.derived.filter(isHeard)
  for (const { from, entries } of question.shared) {
    for (const entry of entries) {
      origins.set(entry, from)
      if (isHeard(entry)) derived.push(entry)
    }
  }
  const room = budget - promised(bands, derived, budget, question.price)
  const pressure = pressureOn(head, profile, budget)
  const circumstances: Circumstances = { derived, budget, room, pressure, asking: query ?? head.asked?.content ?? '' }
  const wishes: Wish[] = []
  const byFill: Wish[] = []
  for (const band of kept(orders, profile, inOrder)) {
    const { claim } = band
    const wish: Draft = { band, units: none, derived: none, limit: budget, shorter: none }
    byFill.push(wish)
    wishes[bands.indexOf(band)] = wish
    if ('kind' in claim) wish.derived = told(claim, derived)
    else if ('first' in claim) wish.units = yield* reader.first(claim.first)
    else if ('recalled' in claim) wish.units = yield* reader.recall(circumstances.asking, claim.recalled.limit, when)
    else {
      const reach = reachOf(wish, claim, head, circumstances)
      const units: Unit[] = []
      wish.units = units
      while (!reader.take(units, reach)) yield* reader.older()
    }
  }
  while (reader.oldest() > (head.asked?.sequence ?? head.last + 1) && !reader.isDone) yield* reader.older()
  const { asked, since, pinned } = reader.turn()
  return { head, derived, origins, pressure, pinned, asked, since, stored: query === undefined, wishes, byFill }
}

const none: readonly never[] = []
const isHeard = (entry: Derived): boolean => !isSilent(entry)

/** The bands of a profile in the order in which they choose. */
const orders = new WeakMap<Profile, readonly Band[]>()
const inOrder = ({ bands }: Profile): readonly Band[] => bands.toSorted((a, b) => a.fill - b.fill)

/** The derived entries that a band claims, the best first. */
function told(what: Telling, derived: readonly Derived[]): readonly Derived[] {
  if (derived.length === 0) return derived
  const held = derived.filter((entry) => isWanted(entry, what)).sort(byWorth)
  return held.slice(0, what.top)
}

const byWorth = (a: Derived, b: Derived): number => worth(b) - worth(a) || b.at - a.at || (a.id < b.id ? -1 : 1)

/** Walks a session from both ends, a page at a time; a unit is handed out once. */
class Reader {
  readonly #head: Head
  /** Whether there is nothing older to be read. */
  isDone = false
  /** Units loaded from the end, in order, and how many of them are claimed. */
  #back: readonly Unit[] = none
  #claimed = 0
  /** The oldest messages read from the end: messages before them that may belong to their unit are still to be read. */
  #pending: readonly Message[] = none
  #front: readonly Unit[] = none

  constructor(head: Head) {
    this.#head = head
    this.#settle(head.recent, head.recent.length >= head.messages)
  }

  *first(many: number): Walk<readonly Unit[]> {
    let messages: readonly Message[] = this.#head.first === undefined ? [] : [this.#head.first]
    for (let limit = many + 8; mayGoOn(messages, many); limit *= 2) {
      messages = (yield { page: { limit } }).messages
      if (messages.length < limit) break
    }
    const reached = this.#reached(Number.POSITIVE_INFINITY)
    this.#front = taking(unitsOf(messages), many).filter((unit) => lastOf(unit) < reached)
    return this.#front
  }

  /** Takes the newest units that nobody has claimed; false, if older ones must be read first. */
  take(units: Unit[], { more, after = 0, isOut }: Reach): boolean {
    const back = this.#back
    const stop = this.#seeded()
    for (let at = back.length - this.#claimed - 1; at >= 0; at--) {
      const unit = back[at] as Unit
      if (firstOf(unit) <= stop || lastOf(unit) <= after || !more(unit)) return true
      if (isOut?.(unit) !== true) units.push(unit)
      this.#claimed++
    }
    return this.isDone
  }

  /** Searches what no other band has claimed so far; what was said at the time that is asked about comes first. */
  *recall(text: string, limit: number, when: Stretch | undefined): Walk<readonly Unit[]> {
    const before = this.#reached(this.#head.last + 1)
    const after = this.#seeded()
    if (before <= after + 1 || limit === 0) return none
    const search: Query = { text, kinds: ['message'], before, limit }
    const { hits } = yield { search }
    const then = when === undefined ? [] : (yield { search: { ...search, from: when.from, to: when.to - 1 } }).hits
    const best = preferred(then, hits).slice(0, limit)
    return best.flatMap(({ entry }) => (entry.kind === 'message' && entry.sequence > after ? [alone(entry)] : []))
  }

  turn(): { asked: Unit | undefined; since: readonly Unit[]; pinned: Unit | undefined } {
    const { first, asked } = this.#head
    const at = asked === undefined ? -1 : this.#back.findLastIndex((unit) => firstOf(unit) === asked.sequence)
    const pinned = first?.role === 'system' && !isBlank(first.content) ? alone(first) : undefined
    return { asked: this.#back[at], since: at < 0 ? none : this.#back.slice(at + 1), pinned }
  }

  /** The sequence number of the oldest unit loaded from the end. */
  oldest(): number {
    const oldest = this.#back[0]
    return oldest === undefined ? this.#head.last + 1 : firstOf(oldest)
  }

  /** Loads units before the oldest one, if there are any. */
  *older(): Walk<void> {
    const had = this.#back.length
    for (let limit = 64; !this.isDone && this.#back.length === had; limit = Math.min(limit * 2, 1_024)) {
      const before = this.#pending[0]?.sequence ?? this.oldest()
      const { messages } = yield { page: { before, limit, newest: true } }
      this.#settle([...messages, ...this.#pending], messages.length < limit)
    }
  }

  /** The sequence number of the oldest unit that is claimed from the end. */
  #reached(otherwise: number): number {
    const oldest = this.#back[this.#back.length - this.#claimed]
    return oldest === undefined ? otherwise : firstOf(oldest)
  }

  /** The last sequence number of what is claimed from the beginning. */
  #seeded(): number {
    const last = this.#front.at(-1)
    return last === undefined ? 0 : lastOf(last)
  }

  /** Turns what has been read into units, except what may belong to a unit that begins earlier. */
  #settle(messages: readonly Message[], isDone: boolean): void {
    let keep = 0
    if (!isDone) while (messages[keep]?.role === 'tool') keep++
    const units = unitsOf(messages, keep)
    this.#back = this.#back.length === 0 ? units : [...units, ...this.#back]
    this.#pending = messages.slice(0, keep)
    this.isDone = isDone
  }
}

/** Whether the first units of a session are not all there yet, or the last of them could be torn. */
function mayGoOn(messages: readonly Message[], many: number): boolean {
  const last = messages.at(-1)
  return messages.length < many || (mayBeTorn(last) && taking(unitsOf(messages), many).at(-1)?.messages.at(-1) === last)
}

function taking(units: readonly Unit[], many: number): Unit[] {
  const more = counting(many)
  return units.filter((unit) => more(unit))
}
