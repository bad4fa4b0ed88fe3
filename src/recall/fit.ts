import { mostOf } from '../domain/band.ts'
import { type Derived, type Message, promotedId, type Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Band, Rung } from '../domain/profile.ts'
import { isWithin } from '../domain/session.ts'
import type { Fees } from './fees.ts'
import { type Gathered, isElsewhere, type Wish } from './gather.ts'
import { asTurn, type Form, type Manner, type Renderer } from './render.ts'
import { firstOf, isSendable, type Unit } from './unit.ts'

/** Why a piece is shown: the newest turn, the instructions the session opens with, what was said since the turn, or a band's wish. */
export type Part = 'newest' | 'opening' | 'since' | 'band'

/** Something that is shown, with what it costs. */
export type Piece = {
  readonly part: Part
  readonly band: Band | undefined
  readonly unit: Unit | undefined
  readonly derived: Derived | undefined
  readonly form: Form
  /** The rung it stands on, when it is not whole. */
  readonly rung: string
  /** The line with the day it stands under, or nothing. */
  readonly day: string
}

/** What is shown and what that costs, headings and the provider's additions included. */
export type Fitted = {
  readonly pieces: readonly Piece[]
  readonly fees: Tokens
  readonly spent: Tokens
  /** Whether a band begins elsewhere with every turn. */
  readonly slides: boolean
}

const whole: Rung = { as: 'whole' }
const newestLadder: readonly Rung[] = [whole, { as: 'squeeze' }, { as: 'fit' }]
/** The part of the budget the newest stored turn may take when the question is another one. */
const aside = 0.1
/** Less room than this is not worth looking for something that fits. */
const crumb = 6

/** Spends the budget: first on the newest turn, then band by band. The only place where tokens are spent. */
export function fit(gathered: Gathered, budget: Tokens, renderer: Renderer, fees: Fees): Fitted {
  const purse = new Purse(gathered, budget, renderer, fees)
  purse.payTurn()
  const byFill = gathered.wishes.filter((wish) => wish.units.length + wish.derived.length > 0).sort((a, b) => a.band.fill - b.band.fill)
  const withCode = hasCode(gathered)
  for (const wish of byFill) purse.pay(wish, shareOf(wish.band, budget, withCode))
  // what one band leaves of its share, another may have
  for (const wish of byFill) if (wish.band.share !== undefined) purse.pay(wish, budget)
  // what files say displaces nothing that was said
  if (gathered.passages !== undefined) purse.pay(gathered.passages, budget)
  return purse.result()
}

function shareOf(band: Band, budget: Tokens, withCode: boolean): Tokens {
  if (band.share === undefined) return budget
  return Math.floor(budget * (typeof band.share === 'number' ? band.share : withCode ? band.share.withCode : band.share.without))
}

function hasCode(gathered: Gathered): boolean {
  return (
    gathered.derived.some((entry) => entry.kind === 'item' && entry.category === 'code') ||
    gathered.head.recent.some((message) => message.content.includes('```'))
  )
}

class Purse {
  private readonly pieces: Piece[] = []
  /** Derived entries, and the sequence numbers of messages. */
  private readonly placed = new Set<number | Derived>()
  private readonly shownItems = new Set<string>()
  private readonly perBand = new Map<string, Tokens>()
  private readonly paid = new Set<string>()
  /** Bands of which something is shown: what comes before their first entry is paid. */
  private readonly entered = new Set<Band>()
  private feesPaid = 0
  private spent = 0
  private readonly gathered: Gathered
  private readonly budget: Tokens
  private readonly renderer: Renderer
  private readonly fees: Fees

  constructor(gathered: Gathered, budget: Tokens, renderer: Renderer, fees: Fees) {
    this.gathered = gathered
    this.budget = budget
    this.renderer = renderer
    this.fees = fees
  }

  result(): Fitted {
    const slides = this.gathered.wishes.some((wish) => wish.limit < this.budget)
    return { pieces: this.pieces, fees: this.feesPaid, spent: this.spent, slides }
  }

  /** The newest turn of the user at any price, then a system message the session opens with, then what came after the turn. */
  payTurn(): void {
    const { asked, pinned, since, stored } = this.gathered
    const newest = stored ? since.findLast(isSendable) : undefined
    const kept = newest === undefined ? 0 : this.reserved([{ unit: newest, ...this.terms(newest, 'since') }])
    if (asked !== undefined) this.payAsked(asked, stored, kept + this.reservedForSeeds())
    if (pinned !== undefined) this.place(pinned, newestLadder, 'opening', Math.min(this.budget / 2, this.budget - this.spent - kept))
    if (!stored) return
    for (const unit of [...since].reverse()) {
      const ladder = this.sinceLadder(unit, newest)
      if (!this.place(unit, ladder, 'since', this.budget - this.spent - this.reservedForSeeds()) && unit === newest) this.place(unit, ladder, 'since')
    }
  }

