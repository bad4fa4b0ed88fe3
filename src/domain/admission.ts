import { aboutIn, type Millis, messageId, type Said } from './entry.ts'
import { MemoryError } from './error.ts'
import { formatKey, isInner, type Key } from './key.ts'
import type { Lifetime } from './profile.ts'
import { countBetween, emptyHead, type Head, isExpired, type Listed, never } from './session.ts'

/** Consequences of appending to a session. */
export type Admission = {
  /** The stored session has expired; the append starts a new one. */
  readonly ended: boolean
  /** Ids of the messages to evict. */
  readonly drop: readonly string[]
  readonly expiresAt: Millis
}

/**
 * Decides how a session accepts new messages within the limits of its profile; evicts at least `least` messages.
 *
 * @throws MemoryError `full` if messages would have to be evicted and `whenFull` is `refuse`.
 */
export function admit(head: Head, incoming: readonly Said[], lifetime: Lifetime, now: Millis, least = 0): Admission {
  const ended = isExpired(head, now)
  const current = ended ? emptyHead(head.key, head.epoch) : head
  const overLimit = lifetime.messages === undefined ? 0 : current.messages + incoming.length - lifetime.messages
  const evictions = Math.max(least, overLimit)
  if (evictions > 0 && lifetime.whenFull === 'refuse')
    throw full(
      `Session ${formatKey(head.key)} holds ${current.messages} messages and its profile allows ${lifetime.messages}. Start a new session, or raise`,
      'messages',
    )
  return {
    ended,
    drop: evictions > 0 ? selectEvictions(current, incoming.length, evictions) : [],
    expiresAt: expiry(current, lifetime, now),
  }
}

/** Creates the error for a limit that is reached; `problem` ends just before the name of the limit. */
export const full = (problem: string, limit: keyof Lifetime): MemoryError =>
  new MemoryError('full', `${problem} lifetime.${limit}.`, { param: `lifetime.${limit}` })

/** Computes when a session used now expires; limits in its own metadata take precedence over its profile's. */
export function expiry(head: Head, { idle = never, age = never }: Lifetime, now: Millis): Millis {
  const expired = isExpired(head, now)
  const metadata = expired ? undefined : aboutIn(head.derived)
  const startedAt = expired || head.revision === 0 ? now : head.startedAt
  return Math.min(never, now + (metadata?.idle ?? idle), startedAt + (metadata?.age ?? age))
}

/** Tells whether this is a session, not the memory of a scope or an internal session of the engine. */
export const isSession = ({ key }: Pick<Listed, 'key'>): boolean => key.id !== '' && !isInner(key)

/** Selects the oldest sessions beyond `lifetime.sessions`. */
export function crowded(sessions: readonly Listed[], { sessions: limit = sessions.length }: Lifetime): readonly Key[] {
  const oldestFirst = sessions.toSorted((a, b) => a.startedAt - b.startedAt)
  return oldestFirst.slice(0, Math.max(0, sessions.length - limit)).map((session) => session.key)
}

/**
 * Selects the oldest messages for eviction but never the first one, which tells the topic of the conversation. If more are
 * appended than the limit allows, the selection includes new messages.
 */
function selectEvictions(head: Head, incomingCount: number, count: number): string[] {
  const ids: string[] = []
  const first = head.first?.sequence ?? head.last + 1
  for (let sequence = first + 1; ids.length < count && sequence <= head.last + incomingCount; sequence++) {
    if (countBetween(head.gaps, sequence, sequence) > 0) ids.push(messageId(sequence))
  }
  return ids
}
