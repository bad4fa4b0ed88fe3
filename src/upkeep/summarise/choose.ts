import { redundantOlder } from '../redundancy.ts'
import { largest, pack } from './pack.ts'
import type { Piece } from './pieces.ts'
import { type Named, render } from './render.ts'
import type { Room } from './room.ts'
import { unnamedIn } from './tail.ts'
import { isWithin, type Target } from './told.ts'
import { weigh } from './weigh.ts'

/** What a summary is to consist of. */
export type Choice = { readonly pieces: readonly Piece[]; readonly tail: readonly Named[] }

/** Pieces that are taken or left together, with their place in the conversation and what they are worth for each word. */
type Unit = { readonly pieces: readonly Piece[]; readonly place: number; readonly worth: number }

/** The part of the room that names at the end may take: this much of a tenth of the source, less of more of it. */
const tailPart = { most: 0.33, least: 0.1 }
/** How much of their words two units share that say the same. */
const alike = 0.8

/** Which pieces and names to show, as far as the target allows. */
export function choose(pieces: readonly Piece[], names: readonly Named[], room: Room, target: Target): Choice {
  const units = unitsOf(pieces)
  const everything = units.flatMap((unit) => unit.pieces)
  if (room.part >= 1 && isWithin(render(everything, []), target)) return withTail(everything, names, target)
  const ranked = [...units].sort((left, right) => right.worth - left.worth || left.place - right.place)
  const packed = (tail: readonly Named[]): readonly Piece[] => {
    const guess = countUpTo(ranked, room.characters - lengthOf(tail))
    return inOrder(
      units,
      pack(ranked, (taken) => isWithin(render(inOrder(units, taken), tail), target), guess),
    )
  }
  const first = withTail(packed(reserved(names, room)), names, target)
  // Names that the pieces show already were reserved room for: it goes to more pieces.
  return first.isComplete ? withTail(packed(first.tail), names, target) : first
}

function withTail(pieces: readonly Piece[], names: readonly Named[], target: Target): Choice & { readonly isComplete: boolean } {
  const missing = unnamedIn(render(pieces, []), names)
  const count = largest(missing.length, (taken) => isWithin(render(pieces, missing.slice(0, taken)), target), missing.length)
  return { pieces, tail: missing.slice(0, count), isComplete: count === missing.length }
}

function reserved(names: readonly Named[], room: Room): readonly Named[] {
  const part = Math.max(tailPart.least, tailPart.most - 1.2 * Math.max(0, room.part - 0.1))
  let left = part * room.characters
  return names.slice(0, names.findIndex(({ text }) => (left -= text.length + 2) < 0) >>> 0)
}

const lengthOf = (tail: readonly Named[]): number => tail.reduce((sum, { text }) => sum + text.length + 2, 0)

function countUpTo(units: readonly Unit[], characters: number): number {
  let left = characters
  const end = units.findIndex(({ pieces }) => (left -= pieces.reduce((sum, { text }) => sum + text.length + 1, 0)) < 0)
  return end < 0 ? units.length : end
}

/** The pieces of some units as they were said. */
function inOrder(all: readonly Unit[], taken: readonly Unit[]): readonly Piece[] {
  const isTaken = new Set(taken)
  const pieces: Piece[] = []
  for (const unit of all) if (isTaken.has(unit)) pieces.push(...unit.pieces)
  return pieces
}

/** A question with its short answer, or any other piece; none that says what an earlier one has said. */
function unitsOf(pieces: readonly Piece[]): readonly Unit[] {
  const weights = weigh(pieces)
  const units: Unit[] = []
  for (let place = 0; place < pieces.length; place++) {
    const size = pieces[place]?.isAsked === true ? 2 : 1
    const own = pieces.slice(place, place + size)
    const words = own.reduce((sum, piece) => sum + piece.words, 5)
    const worth = own.reduce((sum, piece, at) => sum + (weights[place + at] ?? 0) * (piece.words + 5), 0) / words
    units.push({ pieces: own, place, worth })
    place += size - 1
  }
  return distinct(units)
}

/** Sentences with other numbers, or of which only one denies something, do not say the same however alike they look. */
function distinct(units: readonly Unit[]): readonly Unit[] {
  const groups = new Map<string, { readonly unit: Unit; readonly text: string }[]>()
  for (const unit of units) {
    const text = unit.pieces.map((piece) => piece.text).join('\n')
    const key = `${text.match(/\d+/g)?.join(' ') ?? ''} ${/\b(?:not|no|never|without)\b|n['’]t\b/i.test(text)}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [{ unit, text }])
    else group.push({ unit, text })
  }
  const kept: Unit[] = []
  for (const group of groups.values()) {
    // Turned round, so that the first of them stays.
    const turned = [...group].reverse()
    const repeated = redundantOlder(
      turned.map(({ text }) => text),
      alike,
    )
    turned.forEach(({ unit }, at) => repeated.has(at) || kept.push(unit))
  }
  return kept.sort((left, right) => left.place - right.place)
}
