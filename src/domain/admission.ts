import { aboutIn, type Millis, messageId, type Said } from './entry.ts'
import { MemoryError } from './error.ts'
import { formatKey, isInner, type Key } from './key.ts'
import type { Lifetime } from './profile.ts'
import { countBetween, emptyHead, type Head, isExpired, type Listed, never } from './session.ts'

/** What writing to a session takes: whether the old one is over, which messages give way, and until when it then lives. */
export type Admission = { readonly ended: boolean; readonly drop: readonly string[]; readonly expiresAt: Millis }

/** Decides how a session takes in new messages, by the limits of its profile; `least` messages give way in any case. */
export function admit(head: Head, incoming: readonly Said[], lifetime: Lifetime, now: Millis, least = 0): Admission {
  const ended = isExpired(head, now)
  const current = ended ? emptyHead(head.key, head.epoch) : head
  const over = Math.max(
    least,
    lifetime.messages === undefined ? 0 : current.messages + incoming.length - lifetime.messages,
  )
  if (over > 0 && lifetime.whenFull === 'refuse')
    throw full(
      `Session ${formatKey(head.key)} holds ${current.messages} messages and its profile allows ${lifetime.messages}. Start a new session, or raise`,
      'messages',
    )
  return {
    ended,
    drop: over > 0 ? evicted(current, incoming.length, over) : [],
    expiresAt: expiry(current, lifetime, now),
  }
}

/** For a limit that is reached; `what` ends before the name of the limit. */
export const full = (what: string, limit: keyof Lifetime): MemoryError =>
  new MemoryError('full', `${what} lifetime.${limit}.`, { param: `lifetime.${limit}` })

/** When a session that is used now is over: its own lifetime counts before its profile's. */
export function expiry(head: Head, { idle = never, age = never }: Lifetime, now: Millis): Millis {
  const isOver = isExpired(head, now)
  const own = isOver ? undefined : aboutIn(head.derived)
  return Math.min(
    never,
    now + (own?.idle ?? idle),
    (isOver || head.revision === 0 ? now : head.startedAt) + (own?.age ?? age),
  )
}

/** Whether this is a session, not the memory of a scope or something that the engine keeps for itself. */
export const isSession = ({ key }: Pick<Listed, 'key'>): boolean => key.id !== '' && !isInner(key)

/** The oldest sessions beyond what a profile allows. */
export function crowded(sessions: readonly Listed[], { sessions: most = sessions.length }: Lifetime): readonly Key[] {
  const oldestFirst = sessions.toSorted((a, b) => a.startedAt - b.startedAt)
  return oldestFirst.slice(0, Math.max(0, sessions.length - most)).map((session) => session.key)
}

/** The oldest messages but the first: it says what the conversation is about. Of more than fit at once, the new ones too. */
function evicted(head: Head, incoming: number, many: number): string[] {
  const ids: string[] = []
  const seed = head.first?.sequence ?? head.last + 1
  for (let sequence = seed + 1; ids.length < many && sequence <= head.last + incoming; sequence++) {
    if (countBetween(head.gaps, sequence, sequence) > 0) ids.push(messageId(sequence))
  }
  return ids
}
