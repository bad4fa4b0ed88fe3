import { type Choice, choose } from './summarise/choose.ts'
import { earlierOf } from './summarise/earlier.ts'
import { piecesOf } from './summarise/pieces.ts'
import { render, summarised } from './summarise/render.ts'
import { roomFor } from './summarise/room.ts'
import { overlaps, smuggledIn } from './summarise/smuggled.ts'
import { namesOf } from './summarise/tail.ts'
import type { Summarised, Target, Told } from './summarise/told.ts'
import { finished, type Work } from './work.ts'

export type { Summarised, Target, Told }

/** No turn is taken as one piece that needs more than this part of the room; shorter ones always are. */
const turnPart = 1 / 25
const shortTurn = 25

/**
 * A summary of messages, and of what an earlier summary says of those before them, in their own words: the turns and
 * sentences that say most for their length, in the order they were said, and the names and numbers that these do not show.
 *
 * @example
 * summarise([{ id: 'm1', sequence: 1, at: 0, role: 'user', content: 'I moved to Oslo on 3 May.' }], undefined, { words: [3, 9] })
 * // { text: 'User: I moved to Oslo on 3 May.', sources: [{ message: 'm1', span: [0, 25] }] }
 */
export const summarise = (messages: readonly Told[], previous: Summarised | undefined, target: Target): Summarised =>
  finished(summarising(messages, previous, target))

/** The same as work that may be interrupted. */
export function* summarising(
  messages: readonly Told[],
  previous: Summarised | undefined,
  target: Target,
): Work<Summarised> {
  const told = [...messages].sort((left, right) => left.sequence - right.sequence)
  const earlier = earlierOf(previous)
  const room = roomFor(
    [...earlier.pieces.map(({ text }) => text), ...told.map(({ content }) => content)].join('\n'),
    target,
  )
  const pieces = [...earlier.pieces, ...(yield* piecesOf(told, Math.max(shortTurn, room.words * turnPart)))]
  const names = yield* namesOf(told, earlier.names)
  const { pieces: kept, tail } = obedient(yield* choose(pieces, names, room, target))
  return summarised(kept, tail)
}

/** No piece gives an order to the model that reads it, and neither must two that came to stand side by side. */
function obedient(choice: Choice): Choice {
  const text = render(choice.pieces, choice.tail)
  const orders = smuggledIn(text)
  if (orders.length === 0) return choice
  let start = 0
  const isClear = text.split('\n').map((line) => {
    const from = start
    start += line.length + 1
    return !overlaps(orders, from, start - 1)
  })
  return obedient({
    pieces: choice.pieces.filter((_, at) => isClear[at]),
    tail: isClear[choice.pieces.length] === false ? [] : choice.tail,
  })
}
