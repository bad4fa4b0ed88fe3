import type { Tokens } from '../../domain/entry.ts'
import { kindOf, type Line } from './lines.ts'
import { Queue } from './queue.ts'
import type { Worth } from './worth.ts'

/** What may be spent on lines of code and on all other lines. */
export type Rooms = { readonly code: Tokens; readonly conversation: Tokens }

export type Wanted = {
  readonly rooms: Rooms
  readonly worth: Worth
  /** Lines that are told together, the most important first: those the user marked, and other pieces of code and data. */
  readonly marked: readonly (readonly number[])[]
  readonly pieces: readonly (readonly number[])[]
  /** What naming the speaker of each message costs. */
  readonly labels: readonly Tokens[]
}

/** No line costs less: a word and a line break. */
const least = 2
/** What each step may spend of what is left: the newest lines are told as they are, whole pieces stay whole, and the rest is for what tells most. */
const parts = { marked: 0.5, newest: 0.4, pieces: 0.2 }
/** When so much of a room is left, nothing of its kind is small enough for it. */
const unused = 0.05

/**
 * The places of the lines to tell: what the user marked, the newest, important pieces, and then line by line whatever tells
 * most that is not told yet, for what it costs.
 */
export function choose(lines: readonly Line[], wanted: Wanted): readonly number[] {
  const choice = new Choice(lines, wanted)
  choice.take(wanted.marked, parts.marked)
  choice.takeNewest(parts.newest)
  choice.take(wanted.pieces, parts.pieces)
  choice.takeBest()
  choice.takeNewest(1)
  if (choice.lend('code', 'conversation') || choice.lend('conversation', 'code')) choice.takeBest()
  return choice.places
}

class Choice {
  readonly #lines: readonly Line[]
  readonly #wanted: Wanted
  readonly #chosen = new Set<number>()
  /** Names that are told, and the messages and blocks of code of which something is. */
  readonly #told = new Set<string>()
  readonly #open = new Set<unknown>()
  readonly #left: { code: Tokens; conversation: Tokens }

  constructor(lines: readonly Line[], wanted: Wanted) {
    this.#lines = lines
    this.#wanted = wanted
    this.#left = { ...wanted.rooms }
  }

  /** In the order of the conversation. */
  get places(): readonly number[] {
    return [...this.#chosen].sort((left, right) => left - right)
  }

  /** Pieces of several lines, each whole or not at all. */
  take(pieces: readonly (readonly number[])[], part: number): void {
    const floor = this.#floor(part)
    for (const piece of pieces) {
      const rest = piece.filter((place) => !this.#chosen.has(place))
      const costs = { code: 0, conversation: 0 }
      // too much if they are of one message and one block, and then the piece is passed over: there will be smaller ones
      for (const place of rest) costs[kindOf(this.#line(place))] += this.#cost(place)
      if (this.#left.code - costs.code < floor.code || this.#left.conversation - costs.conversation < floor.conversation) continue
      for (const place of rest) this.#takeAbove(place, floor)
    }
  }

  /** From the newest backwards; where one room is full, only lines of the other kind go on. */
  takeNewest(part: number): void {
    const floor = this.#floor(part)
    const isFull = { code: false, conversation: false }
    for (let place = this.#lines.length - 1; place >= 0 && !(isFull.code && isFull.conversation); place--) {
      const kind = kindOf(this.#line(place))
      if (!isFull[kind] && !this.#chosen.has(place)) isFull[kind] = !this.#takeAbove(place, floor)
    }
  }

  takeBest(): void {
    const floor = this.#floor(1)
    const queue = new Queue()
    for (const place of this.#lines.keys()) if (!this.#chosen.has(place)) queue.add(place, this.#gain(place))
    for (let next = queue.take(); next !== undefined && Math.max(this.#left.code, this.#left.conversation) >= least; next = queue.take()) {
      const { place, worth } = next
      if (this.#chosen.has(place)) continue
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

  /** Beside a line that is told, a name at the edge of another has its neighbour. */
  #requeue(place: number, queue: Queue): void {
    for (const other of [place - 1, place + 1]) if (this.#lines[other] !== undefined && !this.#chosen.has(other)) queue.add(other, this.#gain(other))
  }

  /** What a line adds, by what it costs. */
  #gain(place: number): number {
    const { worth } = this.#wanted
    let gain = worth.base(place)
    for (const name of this.#toldBy(place)) if (!this.#told.has(name)) gain += worth.names.get(name) ?? 0
    return gain / this.#cost(place)
  }

  /** The names that are told once this line is: its own, and those at the edges of its neighbours that have waited for it. */
  #toldBy(place: number): ReadonlySet<string> {
    const names = new Set<string>()
    const isTold = (other: number): boolean => other === place || this.#chosen.has(other)
    for (const near of [place - 1, place, place + 1]) {
      if (!isTold(near)) continue
      for (const { name, before, after } of this.#lines[near]?.mentions ?? [])
        if ((!before || isTold(near - 1)) && (!after || isTold(near + 1))) names.add(name)
    }
    return names
  }

  /** Takes a line unless less than the floor would be left. */
  #takeAbove(place: number, floor: Rooms): boolean {
    const line = this.#line(place)
    const kind = kindOf(line)
    const left = this.#left[kind] - this.#cost(place)
    if (left < floor[kind]) return false
    this.#left[kind] = left
    for (const name of this.#toldBy(place)) this.#told.add(name)
    this.#chosen.add(place)
    this.#open.add(line.saying).add(line.block)
    return true
  }

  #floor = (part: number): Rooms => ({ code: this.#left.code * (1 - part), conversation: this.#left.conversation * (1 - part) })

  /** With what it takes to say who speaks, and to fence code, if no line has paid for that. */
  #cost(place: number): Tokens {
    const { tokens, saying, block } = this.#line(place)
    return tokens + (this.#open.has(saying) ? 0 : (this.#wanted.labels[saying] ?? 0)) + (block === undefined || this.#open.has(block) ? 0 : block.tokens)
  }

  #line(place: number): Line {
    return this.#lines[place] as Line
  }
}
