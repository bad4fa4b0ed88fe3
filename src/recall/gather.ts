import { covered, isWanted, promised, worth } from '../domain/band.ts'
import { type Derived, isBlank, isSilent, type Message, type Run, type Tokens } from '../domain/entry.ts'
import type { Origin } from '../domain/ledger.ts'
import type { Hit, Query, Range } from '../domain/ports.ts'
import type { Band, Claim, Profile, Rung } from '../domain/profile.ts'
import { type Head, isWithin } from '../domain/session.ts'
import type { Stretch } from '../text/when/calendar.ts'
import { kept } from './kept.ts'
import { preferred } from './prefer.ts'
import { type Pressure, pressureOn } from './pressure.ts'
import type { Shared } from './shared.ts'
import { tailOf } from './tail.ts'
import { firstOf, lastOf, mayBeTorn, type Unit, unitsOf } from './unit.ts'

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
  /** In the order in which the profile's bands are read. */
  readonly wishes: readonly Wish[]
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
    for (const entry of entries) origins.set(entry, from)
    for (const entry of entries) if (isHeard(entry)) derived.push(entry)
  }
  const room = budget - promised(bands, derived, budget, question.price)
  const pressure = pressureOn(head, profile, budget)
  const circumstances: Circumstances = { derived, budget, room, pressure, asking: query ?? head.asked?.content ?? '', when }
  const wishes: Wish[] = []
  for (const band of kept(orders, profile, inOrder)) {
    const { claim } = band
    const wish: Draft = { band, units: none, derived: none, limit: budget, shorter: none }
    if ('kind' in claim) wish.derived = told(claim, derived)
    else wish.units = yield* said(wish, claim, reader, circumstances)
    wishes[bands.indexOf(band)] = wish
  }
  while (reader.oldest() > (head.asked?.sequence ?? head.last + 1) && (yield* reader.older()));
  const { asked, since, pinned } = reader.turn()
  return { head, derived, origins, pressure, pinned, asked, since, stored: query === undefined, wishes }
}

const none: readonly never[] = []
const isHeard = (entry: Derived): boolean => !isSilent(entry)

/** The bands of a profile in the order in which they choose. */
const orders = new WeakMap<Profile, readonly Band[]>()
const inOrder = ({ bands }: Profile): readonly Band[] => bands.toSorted((a, b) => a.fill - b.fill)

type Circumstances = {
  readonly derived: readonly Derived[]
  readonly budget: Tokens
  readonly room: Tokens
  readonly pressure: Pressure
  readonly asking: string
  readonly when: Stretch | undefined
}

/** A wish that is being made. */
type Draft = { -readonly [Part in keyof Wish]: Wish[Part] }
type Telling = Extract<Claim, { kind: string }>

/** The derived entries that a band claims, the best first. */
function told(what: Telling, derived: readonly Derived[]): readonly Derived[] {
  if (derived.length === 0) return derived
  const held = derived.filter((entry) => isWanted(entry, what)).sort(byWorth)
  return held.slice(0, what.top)
}

/** The walk to the messages that a band claims; sets how much they may cost, and which are shown shorter. */
function said(wish: Draft, what: Exclude<Claim, Telling>, reader: Reader, circumstances: Circumstances): Walk<Unit[]> {
  const { budget, pressure, asking, when } = circumstances
  if ('first' in what) return reader.first(what.first)
  if ('recalled' in what) return reader.recall(asking, what.recalled.limit, when)
  if ('tail' in what) {
    const { start, limit } = tailOf(reader.head, what.tail, circumstances)
    wish.limit = limit
    return reader.last(limit < budget ? reaching(start) : since(start))
  }
  if ('rest' in what) {
    wish.shorter = pressure.compressed
    const isOut = (unit: Unit) => isElsewhere(unit, ({ sequence: one }) => isWithin(pressure.dropped, one))
    return reader.last(affording(budget, wish.band.ladder, isOut), 0, isOut)
  }
  const after = what.uncovered ? covered(circumstances.derived).last : 0
  return reader.last('last' in what ? counting(pressure.window ?? what.last) : weighing(what.lastTokens), after)
}

/** Whether all that was said in a unit is left out or shown elsewhere: a call says nothing without its results. */
export function isElsewhere({ messages }: Unit, isOut: (message: Message) => boolean): boolean {
  const said = messages.filter(({ content }) => !isBlank(content))
  return said.length > 0 && said.every(isOut)
}

const byWorth = (a: Derived, b: Derived): number => worth(b) - worth(a) || b.at - a.at || (a.id < b.id ? -1 : 1)

/** Says, walking back from the newest unit, whether one more is claimed. */
type More = (unit: Unit) => boolean

function counting(most: number): More {
  let seen = 0
  return (unit) => {
    const fits = seen < most
    seen += unit.messages.length
    return fits
  }
}

function weighing(most: Tokens): More {
  let weight = 0
  return (unit) => {
    const first = weight === 0
    for (const message of unit.messages) weight += message.tokens
    return first || weight <= most
  }
}

const since =
  (offset: Tokens): More =>
  (unit) =>
    (unit.messages[0] as Message).offset >= offset

