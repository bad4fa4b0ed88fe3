import { covered } from '../domain/band.ts'
import { type Derived, isBlank, type Message, type Tokens } from '../domain/entry.ts'
import type { Claim, Rung } from '../domain/profile.ts'
import { type Head, isWithin } from '../domain/session.ts'
import type { Wish } from './gather.ts'
import type { Pressure } from './pressure.ts'
import { tailOf } from './tail.ts'
import type { Unit } from './unit.ts'

/** What the claims of bands are judged by. */
export type Circumstances = {
  readonly derived: readonly Derived[]
  readonly budget: Tokens
  readonly room: Tokens
  readonly pressure: Pressure
  readonly asking: string
}

/** A wish that is being made. */
export type Draft = { -readonly [Part in keyof Wish]: Wish[Part] }
/** Claims on derived entries. */
export type Telling = Extract<Claim, { kind: string }>
/** Claims on the newest messages that nobody has claimed. */
type Reaching = Exclude<Claim, Telling | { first: number } | { recalled: object }>

/** Says, walking back from the newest unit, whether one more is claimed. */
type More = (unit: Unit) => boolean
/** As long as there are more to be claimed and they reach beyond a sequence number; those that are out are passed over. */
export type Reach = { readonly more: More; readonly after?: number; readonly isOut?: More }

/** How far back a band claims messages; sets how much they may cost, and which are shown shorter. */
export function reachOf(wish: Draft, what: Reaching, head: Head, circumstances: Circumstances): Reach {
  const { budget, pressure } = circumstances
  if ('tail' in what) {
    const { start, limit } = tailOf(head, what.tail, circumstances)
    wish.limit = limit
    return { more: limit < budget ? reaching(start) : since(start) }
  }
  if ('rest' in what) {
    wish.shorter = pressure.compressed
    const isOut = (unit: Unit) => isElsewhere(unit, ({ sequence: one }) => isWithin(pressure.dropped, one))
    return { more: affording(budget, wish.band.ladder, isOut), isOut }
  }
  const after = what.uncovered ? covered(circumstances.derived).last : 0
  return { more: 'last' in what ? counting(pressure.window ?? what.last) : weighing(what.lastTokens), after }
}

/** Whether all that was said in a unit is left out or shown elsewhere: a call says nothing without its results. */
export function isElsewhere({ messages }: Unit, isOut: (message: Message) => boolean): boolean {
  const said = messages.filter(({ content }) => !isBlank(content))
  return said.length > 0 && said.every(isOut)
}

/** So many messages, and what belongs to the last of them. */
export function counting(most: number): More {
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
    for (const message of unit.messages)
      least += Math.max(4, Math.min(...ladder.map((rung) => leastOf(rung, message.tokens))))
    return least <= budget + 4
  }
}

function leastOf(rung: Rung, tokens: Tokens): Tokens {
  if (rung.as === 'clip') return Math.min(tokens, rung.characters / 8)
  if (rung.as === 'fit' || rung.as === 'digest' || rung.as === 'sections') return Math.min(tokens, 40)
  return rung.as === 'whole' ? tokens : tokens / 2
}
