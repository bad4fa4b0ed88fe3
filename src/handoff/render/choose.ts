import type { Tokens } from '../../domain/entry.ts'
import type { Company } from './company.ts'
import type { Foremost } from './first.ts'
import { kindOf, type Line } from './lines.ts'
import { Queue } from './queue.ts'
import type { Worth } from './worth.ts'

/** What may be spent on lines of code and on all other lines. */
export type Rooms = { readonly code: Tokens; readonly conversation: Tokens }

export type Wanted = {
  readonly rooms: Rooms
  readonly worth: Worth
  /** What is told before all else, line by line, and of the line that has no room its beginning. */
  readonly foremost: readonly Foremost[]
  /** Important pieces of code and data, each told whole, the most important first. */
  readonly pieces: readonly (readonly number[])[]
  /** What is told with each line; one that has no company is told in pieces only. */
  readonly company: readonly (Company | undefined)[]
  /** What naming the speaker of each message costs. */
  readonly labels: readonly Tokens[]
  /** The beginning of a text in so many tokens, empty if there is no room for any. */
  readonly shortened: (text: string, room: Tokens) => string
}

/** Places of lines, in their order, and what is told of those that are not told whole. */
export type Chosen = { readonly places: readonly number[]; readonly clipped: ReadonlyMap<number, string> }

/** No line costs less: a word and a line break. */
const least = 2
/** A line is not begun after others when so little of it could be told. */
const leastBegun = 8
/** What each step may spend of what is left: the newest lines are told as they are, whole pieces stay whole, and the rest is for what tells most. */
const parts = { newest: 0.3, pieces: 0.2 }
/** When so much of a room is left, nothing of its kind is small enough for it. */
const unused = 0.05

/**
 * The lines to tell: those that come before all else, the newest, important pieces, and then whatever tells most that is not
 * told yet, for what it costs.
 */
export function choose(lines: readonly Line[], wanted: Wanted): Chosen {
  const choice = new Choice(lines, wanted)
  for (const { places, room } of wanted.foremost) choice.begin(places, room)
  choice.takeNewest(parts.newest)
  choice.take(wanted.pieces, parts.pieces)
  choice.takeBest()
  choice.takeNewest(1)
  if (choice.lend('code', 'conversation') || choice.lend('conversation', 'code')) choice.takeBest()
  return choice.chosen
}

class Choice {
  readonly #lines: readonly Line[]
  readonly #wanted: Wanted
  readonly #chosen = new Set<number>()
  readonly #clipped = new Map<number, string>()
  /** Names that are told, and the messages and blocks of code of which something is. */
  readonly #told = new Set<string>()
  readonly #open = new Set<unknown>()
  readonly #left: { code: Tokens; conversation: Tokens }

  constructor(lines: readonly Line[], wanted: Wanted) {
    this.#lines = lines
    this.#wanted = wanted
    this.#left = { ...wanted.rooms }
  }

