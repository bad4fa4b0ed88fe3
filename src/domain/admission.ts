import { findMetadata, formatMessageId, type Millis, type NewMessage } from './entry.ts'
import { MemoryError } from './error.ts'
import { formatKey, isInternalKey, type Key } from './key.ts'
import type { Lifetime } from './profile.ts'
import {
  countExisting,
  createEmptyHead,
  isExpired,
  noExpiry,
  type SessionHead,
  type SessionListItem,
} from './session.ts'

/** Consequences of appending to a session. */
export type AppendPlan = {
  /** The stored session has expired; the append starts a new one. */
  readonly startsNewSession: boolean
  /** Ids of the messages to evict. */
  readonly evictedIds: readonly string[]
  readonly expiresAt: Millis
}

/**
 * Decides how a session accepts new messages within the limits of its profile; evicts at least `least` messages.
 *
 * @throws MemoryError `full` if messages would have to be evicted and `whenFull` is `refuse`.
 */
export function planAppend(
  head: SessionHead,
  incoming: readonly NewMessage[],
  lifetime: Lifetime,
  now: Millis,
  least = 0,
): AppendPlan {
  const ended = isExpired(head, now)
  const current = ended ? createEmptyHead(head.key, head.epoch) : head
  const overLimit = lifetime.messages === undefined ? 0 : current.messages + incoming.length - lifetime.messages
  const evictions = Math.max(least, overLimit)
  if (evictions > 0 && lifetime.whenFull === 'refuse')
    throw createLimitError(
      `Session ${formatKey(head.key)} holds ${current.messages} messages and its profile allows ${lifetime.messages}. Start a new session, or raise`,
      'messages',
    )
  return {
    startsNewSession: ended,
    evictedIds: evictions > 0 ? selectEvictions(current, incoming.length, evictions) : [],
    expiresAt: computeExpiry(current, lifetime, now),
  }
}

/** Creates the error for a limit that is reached; `problem` ends just before the name of the limit. */
export const createLimitError = (problem: string, limit: keyof Lifetime): MemoryError =>
  new MemoryError('full', `${problem} lifetime.${limit}.`, { param: `lifetime.${limit}` })

/** Computes when a session used now expires; limits in its own metadata take precedence over its profile's. */
export function computeExpiry(head: SessionHead, { idle = noExpiry, age = noExpiry }: Lifetime, now: Millis): Millis {
  const expired = isExpired(head, now)
  const metadata = expired ? undefined : findMetadata(head.derived)
  const startedAt = expired || head.revision === 0 ? now : head.startedAt
  return Math.min(noExpiry, now + (metadata?.idle ?? idle), startedAt + (metadata?.age ?? age))
}

/** Tells whether this is a session, not the memory of a scope or an internal session of the engine. */
export const isUserSession = ({ key }: Pick<SessionListItem, 'key'>): boolean => key.id !== '' && !isInternalKey(key)

/** Selects the oldest sessions beyond `lifetime.sessions`. */
export function selectExcessSessions(
  sessions: readonly SessionListItem[],
  { sessions: limit = sessions.length }: Lifetime,
): readonly Key[] {
  const oldestFirst = sessions.toSorted((a, b) => a.startedAt - b.startedAt)
  return oldestFirst.slice(0, Math.max(0, sessions.length - limit)).map((session) => session.key)
}

/**
 * Selects the oldest messages for eviction but never the first one, which tells the topic of the conversation. If more
 * are appended than the limit allows, the selection includes new messages.
 */
function selectEvictions(head: SessionHead, incomingCount: number, count: number): string[] {
  const ids: string[] = []
  const first = head.firstMessage?.sequence ?? head.lastSequence + 1
  for (let sequence = first + 1; ids.length < count && sequence <= head.lastSequence + incomingCount; sequence++) {
    if (countExisting(head.gaps, sequence, sequence) > 0) ids.push(formatMessageId(sequence))
  }
  return ids
}