  /** As a turn without a heading it costs least, so that a budget which holds it so is never too small; any smaller one is. */
  private payAsked(asked: Unit, stored: boolean, reserved: Tokens): void {
    const bare: Terms = { band: undefined, manner: asTurn, entrance: this.owed([['reply', this.fees.reply]]) }
    if (this.renderer.unit(asked, bare.manner, whole, this.budget - bare.entrance.tokens) === null) {
      const least = bare.entrance.tokens + (this.renderer.shortest(asked, bare.manner)?.tokens ?? 0)
      if (least > this.budget) this.refuse(least)
    }
    const part = stored ? 'newest' : 'band'
    const spare = stored ? this.budget - reserved : this.budget * aside
    if (this.place(asked, newestLadder, part, spare) || this.place(asked, newestLadder, part) || this.place(asked, newestLadder, 'newest')) return
    this.place(asked, newestLadder, 'newest', this.budget, bare)
  }

  /** What has been said since is shown whole, the newest of it at any price; a band that shows glimpses shows glimpses of it. */
  private sinceLadder(unit: Unit, newest: Unit | undefined): readonly Rung[] {
    const band = this.bandOf(unit)
    if (band?.show === 'block') return band.ladder
    return unit === newest ? newestLadder : [whole]
  }

  private bandOf(unit: Unit): Band | undefined {
    return this.gathered.wishes.find((wish) => wish.units.some((one) => firstOf(one) === firstOf(unit)))?.band
  }

  /** What the newest turn, and what was said since, leave for what opened the session. */
  private reservedForSeeds(): Tokens {
    const { asked, wishes } = this.gathered
    const seeds = wishes.flatMap(({ band, units }) => ('first' in band.claim ? units.map((unit) => ({ unit, band })) : []))
    const others = seeds.filter(({ unit }) => isSendable(unit) && !this.isPlaced(unit) && (asked === undefined || firstOf(unit) !== firstOf(asked)))
    return this.reserved(others.map(({ unit, band }) => ({ unit, manner: mannerOf(band), entrance: this.entrance(band, unit) })))
  }

  /** What these cost whole, but at most a quarter of the budget. */
  private reserved(units: readonly { readonly unit: Unit; readonly manner: Manner; readonly entrance: Entrance }[]): Tokens {
    const wanted = units.reduce((sum, { unit, manner, entrance }) => {
      return sum + entrance.tokens + (this.renderer.unit(unit, manner, whole, this.budget)?.tokens ?? this.budget)
    }, 0)
    return Math.min(wanted, this.budget / 4)
  }

  pay(wish: Wish, most: Tokens): void {
    const { band } = wish
    const share = Math.min(most, wish.limit)
    const manner = mannerOf(band)
    let misses = 0
    for (const unit of wish.units) {
      if (this.isPlaced(unit) || !isSendable(unit) || this.isLate(unit, band) || this.isPromoted(unit, band)) continue
      const isShorter = wish.shorter.length > 0 && unit.messages.some(({ sequence }) => isWithin(wish.shorter, sequence))
      const ladder = isShorter ? shortened(band.ladder) : band.ladder
      if (!this.buy(band, share, ladder, (room, rung) => this.renderer.unit(unit, manner, rung, room), { unit }) && ++misses > (band.patience ?? 0)) return
    }
    const crowded = this.isCrowded(wish, share)
    wish.derived.forEach((derived, at) => {
      if (this.placed.has(derived) || misses > (band.patience ?? 0)) return
      const left = crowded ? wish.derived.length - at : 1
      if (!this.buy(band, share, band.ladder, (room, rung) => this.renderer.derived(derived, rung, room), { derived, left })) misses++
    })
  }

  /** Whether entries that can be shortened do not all fit whole: then each has its part, and none hides the others. */
  private isCrowded({ band, derived }: Wish, share: Tokens): boolean {
    if (!band.ladder.some((rung) => rung.as === 'sections')) return false
    const most = Math.min(share, mostOf(band, this.budget), this.budget - this.spent)
    return derived.reduce((sum, entry) => sum + this.renderer.price(entry), 0) > most - (this.perBand.get(band.name) ?? 0)
  }

  private buy(
    band: Band,
    share: Tokens,
    ladder: readonly Rung[],
    render: (room: Tokens, rung: Rung) => Form | null,
    what: { unit?: Unit; derived?: Derived; left?: number },
  ): boolean {
    const had = this.perBand.get(band.name) ?? 0
    const limit = Math.min(share, mostOf(band, this.budget)) - had
    const entrance = this.entrance(band, what.unit)
    for (const rung of ladder) {
      const fair = Math.floor(Math.min(limit, this.budget - this.spent) / (what.left ?? 1))
      const room =
        Math.min(fair, this.budget - this.spent, rung.upTo === undefined ? this.budget : Math.floor(rung.upTo * this.budget) - this.spent) - entrance.tokens
      const form = room < crumb ? null : render(room, rung)
      if (form === null) continue
      this.enter(entrance)
      this.entered.add(band)
      this.perBand.set(band.name, had + form.tokens + entrance.tokens)
      this.take({ part: 'band', band, unit: what.unit, derived: what.derived, form, rung: rung.as, day: entrance.day })
      return true
    }
    return false
  }