/** Down to the unit that reaches across the offset: it can be shortened. */
const reaching =
  (offset: Tokens): More =>
  (unit) => {
    const last = unit.messages.at(-1) as Message
    return last.offset + last.weight > offset
  }

/** As many as could fit if each took its shortest form. */
function affording(budget: Tokens, ladder: readonly Rung[], isOut: (unit: Unit) => boolean): More {
  let least = 0
  return (unit) => {
    if (isOut(unit)) return true
    for (const message of unit.messages) least += Math.max(4, Math.min(...ladder.map((rung) => leastOf(rung, message.tokens))))
    return least <= budget + 4
  }
}

function leastOf(rung: Rung, tokens: Tokens): Tokens {
  if (rung.as === 'clip') return Math.min(tokens, rung.characters / 8)
  if (rung.as === 'fit' || rung.as === 'digest' || rung.as === 'sections') return Math.min(tokens, 40)
  return rung.as === 'whole' ? tokens : tokens / 2
}

/** Walks a session from both ends, a page at a time; a unit is handed out once. */
class Reader {
  readonly head: Head
  /** Units loaded from the end, newest first, and how many of them are claimed. */
  private back: Unit[] = []
  private claimed = 0
  /** The oldest messages read from the end: messages before them that may belong to their unit are still to be read. */
  private pending: readonly Message[] = []
  /** Whether there is nothing older to be read. */
  private isDone = false
  private front: Unit[] = []

  constructor(head: Head) {
    this.head = head
    this.settle(head.recent, head.recent.length >= head.messages)
  }

  *first(many: number): Walk<Unit[]> {
    let messages: readonly Message[] = this.head.first === undefined ? [] : [this.head.first]
    for (let limit = many + 8; mayGoOn(messages, many); limit *= 2) {
      messages = (yield { page: { limit } }).messages
      if (messages.length < limit) break
    }
    const reached = this.claimed === 0 ? Number.POSITIVE_INFINITY : firstOf(this.back[this.claimed - 1] as Unit)
    this.front = taking(unitsOf(messages), many).filter((unit) => lastOf(unit) < reached)
    return this.front
  }

  /** The newest units that nobody has claimed, as long as there are more to be claimed and they reach beyond a sequence number. */
  *last(more: More, after = 0, isOut?: More): Walk<Unit[]> {
    const units: Unit[] = []
    const stop = this.seeded()
    for (;;) {
      const unit = this.back[this.claimed] ?? (this.isDone ? undefined : yield* this.older())
      if (unit === undefined || firstOf(unit) <= stop || lastOf(unit) <= after || !more(unit)) return units
      if (isOut?.(unit) !== true) units.push(unit)
      this.claimed++
    }
  }

  /** Searches what no other band has claimed so far; what was said at the time that is asked about comes first. */
  *recall(text: string, limit: number, when: Stretch | undefined): Walk<Unit[]> {
    const oldest = this.back[this.claimed - 1]
    const before = oldest === undefined ? this.head.last + 1 : firstOf(oldest)
    const after = this.seeded()
    if (before <= after + 1 || limit === 0) return []
    const search: Query = { text, kinds: ['message'], before, limit }
    const { hits } = yield { search }
    const then = when === undefined ? [] : (yield { search: { ...search, from: when.from, to: when.to - 1 } }).hits
    const best = preferred(then, hits).slice(0, limit)
    return best.flatMap(({ entry }) => (entry.kind === 'message' && entry.sequence > after ? [{ messages: [entry] }] : []))
  }

  turn(): { asked: Unit | undefined; since: Unit[]; pinned: Unit | undefined } {
    const { first, asked } = this.head
    const at = asked === undefined ? -1 : this.back.findIndex((unit) => firstOf(unit) === asked.sequence)
    const pinned = first?.role === 'system' && !isBlank(first.content) ? { messages: [first] } : undefined
    return { asked: this.back[at], since: this.back.slice(0, Math.max(0, at)).reverse(), pinned }
  }

  /** The sequence number of the oldest unit loaded from the end. */
  oldest(): number {
    const oldest = this.back.at(-1)
    return oldest === undefined ? this.head.last + 1 : firstOf(oldest)
  }

  /** Loads units before the oldest one, if there are any, and answers with the newest of them. */
  *older(): Walk<Unit | undefined> {
    const had = this.back.length
    for (let limit = 64; !this.isDone && this.back.length === had; limit = Math.min(limit * 2, 1_024)) {
      const before = this.pending[0]?.sequence ?? this.oldest()
      const { messages } = yield { page: { before, limit, newest: true } }
      this.settle([...messages, ...this.pending], messages.length < limit)
    }
    return this.back[had]
  }

  /** The last sequence number of what is claimed from the beginning. */
  private seeded(): number {
    const last = this.front.at(-1)
    return last === undefined ? 0 : lastOf(last)
  }

  /** Turns what has been read into units, except what may belong to a unit that begins earlier. */
  private settle(messages: readonly Message[], isDone: boolean): void {
    let keep = 0
    if (!isDone) while (messages[keep]?.role === 'tool') keep++
    const units = unitsOf(messages, keep).reverse()
    this.back = this.back.length === 0 ? units : [...this.back, ...units]
    this.pending = messages.slice(0, keep)
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
