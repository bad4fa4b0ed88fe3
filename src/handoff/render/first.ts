import type { Tokens } from '../../domain/entry.ts'
import type { Saying } from '../extract/said.ts'
import { flowed } from '../split.ts'
import type { Line } from './lines.ts'

/** Lines that are told before all others, the most telling first, in so many tokens. */
export type Foremost = { readonly places: readonly number[]; readonly room: Tokens }

/** What may be spent on each before anything else, in percent; what one does not want is for the others, in this order. */
const percents = { ask: 40, marked: 30, answer: 20, goal: 10 }
/** More of it is not told for its own sake: so many tokens, and such a part of the room unless that is a few lines. */
const most = { ask: 400, answer: 200, goal: 120 }
const parts = { ask: 1 / 2, answer: 1 / 4, goal: 1 / 8 }
const fewLines = 60
/** What was wanted at first is told where there is room for more than what is wanted now. */
const goalFrom = 300

/** The places among what was said of what the user asked last, of the newest answer, and of what the user wanted at first. */
export type Turns = {
  readonly ask: number
  readonly answer: number
  readonly goal: number
  readonly idle: ReadonlySet<number>
}

/** A turn that is not there is at -1. */
export function turnsOf(sayings: readonly Saying[]): Turns {
  const isEmpty = sayings.map(({ text }) => isIdle(text))
  const by = (role: string) => (saying: Saying, at: number) => saying.message.role === role && !isEmpty[at]
  const lastUser = sayings.findLastIndex(({ message }) => message.role === 'user')
  const asked = sayings.findLastIndex(by('user'))
  const ask = asked >= 0 ? asked : lastUser >= 0 ? lastUser : sayings.length - 1
  const newest = new Set([sayings.length - 1, lastUser])
  return {
    ask,
    answer: sayings.findLastIndex(by('assistant')),
    goal: sayings.findIndex(by('user')),
    idle: new Set(isEmpty.flatMap((is, at) => (is && !newest.has(at) ? [at] : []))),
  }
}

const idleWords = new Set(
  (
    'a again ahead all alright and awesome bitte carry continue cool correct danke do done excellent fine for go good got gracias great gut it ja k lgtm look looks ' +
    'makes me merci much next nice noted now of ok okay on perfect please proceed right sense so sounds sure ta thank thanks that the then this thx to ty understood ' +
    'very weiter welcome well work works yeah yep yes you'
  ).split(' '),
)

/**
 * Whether somebody only says that all is well: it tells nothing to whoever was not there.
 *
 * @example
 * isIdle('Thanks, looks ok!') // true
 */
function isIdle(text: string): boolean {
  if (text.length > 80 || text.includes('?')) return false
  return (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).every((word) => idleWords.has(word))
}

/** What comes first in a room: what the user marked, what was asked last, the newest answer, and what was wanted at first. */
export function foremostOf(
  lines: readonly Line[],
  turns: Turns,
  marked: readonly (readonly number[])[],
  costs: (places: readonly number[]) => Tokens,
) {
  const places = {
    ask: orderOf(lines, turns.ask),
    answer: orderOf(lines, turns.answer),
    goal: turns.goal === turns.ask ? [] : headOf(lines, turns.goal),
  }
  const known = {
    ask: costs(places.ask),
    answer: costs(places.answer),
    goal: costs(places.goal),
    marked: marked.map(costs),
  }
  const markedCost = known.marked.reduce((sum, cost) => sum + cost, 0)
  return (room: Tokens, budget: Tokens): readonly Foremost[] => {
    const hasGoal = budget >= goalFrom
    const shares = { ask: 0, marked: 0, answer: 0, goal: 0 }
    for (const name of Object.keys(shares) as (keyof typeof shares)[])
      shares[name] = Math.floor((room * percents[name]) / 100)
    const want = (name: keyof typeof most): Tokens =>
      Math.min(known[name], most[name], Math.max(fewLines, Math.floor(room * parts[name])))
    const wants = {
      ask: want('ask'),
      marked: Math.min(markedCost, Math.floor(room / 2)),
      answer: want('answer'),
      goal: hasGoal ? want('goal') : 0,
    }
    shares.ask += room - Object.values(shares).reduce((sum, share) => sum + share, 0)
    const rooms = flowed(shares, wants)
    return [
      ...evenly(marked, known.marked, rooms.marked),
      { places: places.ask, room: rooms.ask },
      { places: places.answer, room: rooms.answer },
      { places: places.goal, room: rooms.goal },
    ]
  }
}

/** Each has the same share, and what it does not want is for the others. */
function evenly(pieces: readonly (readonly number[])[], costs: readonly Tokens[], room: Tokens): readonly Foremost[] {
  const share = Math.floor(room / Math.max(1, pieces.length))
  const shares = pieces.map((_, at) => (at === 0 ? room - share * (pieces.length - 1) : share))
  const rooms = flowed<string>(Object.fromEntries(shares.entries()), Object.fromEntries(costs.entries()))
  return pieces.map((places, at) => ({ places, room: rooms[at] ?? 0 }))
}

/** The lines of a turn that say what it is about: its prose, or its code where it has nothing else. */
function headOf(lines: readonly Line[], turn: number): readonly number[] {
  const own = lines.flatMap(({ saying }, place) => (saying === turn ? [place] : []))
  const prose = own.filter((place) => lines[place]?.block === undefined)
  return prose.length > 0 ? prose : own
}

/** The first line and the last, since what is wanted stands in one of them, then the others. */
function orderOf(lines: readonly Line[], turn: number): readonly number[] {
  const places = headOf(lines, turn)
  const last = places.at(-1)
  if (last === undefined || places.length < 3 || lines[last]?.block !== undefined) return places
  return [...places.slice(0, 1), last, ...places.slice(1, -1)]
}
