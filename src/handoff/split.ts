import type { Tokens } from '../domain/entry.ts'

/** What a restored text is made of: code, what else was said, and what is known about it. */
export type Part = 'code' | 'conversation' | 'metadata'
export type Split = Readonly<Record<Part, Tokens>>

/** In percent of the budget. */
const percents = { withCode: { code: 60, metadata: 10 }, without: { code: 0, metadata: 30 } }

/**
 * The share of each part in a budget: code 60, conversation 30 and metadata 10 percent, without code 70 and 30. What rounding
 * leaves over is the conversation's.
 *
 * @example
 * split(4_000, true) // { code: 2400, conversation: 1200, metadata: 400 }
 */
export function split(budget: Tokens, hasCode: boolean): Split {
  const percent = hasCode ? percents.withCode : percents.without
  const code = Math.floor((budget * percent.code) / 100)
  const metadata = Math.floor((budget * percent.metadata) / 100)
  return { code, conversation: budget - code - metadata, metadata }
}

/**
 * What each gets when it wants so much: its share if it wants that, and of what the others leave of theirs as much as it
 * wants, the first first. A share is a promise of room and no limit, so nothing is left over that somebody wants.
 *
 * @example
 * flowed({ code: 60, conversation: 30, metadata: 10 }, { code: 20, conversation: 90, metadata: 5 }) // { code: 20, conversation: 75, metadata: 5 }
 */
export function flowed<K extends string>(
  shares: Readonly<Record<K, Tokens>>,
  wants: Readonly<Record<K, Tokens>>,
): Record<K, Tokens> {
  const names = Object.keys(shares) as K[]
  const rooms: Record<K, Tokens> = { ...shares }
  let left = 0
  for (const name of names) {
    rooms[name] = Math.min(shares[name], wants[name])
    left += shares[name] - rooms[name]
  }
  for (const name of names) {
    const more = Math.min(left, wants[name] - rooms[name])
    rooms[name] += more
    left -= more
  }
  return rooms
}