  get chosen(): Chosen {
    return { places: [...this.#chosen].sort((left, right) => left - right), clipped: this.#clipped }
  }

  /** As many lines as a room of their own holds, and the beginning of the next one. */
  begin(places: readonly number[], room: Tokens): void {
    let left = room
    for (const [at, place] of places.entries()) {
      if (this.#chosen.has(place)) continue
      const cost = this.#cost([place])
      if (cost > left) {
        const { text, tokens } = this.#line(place)
        const rest = left - (cost - tokens)
        const some = at > 0 && rest < leastBegun ? '' : this.#wanted.shortened(text, rest - 1)
        if (some !== '') this.#add([place], left, some)
        return
      }
      this.#add([place], cost)
      left -= cost
    }
  }

  /** Pieces of several lines, each whole or not at all. */
  take(pieces: readonly (readonly number[])[], part: number): void {
    const floor = this.#floor(part)
    for (const piece of pieces) {
      const rest = piece.filter((place) => !this.#chosen.has(place))
      const costs = { code: 0, conversation: 0 }
      // too much if they are of one message and one block, and then the piece is passed over: there will be smaller ones
      for (const place of rest) costs[kindOf(this.#line(place))] += this.#cost([place])
      if (
        this.#left.code - costs.code < floor.code ||
        this.#left.conversation - costs.conversation < floor.conversation
      )
        continue
      for (const place of rest) this.#add([place], this.#cost([place]))
    }
  }

  /** From the newest backwards; where one room is full, only lines of the other kind go on. */
  takeNewest(part: number): void {
    const floor = this.#floor(part)
    const isFull = { code: false, conversation: false }
    for (let place = this.#lines.length - 1; place >= 0 && !(isFull.code && isFull.conversation); place--) {
      const kind = kindOf(this.#line(place))
      if (!isFull[kind] && this.#isOpen(place)) isFull[kind] = !this.#takeAbove(place, floor)
    }
  }

  takeBest(): void {
    const floor = this.#floor(1)
    const queue = new Queue()
    for (const place of this.#lines.keys()) if (this.#isOpen(place)) queue.add(place, this.#gain(place))
    for (
      let next = queue.take();
      next !== undefined && Math.max(this.#left.code, this.#left.conversation) >= least;
      next = queue.take()
    ) {
      const { place, worth } = next
      if (!this.#isOpen(place)) continue
      const gain = this.#gain(place)
      if (gain <= 0) continue
      // what it tells may have been told since
      if (gain < worth) queue.add(place, gain)
      else if (this.#takeAbove(place, floor)) this.#requeue(place, queue)
    }
  }

  /** Gives what is left of one room to the other; false if that is not worth the while. */
  lend(from: keyof Rooms, to: keyof Rooms): boolean {
    const left = this.#left[from]
    if (left < least || left < unused * this.#wanted.rooms[from]) return false
    this.#left[from] = 0
    this.#left[to] += left
    return true
  }

  /** Whether a line may still be told for itself. */
  #isOpen = (place: number): boolean => !this.#chosen.has(place) && this.#wanted.company[place] !== undefined

  /** Beside a line that is told, a name at the edge of another has its neighbour. */
  #requeue(place: number, queue: Queue): void {
    const { needed = [], beside = [] } = this.#wanted.company[place] ?? {}
    for (const near of [...needed, ...beside])
      for (const other of [near - 1, near, near + 1]) if (this.#isOpen(other)) queue.add(other, this.#gain(other))
  }

  /** A line and what is told with it, as far as it is not told yet. */
  #group(place: number): readonly number[] {
    const { needed = [], beside = [] } = this.#wanted.company[place] ?? {}
    const partner = beside.some((side) => this.#chosen.has(side)) ? [] : beside.slice(0, 1)
    return [...needed, ...partner].filter((other) => !this.#chosen.has(other))
  }

  /** What a line adds with its company, by what that costs. */
  #gain(place: number): number {
    const { worth } = this.#wanted
    const group = this.#group(place)
    let gain = 0
    for (const own of group) gain += worth.base(own)
    for (const name of this.#toldBy(group)) if (!this.#told.has(name)) gain += worth.names.get(name) ?? 0
    return gain / this.#cost(group)
  }

  /** The names that are told once these lines are: their own, and those at the edges of their neighbours that have waited for them. */
  #toldBy(group: readonly number[]): ReadonlySet<string> {
    const names = new Set<string>()
    const isTold = (other: number): boolean =>
      group.includes(other) || (this.#chosen.has(other) && !this.#clipped.has(other))
    for (const place of group)
      for (const near of [place - 1, place, place + 1]) {
        if (!isTold(near)) continue
        for (const { name, before, after } of this.#lines[near]?.mentions ?? [])
          if ((!before || isTold(near - 1)) && (!after || isTold(near + 1))) names.add(name)
      }
    return names
  }

  /** Takes a line and its company, all at its own cost, unless less than the floor would be left. */
  #takeAbove(place: number, floor: Rooms): boolean {
    const group = this.#group(place)
    const kind = kindOf(this.#line(place))
    const cost = this.#cost(group)
    if (this.#left[kind] - cost < floor[kind]) return false
    this.#add(group, cost)
    return true
  }

  /** Where a room is too small for what comes first, the other one pays. */
  #add(group: readonly number[], cost: Tokens, clipped?: string): void {
    const own = kindOf(this.#line(group[0] ?? 0))
    const other = own === 'code' ? 'conversation' : 'code'
    this.#left[own] -= cost
    if (this.#left[own] < 0) {
      this.#left[other] += this.#left[own]
      this.#left[own] = 0
    }
    if (clipped === undefined) for (const name of this.#toldBy(group)) this.#told.add(name)
    for (const place of group) {
      this.#chosen.add(place)
      if (clipped !== undefined) this.#clipped.set(place, clipped)
      this.#open.add(this.#line(place).saying).add(this.#line(place).block)
    }
  }

  #floor = (part: number): Rooms => ({
    code: this.#left.code * (1 - part),
    conversation: this.#left.conversation * (1 - part),
  })

  /** What lines of one message cost, with what it takes to say who speaks, and to fence code, if no line has paid for that. */
  #cost(group: readonly number[]): Tokens {
    const blocks = new Set<Line['block']>()
    const { saying } = this.#line(group[0] ?? 0)
    let cost = this.#open.has(saying) ? 0 : (this.#wanted.labels[saying] ?? 0)
    for (const place of group) {
      const { tokens, block } = this.#line(place)
      if (block !== undefined && !this.#open.has(block) && !blocks.has(block)) cost += block.tokens
      blocks.add(block)
      cost += tokens
    }
    return cost
  }

  #line(place: number): Line {
    return this.#lines[place] as Line
  }
}
