import { covered } from '../domain/band.ts'
import type { Tokens } from '../domain/entry.ts'
import type { Tail } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'
import { isQuestion } from '../text/question.ts'

/**
 * Where the tail begins and what it may cost. Cuts fall on multiples of a fixed step of the summed weights, so that the
 * tail only grows at its end until it would pass `high`, and then loses one step at its beginning: no state, no scan of
 * the history. In a scarce budget it is a share: a small one for a question, which older turns may answer, a large one
 * for anything else, which is about what was just said.
 */
export function tailOf(
  head: Head,
  tail: Tail,
  { budget, room, asking }: { readonly budget: Tokens; readonly room: Tokens; readonly asking: string },
): { start: Tokens; limit: Tokens } {
  const newest = head.recent.at(-1)
  const total = newest === undefined ? 0 : newest.offset + newest.weight
  // where a summary ends the tail begins, as long as that is a tail of the right length for this budget
  const { reach } = covered(head.derived)
  const rest = total - reach
  const isScarce = budget <= tail.scarce.budget
  if (!isScarce && reach > 0 && rest <= tail.all * room && rest >= 0.5 * tail.low * room)
    return { start: reach, limit: budget }
  if (total <= tail.all * room) return { start: 0, limit: budget }
  if (isScarce) {
    const limit = Math.floor((isQuestion(asking) ? tail.scarce.question : tail.scarce.otherwise) * budget)
    return { start: total - limit, limit }
  }
  const step = Math.max(1, Math.floor((tail.high - tail.low) * room))
  return { start: step * Math.max(0, Math.floor((total - tail.low * room) / step)), limit: budget }
}