  private place(unit: Unit, ladder: readonly Rung[], part: Part, most = this.budget, terms = this.terms(unit, part)): boolean {
    if (this.isPlaced(unit)) return true
    const { band, manner, entrance } = terms
    for (const rung of ladder) {
      const form = this.renderer.unit(unit, manner, rung, Math.min(most, this.budget - this.spent) - entrance.tokens)
      if (form === null) continue
      this.enter(entrance)
      this.take({ part, band, unit, derived: undefined, form, rung: rung.as, day: part === 'band' ? entrance.day : '' })
      return true
    }
    return false
  }

  private isPlaced(unit: Unit): boolean {
    return unit.messages.some((message) => this.placed.has(message.sequence))
  }

  /** Whether all of it stands in long-term memory, or is left out: what has no place there keeps the one it has. */
  private isPromoted(unit: Unit, band: Band): boolean {
    const { promoted, dropped } = this.gathered.pressure
    if (!('rest' in band.claim) || promoted.length === 0) return false
    return isElsewhere(unit, ({ id, sequence }) => isWithin(dropped, sequence) || (isWithin(promoted, sequence) && this.shownItems.has(promotedId(id))))
  }

  /** A block is read before the newest turn: what was said after it must not stand there. */
  private isLate(unit: Unit, band: Band): boolean {
    const { asked, stored } = this.gathered
    return stored && asked !== undefined && band.show === 'block' && band.volatile !== true && firstOf(unit) > firstOf(asked)
  }

  private take(piece: Piece): void {
    this.pieces.push(piece)
    if (piece.derived !== undefined) this.placed.add(piece.derived)
    if (piece.derived?.kind === 'item') this.shownItems.add(piece.derived.id)
    for (const message of piece.unit?.messages ?? []) this.placed.add(message.sequence)
    this.spent += piece.form.tokens
  }

  private refuse(minimum: Tokens): never {
    throw new MemoryError('budget-too-small', `A budget of ${this.budget} tokens cannot hold the newest turn even shortened; ${minimum} would do.`, {
      param: 'budget',
      minimum,
    })
  }

  /** How a unit that must be shown is shown: as a turn, unless the question stands outside and the band shows a block. */
  private terms(unit: Unit, part: Part): Terms {
    // beyond the reach of every band it belongs to the one that takes the rest
    const band = this.bandOf(unit) ?? (part === 'band' ? this.gathered.wishes.find((wish) => 'rest' in wish.band.claim)?.band : undefined)
    if (part === 'band' && band !== undefined) return { band, manner: mannerOf(band), entrance: this.entrance(band, unit) }
    return { band, manner: asTurn, entrance: this.owed([['reply', this.fees.reply], ...this.heading(band)]) }
  }

  private heading(band: Band | undefined): (readonly [string, Tokens])[] {
    const tokens = band === undefined ? undefined : this.fees.headings.get(band)
    return band === undefined || tokens === undefined ? [] : [[`heading ${band.name}`, tokens]]
  }

  /** What must be paid before the first entry of a band is shown: its heading, its block, the date it stands under. */
  private entrance(band: Band, unit: Unit | undefined): Entrance {
    const day = unit !== undefined && 'recalled' in band.claim ? this.fees.day((unit.messages[0] as Message).at) : undefined
    if (day === undefined && this.entered.has(band)) return free
    const owed: (readonly [string, Tokens])[] = [['reply', this.fees.reply], ...this.heading(band)]
    if (band.show === 'block') owed.push(band.volatile === true ? ['volatile', this.fees.volatile] : ['stable', this.fees.stable])
    if (day === undefined) return this.owed(owed)
    return { ...this.owed([...owed, [`${band.name} ${day.text}`, day.tokens]]), day: day.text }
  }

  private owed(items: readonly (readonly [string, Tokens])[]): Entrance {
    const names: string[] = []
    let tokens = 0
    for (const [name, price] of items) {
      if (this.paid.has(name)) continue
      names.push(name)
      tokens += price
    }
    return { names, tokens, day: '' }
  }

  private enter(entrance: Entrance): void {
    for (const name of entrance.names) this.paid.add(name)
    this.feesPaid += entrance.tokens
    this.spent += entrance.tokens
  }
}

type Terms = { readonly band: Band | undefined; readonly manner: Manner; readonly entrance: Entrance }
type Entrance = { readonly names: readonly string[]; readonly tokens: Tokens; readonly day: string }
const free: Entrance = { names: [], tokens: 0, day: '' }

/** The rungs below the whole; a ladder that has no others keeps it. */
function shortened(ladder: readonly Rung[]): readonly Rung[] {
  const lower = ladder.filter((rung) => rung.as !== 'whole')
  return lower.length === 0 ? ladder : lower
}

const mannerOf = (band: Band): Manner =>
  band.show === 'turns' ? asTurn : { show: 'block', label: band.label ?? '', separator: 'recalled' in band.claim ? '\n' : '\n\n' }
