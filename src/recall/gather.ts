import { covered, isWanted, promised, worth } from '../domain/band.ts'
import { type Derived, isBlank, isSilent, type Message, type Run, type Tokens } from '../domain/entry.ts'
import type { Origin } from '../domain/ledger.ts'
import type { Hit, Query, Range } from '../domain/ports.ts'
import type { Band, Profile, Rung } from '../domain/profile.ts'
import { type Head, isWithin } from '../domain/session.ts'
import { isQuestion } from '../text/question.ts'
import type { Stretch } from '../text/when/calendar.ts'
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
  const reader = new Reader(head)
  const claimed = new Map<Band, Wish>()
  const origins = new Map(question.shared.flatMap(({ from, entries }) => entries.map((entry) => [entry, from] as const)))
  const derived = [...head.derived, ...origins.keys()].filter((entry) => !isSilent(entry))
  const room = question.budget - promised(profile.bands, derived, question.budget, question.price)
  const pressure = pressureOn(head, profile, question.budget)
  const circumstances = { ...question, room, pressure }
  for (const band of [...profile.bands].sort((a, b) => a.fill - b.fill)) claimed.set(band, yield* claim(band, reader, derived, circumstances))
  yield* reader.walkTo(head.asked?.sequence ?? head.last + 1)
  const { asked, since, pinned } = reader.turn()
  const wishes = profile.bands.map((band) => claimed.get(band) as Wish)
  return { head, derived, origins, pressure, pinned, asked, since, stored: question.query === undefined, wishes }
}

type Circumstances = Question & { readonly room: Tokens; readonly pressure: Pressure }

function* claim(band: Band, reader: Reader, derived: readonly Derived[], question: Circumstances): Walk<Wish> {
  const wish: Wish = { band, units: [], derived: [], limit: question.budget, shorter: [] }
  const { pressure } = question
  const asking = question.query ?? reader.head.asked?.content ?? ''
  const { claim: what } = band
  if ('first' in what) return { ...wish, units: yield* reader.first(what.first) }
  const fresh = 'uncovered' in what && what.uncovered === true ? after(covered(derived).last) : () => true
  if ('last' in what) return { ...wish, units: yield* reader.last(both(fresh, counting(pressure.window ?? what.last))) }
  if ('lastTokens' in what) return { ...wish, units: yield* reader.last(both(fresh, weighing(what.lastTokens))) }
  if ('tail' in what) {
    const { start, limit } = tailOf(reader.head, what.tail, question, isQuestion(asking))
    return { ...wish, limit, units: yield* reader.last(limit < question.budget ? reaching(start) : since(start)) }
  }
  if ('rest' in what) {
    const isOut = (unit: Unit) => isElsewhere(unit, ({ sequence: one }) => isWithin(pressure.dropped, one))
    const units = yield* reader.last(affording(question.budget, band.ladder, isOut))
    return { ...wish, units: units.filter((unit) => !isOut(unit)), shorter: pressure.compressed }
  }
  if ('recalled' in what) {
    const hits = yield* reader.recall(asking, what.recalled.limit, question.when)
    const messages = hits.map((hit) => hit.entry).filter((entry) => entry.kind === 'message')
    return { ...wish, units: messages.map((message) => ({ messages: [message] })) }
  }
  const held = derived.filter((entry) => isWanted(entry, what)).sort(byWorth)
  return { ...wish, derived: held.slice(0, what.top ?? held.length) }
}

/** Whether all that was said in a unit is left out or shown elsewhere: a call says nothing without its results. */
export function isElsewhere({ messages }: Unit, isOut: (message: Message) => boolean): boolean {
  const said = messages.filter(({ content }) => !isBlank(content))
  return said.length > 0 && said.every(isOut)
}

const sequence = (hit: Hit): number => (hit.entry.kind === 'message' ? hit.entry.sequence : 0)

const byWorth = (a: Derived, b: Derived): number => worth(b) - worth(a) || b.at - a.at || (a.id < b.id ? -1 : 1)

/** Says, walking back from the newest unit, whether one more is claimed. */
type More = (unit: Unit) => boolean

const both =
  (one: More, other: More): More =>
  (unit) =>
    one(unit) && other(unit)

const after =
  (sequence: number): More =>
  (unit) =>
    lastOf(unit) > sequence

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
  private readonly back: Unit[] = []
  private claimed = 0
  /** The oldest message read from the end; messages before it that may belong to its unit are still to be read. */
  private pending: Message[] = []
  private front: Unit[] = []

  constructor(head: Head) {
    this.head = head
    this.pending = [...head.recent]
    this.settle()
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

  *last(more: More): Walk<Unit[]> {
    const units: Unit[] = []
    const stop = this.front.length === 0 ? 0 : lastOf(this.front.at(-1) as Unit)
    for (;;) {
      const unit = this.back[this.claimed] ?? (yield* this.older())
      if (unit === undefined || firstOf(unit) <= stop || !more(unit)) return units
      units.push(unit)
      this.claimed++
    }
  }

  /** Searches what no other band has claimed so far; what was said at the time that is asked about comes first. */
  *recall(text: string, limit: number, when: Stretch | undefined): Walk<readonly Hit[]> {
    const oldest = this.back[this.claimed - 1]
    const before = oldest === undefined ? this.head.last + 1 : firstOf(oldest)
    const after = this.front.length === 0 ? 0 : lastOf(this.front.at(-1) as Unit)
    if (before <= after + 1 || limit === 0) return []
    const search: Query = { text, kinds: ['message'], before, limit }
    const { hits } = yield { search }
    const then = when === undefined ? [] : (yield { search: { ...search, from: when.from, to: when.to - 1 } }).hits
    return preferred(then, hits)
      .slice(0, limit)
      .filter((hit) => sequence(hit) > after)
  }

  /** Loads units until the one with this sequence number is among them. */
  *walkTo(target: number): Walk<void> {
    while (this.oldestSettled() > target && (yield* this.older()) !== undefined);
  }

  turn(): { asked: Unit | undefined; since: Unit[]; pinned: Unit | undefined } {
    const target = this.head.asked?.sequence
    const at = target === undefined ? -1 : this.back.findIndex((unit) => firstOf(unit) === target)
    const opening = this.head.first?.role === 'system' && this.head.first.content.trim() !== '' ? { messages: [this.head.first] } : undefined
    return { asked: at < 0 ? undefined : this.back[at], since: at < 0 ? [] : this.back.slice(0, at).reverse(), pinned: opening }
  }

  private oldestSettled(): number {
    const oldest = this.back.at(-1)
    return oldest === undefined ? this.head.last + 1 : firstOf(oldest)
  }

  private *older(): Walk<Unit | undefined> {
    const had = this.back.length
    for (let limit = 64; this.back.length === had; limit = Math.min(limit * 2, 1_024)) {
      const before = this.pending[0]?.sequence ?? this.oldestSettled()
      const { messages } = yield { page: { before, limit, newest: true } }
      this.pending = [...messages, ...this.pending]
      this.settle(messages.length < limit)
      if (messages.length < limit) break
    }
    return this.back[had]
  }

  /** Turns what has been read into units, except what may belong to a unit that begins earlier. */
  private settle(all = this.pending.length >= this.head.messages): void {
    let keep = 0
    if (!all) while (keep < this.pending.length && this.pending[keep]?.role === 'tool') keep++
    this.back.push(...unitsOf(this.pending.slice(keep)).reverse())
    this.pending = this.pending.slice(0, keep)
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
