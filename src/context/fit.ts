import { mostOf } from '../domain/band.ts'
import { type Derived, type Message, promotedId, type Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Band, Rung } from '../domain/profile.ts'
import { isWithin } from '../domain/session.ts'
import type { Fee, Fees } from './fees.ts'
import type { Gathered, Wish } from './gather.ts'
import type { Fitted, Part, Piece, Said, Told } from './piece.ts'
import { isElsewhere } from './reach.ts'
import { asTurn, type Manner, mannerOf, type Renderer } from './render.ts'
import { shareOf } from './share.ts'
import { firstOf, isSendable, type Unit } from './unit.ts'

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
  const offers: Offer[] = []
  for (const wish of gathered.byFill) if (wish.units.length + wish.derived.length > 0) offers.push(offerOf(wish, 0))
  const wanting = offers.filter((offer) => !purse.pay(offer, shareOf(offer.band, budget, gathered)))
  // what one band leaves of its share, another may have
  for (const offer of wanting) if (offer.band.share !== undefined) purse.pay(offer, budget)
  const { passages } = gathered
  // what files say displaces nothing that was said
  if (passages !== undefined)
    purse.pay(offerOf(passages, offers.find(({ band }) => band.name === passages.band.name)?.had ?? 0), budget)
  return purse.result()
}

class Purse {
  readonly #said: Said[] = []
  readonly #told: Told[] = []
  /** Which messages are shown, by how far they lie behind the newest one. */
  readonly #placed: boolean[] = []
  /** The names of fees that are paid, and derived entries that are shown. */
  readonly #paid = new Set<string | Derived>()
  #feesPaid = 0
  #spent = 0
  readonly #gathered: Gathered
  readonly #budget: Tokens
  readonly #renderer: Renderer
  readonly #fees: Fees

  constructor(gathered: Gathered, budget: Tokens, renderer: Renderer, fees: Fees) {
    this.#gathered = gathered
    this.#budget = budget
    this.#renderer = renderer
    this.#fees = fees
  }

