import type { Derived, Message, Millis, Run, Said, Tokens } from './entry.ts'
import type { Key } from './key.ts'

/** A run of sequence numbers whose messages are gone. */
export type Gap = Run

/**
 * What a turn needs to know of a session, never the whole history: older messages come by page or by search.
 * A session nobody has written to has revision 0 and no messages.
 */
export type Head = {
  readonly key: Key
  /** Grows with every change. */
  readonly revision: number
  /** Grows when the session is erased; a writer that read an earlier one is refused. */
  readonly epoch: number
  readonly startedAt: Millis
  readonly touchedAt: Millis
  readonly expiresAt: Millis
  /** How many messages there are, and the sequence number of the newest one ever written. */
  readonly messages: number
  readonly last: number
  readonly gaps: readonly Gap[]
  readonly first: Message | undefined
  /** The newest message of the user that can be shown. */
  readonly asked: Message | undefined
  /** The newest messages, in order. */
  readonly recent: readonly Message[]
  readonly derived: readonly Derived[]
}

/**
 * One atomic step. The same `id` twice is once. Appending needs no `base`; `put` and `drop` of derived entries decided
 * on what was read at revision `base` are refused when the session has moved on.
 */
export type Change = {
  /** Without one it is no other's equal, whatever it holds. */
  readonly id?: string
  readonly key: Key
  readonly at: Millis
  readonly epoch: number
  readonly base?: number
  /** Where the first message appended stands, if not right behind the last one: what is skipped is a gap. For imports. */
  readonly from?: { readonly sequence: number; readonly offset: Tokens }
  readonly append: readonly Said[]
  readonly put: readonly Derived[]
  /** Ids of entries that leave working memory. */
  readonly drop: readonly string[]
  readonly expiresAt: Millis
}

/** A session in a list: enough to choose it by. */
export type Listed = Pick<Head, 'key' | 'startedAt' | 'touchedAt' | 'expiresAt' | 'messages'>

export const never: Millis = Number.MAX_SAFE_INTEGER

export const emptyHead = (key: Key, epoch: number): Head => ({
  key,
  revision: 0,
  epoch,
  startedAt: 0,
  touchedAt: 0,
  expiresAt: never,
  messages: 0,
  last: 0,
  gaps: [],
  first: undefined,
  asked: undefined,
  recent: [],
  derived: [],
})

/** Whether a sequence number lies in one of these runs, which are in order. */
export function isWithin(runs: readonly Run[], sequence: number): boolean {
  let [low, high] = [0, runs.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((runs[middle] as Run)[1] < sequence) low = middle + 1
    else high = middle
  }
  return (runs[low]?.[0] ?? Number.POSITIVE_INFINITY) <= sequence
}

/** How many of the sequence numbers `first`…`last` still have their message. */
export function countBetween(gaps: readonly Gap[], first: number, last: number): number {
  let count = Math.max(0, last - first + 1)
  for (const [from, to] of gaps) count -= Math.max(0, Math.min(to, last) - Math.max(from, first) + 1)
  return count
}

/** The gaps after the message with this sequence number has gone too, joined with its neighbours. */
export const withGap = (gaps: readonly Gap[], sequence: number): readonly Gap[] => withGaps(gaps, sequence, sequence)

/** The gaps after the messages `first`…`last` have gone too, joined with their neighbours; none of them may be a gap already. */
export function withGaps(gaps: readonly Gap[], first: number, last: number): readonly Gap[] {
  if (last < first) return gaps
  let [from, to] = [first, last]
  const others = gaps.filter((gap) => {
    const isApart = gap[1] < first - 1 || gap[0] > last + 1
    if (!isApart) [from, to] = [Math.min(from, gap[0]), Math.max(to, gap[1])]
    return isApart
  })
  return [...others, [from, to] as const].sort((a, b) => a[0] - b[0])
}

export const isExpired = (session: Pick<Head, 'revision' | 'expiresAt'>, now: Millis): boolean =>
  session.revision > 0 && session.expiresAt <= now

/** The place of the first message with at least this sequence number, in messages that are in order. */
export function placeOf(messages: readonly Message[], sequence: number): number {
  let [low, high] = [0, messages.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((messages[middle] as Message).sequence < sequence) low = middle + 1
    else high = middle
  }
  return low
}
