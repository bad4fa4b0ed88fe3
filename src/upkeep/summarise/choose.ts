import { anchorsIn } from '../../text/anchors.ts'
import { redundantOlder } from '../redundancy.ts'
import type { Work } from '../work.ts'
import { largest, pack } from './pack.ts'
import type { Piece } from './pieces.ts'
import { type Named, render } from './render.ts'
import type { Room } from './room.ts'
import { unnamedIn } from './tail.ts'
import { countWords, isWithin, type Target } from './told.ts'
import { weigh } from './weigh.ts'

/** What a summary is to consist of. */
export type Choice = { readonly pieces: readonly Piece[]; readonly tail: readonly Named[] }

/** Pieces that are taken or left together, with their place in the conversation and what they are worth for each word. */
type Unit = { readonly pieces: readonly Piece[]; readonly place: number; readonly worth: number }

/** The part of the room that names at the end may take: this much of a tenth of the source, less of more of it. */
const tailPart = { most: 0.4, least: 0.1 }
/** The part of the room that an earlier summary may keep, so that one that no longer grows still takes in what is new. */
const earlierPart = 0.8
/** How much of their words two units share that say the same. */
const alike = 0.9
/** How many are tried in part when all that fits whole is too little. */
const tries = 64

/** Which pieces and names to show, as far as the target allows. */
export function* choose(pieces: readonly Piece[], names: readonly Named[], room: Room, target: Target): Work<Choice> {
  const units = yield* unitsOf(pieces)
  if (room.part >= 1 && isWithin(render(inOrder(units), []), target)) return withTail(inOrder(units), names, target)
  // What is longer than all the room cannot be shown, and must not wear out the patience for what can.
  const able = units.filter((unit) => sizeOf(unit) <= 1.25 * room.characters + 16).sort(byWorth)
  const reserve = reserved(names, room)
  const left = room.characters - lengthOf(reserve)
  const ranked = yielding(able, left)
  const remaining = remainder(reserve)
  const fits = (taken: readonly Unit[]): boolean => isWithin(render(inOrder(taken), remaining(taken)), target)
  const packed = pack(ranked, fits, countUpTo(ranked, sizeOf, left))
  return withTail(inOrder(stretched(packed, units, remaining(packed), target)), names, target)
}

/** Tells which of some names are left for the end when some units are taken; each unit is looked through once, if ever. */
function remainder(names: readonly Named[]): (taken: readonly Unit[]) => readonly Named[] {
  const wanted = new Set(names.map(({ text }) => text))
  const known = new Map<Unit, readonly string[]>()
  const shownBy = (unit: Unit): readonly string[] => {
    const shown =
      known.get(unit) ??
      unit.pieces.flatMap((piece) => anchorsIn(piece.text).map(({ text }) => text)).filter((text) => wanted.has(text))
    known.set(unit, shown)
    return shown
  }
  return (taken) => {
    const shown = new Set(taken.flatMap(shownBy))
    return names.filter(({ text }) => !shown.has(text))
  }
}

/** What was chosen before comes first again, up to its part of the room; beyond that it makes way for what is new. */
function yielding(ranked: readonly Unit[], characters: number): readonly Unit[] {
  const earlier = ranked.filter(isEarlier)
  const yields = new Set(earlier.slice(countUpTo(earlier, sizeOf, earlierPart * characters)))
  return [...ranked.filter((unit) => !yields.has(unit)), ...yields]
}

const isEarlier = ({ pieces: [first] }: Unit): boolean => first?.kind === 'earlier'

const byWorth = (left: Unit, right: Unit): number => right.worth - left.worth || left.place - right.place

/** Until there are as many words as there should be at least: a part of what did not fit whole. */
function stretched(
  taken: readonly Unit[],
  all: readonly Unit[],
  tail: readonly Named[],
  target: Target,
): readonly Unit[] {
  const [least, most] = target.words ?? [0, 0]
  let units = taken
  const isTaken = new Set(taken)
  for (const unit of [...all].sort(byWorth).slice(0, taken.length + tries)) {
    const words = countWords(render(inOrder(units), tail))
    if (words >= least) break
    const [piece] = unit.pieces
    if (isTaken.has(unit) || piece === undefined) continue
    const cut = beginningOf(piece, most - words - countWords(piece.speaker))
    const more = cut === undefined ? units : [...units, { ...unit, pieces: [cut] }]
    if (isWithin(render(inOrder(more), tail), target)) units = more
  }
  return units
}