  result(): Fitted {
    const slides = this.#gathered.wishes.some((wish) => wish.limit < this.#budget)
    return { said: inOrder(this.#said), told: this.#told, fees: this.#feesPaid, spent: this.#spent, slides }
  }

  /** The newest turn of the user at any price, then a system message the session opens with, then what came after the turn. */
  payTurn(): void {
    const { asked, pinned, since, stored } = this.#gathered
    const newest = stored ? since.findLast(isSendable) : undefined
    const kept =
      newest === undefined ? 0 : Math.min(this.#priceOf(newest, this.#terms(newest, 'since')), this.#budget / 4)
    if (asked !== undefined) this.#payAsked(asked, stored, kept + this.#reservedForSeeds())
    if (pinned !== undefined)
      this.#place(pinned, newestLadder, 'opening', Math.min(this.#budget / 2, this.#budget - this.#spent - kept))
    if (!stored) return
    for (const unit of since.toReversed()) {
      const ladder = this.#sinceLadder(unit, newest)
      if (!this.#place(unit, ladder, 'since', this.#budget - this.#spent - this.#reservedForSeeds()) && unit === newest)
        this.#place(unit, ladder, 'since')
    }
  }

  /** As a turn without a heading it costs least, so that a budget which holds it so is never too small; any smaller one is. */
  #payAsked(asked: Unit, stored: boolean, reserved: Tokens): void {
    const bare: Terms = { band: undefined, manner: asTurn, entrance: this.#owed([this.#fees.reply]) }
    if (this.#renderer.unit(asked, asTurn, whole, this.#budget - bare.entrance.tokens) === null) {
      const least = bare.entrance.tokens + (this.#renderer.shortest(asked, asTurn)?.tokens ?? 0)
      if (least > this.#budget) throw tooSmall(this.#budget, least)
    }
    const part = stored ? 'newest' : 'band'
    const spare = stored ? this.#budget - reserved : this.#budget * aside
    if (
      this.#place(asked, newestLadder, part, spare) ||
      this.#place(asked, newestLadder, part) ||
      this.#place(asked, newestLadder, 'newest')
    )
      return
    this.#place(asked, newestLadder, 'newest', this.#budget, bare)
  }

  /** What has been said since is shown whole, the newest of it at any price; a band that shows glimpses shows glimpses of it. */
  #sinceLadder(unit: Unit, newest: Unit | undefined): readonly Rung[] {
    const band = this.#bandOf(unit)
    if (band?.show === 'block') return band.ladder
    return unit === newest ? newestLadder : [whole]
  }

  #bandOf(unit: Unit): Band | undefined {
    return this.#gathered.wishes.find((wish) => wish.units.some((one) => firstOf(one) === firstOf(unit)))?.band
  }

  /** What the newest turn, and what was said since, leave for what opened the session: at most a quarter of the budget. */
  #reservedForSeeds(): Tokens {
    const { asked, wishes } = this.#gathered
    let wanted = 0
    for (const { band, units } of wishes) {
      if (!('first' in band.claim)) continue
      for (const unit of units) {
        if (!isSendable(unit) || this.#isPlaced(unit) || (asked !== undefined && firstOf(unit) === firstOf(asked)))
          continue
        wanted += this.#priceOf(unit, { band, manner: mannerOf(band), entrance: this.#entrance(band, unit) })
      }
    }
    return Math.min(wanted, this.#budget / 4)
  }

  #priceOf(unit: Unit, { manner, entrance }: Terms): Tokens {
    return entrance.tokens + (this.#renderer.unit(unit, manner, whole, this.#budget)?.tokens ?? this.#budget)
  }

  /** Buys what a band wishes for; false if there is something it could not have. */
  pay(offer: Offer, most: Tokens): boolean {
    const { wish, band } = offer
    const { shorter } = wish
    offer.limit = Math.min(most, wish.limit, mostOf(band, this.#budget))
    const patience = band.patience ?? 0
    let misses = 0
    for (const unit of wish.units) {
      if (this.#isPlaced(unit) || !isSendable(unit) || this.#isLate(unit, band) || this.#isPromoted(unit, band))
        continue
      const isShorter = shorter.length > 0 && unit.messages.some(({ sequence }) => isWithin(shorter, sequence))
      if (!this.#buy(offer, isShorter ? shortened(band.ladder) : band.ladder, unit, undefined) && ++misses > patience)
        return false
    }
    let left = this.#isCrowded(offer) ? wish.derived.length : 0
    for (const derived of wish.derived) {
      if (
        !this.#paid.has(derived) &&
        !this.#buy(offer, band.ladder, undefined, derived, Math.max(1, left)) &&
        ++misses > patience
      )
        return false
      left--
    }
    return misses === 0
  }

  /** Whether entries that can be shortened do not all fit whole: then each has its part, and none hides the others. */
  #isCrowded({ wish: { derived }, band, limit, had }: Offer): boolean {
    if (!band.ladder.some((rung) => rung.as === 'sections')) return false
    const most = Math.min(limit, this.#budget - this.#spent)
    return derived.reduce((sum, entry) => sum + this.#renderer.price(entry), 0) > most - had
  }

  #buy(offer: Offer, ladder: readonly Rung[], unit: Unit | undefined, derived: Derived | undefined, left = 1): boolean {
    const { band, manner, limit, had } = offer
    const entrance = offer.entrance ?? this.#entrance(band, unit)
    const rest = this.#budget - this.#spent
    const fair = Math.min(rest, Math.floor(Math.min(limit - had, rest) / left))
    for (const rung of ladder) {
      const room =
        (rung.upTo === undefined ? fair : Math.min(fair, Math.floor(rung.upTo * this.#budget) - this.#spent)) -
        entrance.tokens
      if (room < crumb) continue
      const form =
        unit === undefined
          ? this.#renderer.derived(derived as Derived, rung, room)
          : this.#renderer.unit(unit, manner, rung, room)
      if (form === null) continue
      if (entrance !== free) {
        this.#enter(entrance)
        if (!('recalled' in band.claim)) offer.entrance = free
      }
      offer.had = had + form.tokens + entrance.tokens
      this.#take({ part: 'band', band, unit, derived, form, rung: rung.as, day: entrance.day })
      return true
    }
    return false
  }

  #place(
    unit: Unit,
    ladder: readonly Rung[],
    part: Part,
    most = this.#budget,
    terms = this.#terms(unit, part),
  ): boolean {
    if (this.#isPlaced(unit)) return true
    const { band, manner, entrance } = terms
    for (const rung of ladder) {
      const form = this.#renderer.unit(unit, manner, rung, Math.min(most, this.#budget - this.#spent) - entrance.tokens)
      if (form === null) continue
      this.#enter(entrance)
      this.#take({
        part,
        band,
        unit,
        derived: undefined,
        form,
        rung: rung.as,
        day: part === 'band' ? entrance.day : '',
      })
      return true
    }
    return false
  }

  #isPlaced(unit: Unit): boolean {
    for (const { sequence } of unit.messages)
      if (this.#placed[this.#gathered.head.last - sequence] === true) return true
    return false
  }

  /** Whether all of it stands in long-term memory, or is left out: what has no place there keeps the one it has. */
  #isPromoted(unit: Unit, band: Band): boolean {
    const { promoted, dropped } = this.#gathered.pressure
    if (promoted.length === 0 || !('rest' in band.claim)) return false
    const isShown = (item: string): boolean =>
      this.#told.some(({ derived: { kind, id } }) => kind === 'item' && id === item)
    return isElsewhere(
      unit,
      ({ id, sequence }) => isWithin(dropped, sequence) || (isWithin(promoted, sequence) && isShown(promotedId(id))),
    )
  }

  /** A block is read before the newest turn: what was said after it must not stand there. */
  #isLate(unit: Unit, band: Band): boolean {
    const { asked, stored } = this.#gathered
    return (
      band.show === 'block' && stored && asked !== undefined && band.volatile !== true && firstOf(unit) > firstOf(asked)
    )
  }

  #take(piece: Piece): void {
    const { unit, derived } = piece
    if (unit !== undefined) {
      this.#said.push(piece as Said)
      for (const { sequence } of unit.messages) this.#placed[this.#gathered.head.last - sequence] = true
    }
    if (derived !== undefined) {
      this.#told.push(piece as Told)
      this.#paid.add(derived)
    }
    this.#spent += piece.form.tokens
  }

  /** How a unit that must be shown is shown: as a turn, unless the question stands outside and the band shows a block. */
  #terms(unit: Unit, part: Part): Terms {
    // beyond the reach of every band it belongs to the one that takes the rest
    const band =
      this.#bandOf(unit) ??
      (part === 'band' ? this.#gathered.wishes.find((wish) => 'rest' in wish.band.claim)?.band : undefined)
    if (part === 'band' && band !== undefined)
      return { band, manner: mannerOf(band), entrance: this.#entrance(band, unit) }
    return { band, manner: asTurn, entrance: this.#owed([this.#fees.reply, band && this.#fees.headings.get(band)]) }
  }

  /** What must be paid before the first entry of a band is shown: its heading, its block, the date it stands under. */
  #entrance(band: Band, unit: Unit | undefined): Entrance {
    const day =
      unit !== undefined && 'recalled' in band.claim ? this.#fees.day((unit.messages[0] as Message).at) : undefined
    const { reply, stable, volatile, headings } = this.#fees
    const block = band.show === 'turns' ? undefined : band.volatile ? volatile : stable
    return this.#owed(
      [reply, headings.get(band), block, day && { name: `${band.name} ${day.text}`, tokens: day.tokens }],
      day?.text,
    )
  }

  #owed(fees: readonly (Fee | undefined)[], day = ''): Entrance {
    const unpaid: Fee[] = []
    let tokens = 0
    for (const fee of fees) {
      if (fee === undefined || this.#paid.has(fee.name)) continue
      unpaid.push(fee)
      tokens += fee.tokens
    }
    return { fees: unpaid, tokens, day }
  }

  #enter({ fees, tokens }: Entrance): void {
    for (const { name } of fees) this.#paid.add(name)
    this.#feesPaid += tokens
    this.#spent += tokens
  }
}

/** A wish that is being paid for: how it is shown, what it may cost now, and what it has cost. */
type Offer = {
  readonly wish: Wish
  readonly band: Band
  readonly manner: Manner
  limit: Tokens
  had: Tokens
  /** What each entry pays first; undefined as long as that must be asked for each. */
  entrance: Entrance | undefined
}

const offerOf = (wish: Wish, had: Tokens): Offer => ({
  wish,
  band: wish.band,
  manner: mannerOf(wish.band),
  limit: 0,
  had,
  entrance: undefined,
})

type Terms = { readonly band: Band | undefined; readonly manner: Manner; readonly entrance: Entrance }
type Entrance = { readonly fees: readonly Fee[]; readonly tokens: Tokens; readonly day: string }
const free: Entrance = { fees: [], tokens: 0, day: '' }

/** In the order of the conversation. Mostly it was bought from the newest back, and need only be turned. */
function inOrder(said: Said[]): readonly Said[] {
  said.reverse()
  const isSorted = said.every(({ unit }, at) => at === 0 || firstOf((said[at - 1] as Said).unit) < firstOf(unit))
  return isSorted ? said : said.sort((a, b) => firstOf(a.unit) - firstOf(b.unit))
}

const tooSmall = (budget: Tokens, minimum: Tokens): MemoryError =>
  new MemoryError(
    'budget-too-small',
    `A budget of ${budget} tokens cannot hold the newest turn even shortened; ${minimum} would do.`,
    {
      param: 'budget',
      minimum,
    },
  )

/** The rungs below the whole; a ladder that has no others keeps it. */
function shortened(ladder: readonly Rung[]): readonly Rung[] {
  const lower = ladder.filter((rung) => rung.as !== 'whole')
  return lower.length === 0 ? ladder : lower
}