/** The first words of a piece, as many as there may be; a name, a date or a number among them is not split. */
function beginningOf(piece: Piece, words: number): Piece | undefined {
  const ends = Array.from(piece.text.matchAll(/\S+/g), ({ 0: word, index }) => index + word.length)
  const anchors = anchorsIn(piece.text).filter(({ kind }) => kind !== 'constraint')
  const end = ends
    .slice(0, Math.max(0, words))
    .findLast((place) => !anchors.some((anchor) => anchor.start < place && place < anchor.end))
  if (end === undefined) return undefined
  // Right behind a URL the mark would be taken for a part of it.
  const mark = end === piece.text.length || anchors.some((anchor) => anchor.end === end) ? '' : '…'
  const text = piece.text.slice(0, end) + mark
  return { ...piece, text, words: countWords(text) }
}

function withTail(pieces: readonly Piece[], names: readonly Named[], target: Target): Choice {
  const missing = unnamedIn(render(pieces, []), names)
  const count = largest(
    missing.length,
    (taken) => isWithin(render(pieces, missing.slice(0, taken)), target),
    missing.length,
  )
  return { pieces, tail: missing.slice(0, count) }
}

/** The names that room is kept for before it is known which of them the pieces will show. */
function reserved(names: readonly Named[], room: Room): readonly Named[] {
  const part = Math.max(tailPart.least, tailPart.most - 1.5 * Math.max(0, room.part - 0.1))
  return names.slice(
    0,
    countUpTo(names, ({ text }) => text.length + 2, part * room.characters),
  )
}

const lengthOf = (tail: readonly Named[]): number => tail.reduce((sum, { text }) => sum + text.length + 2, 0)
const sizeOf = ({ pieces }: Unit): number => pieces.reduce((sum, { text }) => sum + text.length + 1, 0)

/** How many from the front together have at most so many characters. */
function countUpTo<T>(some: readonly T[], size: (one: T) => number, characters: number): number {
  let taken = 0
  let count = 0
  for (const one of some) {
    taken += size(one)
    if (taken > characters) break
    count++
  }
  return count
}

/** The pieces of some units as they were said. */
const inOrder = (units: readonly Unit[]): readonly Piece[] =>
  [...units].sort((left, right) => left.place - right.place).flatMap(({ pieces }) => pieces)

/** A question with its short answer, or any other piece; none that says what an earlier one has said. */
function* unitsOf(pieces: readonly Piece[]): Work<readonly Unit[]> {
  const weights = yield* weigh(pieces)
  const units: Unit[] = []
  for (let place = 0; place < pieces.length; place++) {
    const size = pieces[place]?.isAsked === true ? 2 : 1
    const own = pieces.slice(place, place + size)
    const words = own.reduce((sum, piece) => sum + piece.words, 5)
    const worth = own.reduce((sum, piece, at) => sum + (weights[place + at] ?? 0) * (piece.words + 5), 0) / words
    units.push({ pieces: own, place, worth })
    place += size - 1
  }
  return yield* distinct(units)
}

/** What keeps two sentences apart however alike they look: their numbers and names, and whether they deny something. */
const signatureOf = (text: string): string =>
  [...(text.match(/\d+|(?<=\S )\p{Lu}\S*/gu) ?? []), /\b(?:not|no|never|without)\b|n['’]t\b/i.test(text)].join(' ')

/** Of those that say the same only the first. */
function* distinct(units: readonly Unit[]): Work<readonly Unit[]> {
  const groups = new Map<string, { readonly unit: Unit; readonly text: string }[]>()
  for (const unit of units) {
    const text = unit.pieces.map((piece) => piece.text).join('\n')
    const signature = signatureOf(text)
    const group = groups.get(signature)
    if (group === undefined) groups.set(signature, [{ unit, text }])
    else group.push({ unit, text })
    yield text.length
  }
  const kept: Unit[] = []
  for (const group of groups.values()) {
    // Turned round, so that the first of them stays.
    const turned = group.reverse()
    const repeated = redundantOlder(
      turned.map(({ text }) => text),
      alike,
    )
    for (const [at, { unit }] of turned.entries()) if (repeated[at] !== 1) kept.push(unit)
    yield group.reduce((sum, { text }) => sum + text.length, 0)
  }
  return kept.sort((left, right) => left.place - right.place)
}
