import {
  type DerivedEntry,
  findMetadata,
  formatMessageId,
  type Json,
  type Message,
  type Millis,
  type NewMessage,
  type SequenceRange,
  type Tokens,
} from './entry.ts'
import { isObject, MemoryError } from './error.ts'
import { formatKey, isInternalKey, type Key } from './key.ts'
import type { Lifetime } from './profile.ts'
/** Range of sequence numbers without messages: deleted, skipped, or reserved for replies still on their way. */
export type Gap = SequenceRange

/**
 * State of a session that a turn needs, without the complete history: older messages are read by page or found by
 * search. A session that does not exist has revision 0 and no messages.
 */
export type SessionHead = {
  readonly key: Key
  /** Grows with every change. */
  readonly revision: number
  /** Grows when the session is erased; a writer that read an earlier epoch is rejected. */
  readonly epoch: number
  readonly startedAt: Millis
  readonly touchedAt: Millis
  readonly expiresAt: Millis
  /** Number of messages. */
  readonly messages: number
  /** Sequence number of the newest message ever written, even if it was deleted. */
  readonly lastSequence: number
  readonly gaps: readonly Gap[]
  readonly firstMessage: Message | undefined
  /** Newest user message that is not blank. */
  readonly lastUserMessage: Message | undefined
  /** Newest messages, in order. */
  readonly recent: readonly Message[]
  readonly derived: readonly DerivedEntry[]
}

/** Atomic change of a session. */
export type SessionChange = {
  /** Changes with the same id are applied once; without an id, a change is never treated as a repetition. */
  readonly id?: string
  readonly key: Key
  readonly at: Millis
  readonly epoch: number
  /**
   * Revision that `replace`, `put` and `drop` are based on; rejected with `conflict` if the session has changed.
   */
  readonly base?: number
  /**
   * Position of the first appended message: after the last one, so that skipped sequence numbers become a gap, or in a
   * gap, which the number then leaves; only a change that appends exactly one message may fill a gap. Without `offset`
   * the weights continue where they are; a message in a gap always gets the offset of its place.
   */
  readonly from?: { readonly sequence: number; readonly offset?: Tokens }
  /**
   * Messages that take the place of stored ones, before `append`: id, sequence and offset stay, vectors are deleted.
   * Needs `base`.
   */
  readonly replace?: readonly Replacement[]
  readonly append: readonly NewMessage[]
  readonly put: readonly DerivedEntry[]
  /** Ids of entries to remove from working memory. */
  readonly drop: readonly string[]
  readonly expiresAt: Millis
}

/** New content of the stored message with this id. */
export type Replacement = { readonly id: string; readonly message: NewMessage }

/** Session as returned by `Store.list`. */
export type SessionListItem = Pick<SessionHead, 'key' | 'startedAt' | 'touchedAt' | 'expiresAt' | 'messages'> & {
  /** Field `metadata` of the session's metadata. */
  readonly metadata?: Json
}

/** Values that top-level fields of a session's metadata must have. */
export type MetadataFilter = Readonly<Record<string, string | number | boolean | null>>

/** Tells whether metadata is an object with all fields of a filter. */
export const matchesMetadata = (metadata: Json | undefined, filter: MetadataFilter): boolean =>
  isObject(metadata) &&
  Object.entries(filter).every(([name, value]) => Object.hasOwn(metadata, name) && metadata[name] === value)

/** Value of `expiresAt` for a session that never expires. */
export const noExpiry: Millis = Number.MAX_SAFE_INTEGER

export const createEmptyHead = (key: Key, epoch: number): SessionHead => ({
  key,
  revision: 0,
  epoch,
  startedAt: 0,
  touchedAt: 0,
  expiresAt: noExpiry,
  messages: 0,
  lastSequence: 0,
  gaps: [],
  firstMessage: undefined,
  lastUserMessage: undefined,
  recent: [],
  derived: [],
})

export const isExpired = (session: Pick<SessionHead, 'revision' | 'expiresAt'>, now: Millis): boolean =>
  session.revision > 0 && session.expiresAt <= now

/** Tells whether a sequence number lies in one of these ordered ranges. */
export function isInRanges(runs: readonly SequenceRange[], sequence: number): boolean {
  const index = lowerBound(runs, ([, last]) => last < sequence)
  return (runs[index]?.[0] ?? Number.POSITIVE_INFINITY) <= sequence
}

/** Returns the index of the first message with at least this sequence number; the messages must be in order. */
export const findMessageIndex = (messages: readonly Message[], sequence: number): number =>
  lowerBound(messages, (message) => message.sequence < sequence)

/** Binary search for the first element for which `isBefore` is false. */
function lowerBound<T>(sorted: readonly T[], isBefore: (element: T) => boolean): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(sorted[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}

/** Counts the sequence numbers `first`…`last` whose messages still exist. */
export function countExisting(gaps: readonly Gap[], first: number, last: number): number {
  let count = Math.max(0, last - first + 1)
  for (const [from, to] of gaps) count -= Math.max(0, Math.min(to, last) - Math.max(from, first) + 1)
  return count
}

/** Adds one sequence number to the gaps and merges adjacent gaps. */
export const addGap = (gaps: readonly Gap[], sequence: number): readonly Gap[] => addGapRange(gaps, sequence, sequence)

/** Adds the sequence numbers `first`…`last` to the gaps and merges adjacent gaps; none of them may be a gap already. */
export function addGapRange(gaps: readonly Gap[], first: number, last: number): readonly Gap[] {
  if (last < first) return gaps
  let [from, to] = [first, last]
  const others = gaps.filter((gap) => {
    const isApart = gap[1] < first - 1 || gap[0] > last + 1
    if (!isApart) [from, to] = [Math.min(from, gap[0]), Math.max(to, gap[1])]
    return isApart
  })
  return [...others, [from, to] as const].sort((a, b) => a[0] - b[0])
}

/** Removes one sequence number from the gaps, which must contain it. */
export const removeFromGaps = (gaps: readonly Gap[], sequence: number): readonly Gap[] =>
  gaps.flatMap((gap): readonly Gap[] => {
    const [first, last] = gap
    if (sequence < first || sequence > last) return [gap]
    const parts: readonly Gap[] = [
      [first, sequence - 1],
      [sequence + 1, last],
    ]
    return parts.filter(([from, to]) => from <= to)
  })

/**
 * Returns the sequence number inside a gap that a change fills; undefined for a change that appends at the end.
 *
 * @throws MemoryError `conflict` if `from` names a number that is neither in a gap nor after the last message.
 */
export function findFilledSequence(
  { key, from, append }: SessionChange,
  { lastSequence, gaps }: Pick<SessionHead, 'lastSequence' | 'gaps'>,
): number | undefined {
  if (from === undefined || from.sequence > lastSequence) return undefined
  if (append.length === 1 && isInRanges(gaps, from.sequence)) return from.sequence
  throw new MemoryError(
    'conflict',
    `Message ${from.sequence} of ${formatKey(key)} cannot be added: the last message is number ${lastSequence}. Use a higher number.`,
  )
}

/** Messages of a session, as far as `checkMessageIds` needs them. */
export type MessageLookup = {
  hasMessage(id: string): boolean
  /** Returns the id of the message with this external id. */
  findExternalId(externalId: string): string | undefined
}

/**
 * Checks the ids of a change that is about to be applied.
 *
 * @throws MemoryError `conflict` if a message to replace does not exist or `base` is missing, or if an external id
 * would not be unique.
 */
export function checkMessageIds(
  { key, base, replace = [], append, drop }: SessionChange,
  { hasMessage, findExternalId }: MessageLookup,
): void {
  const freed = new Set(replace.map(({ id }) => id))
  if (replace.length > 0 && (base === undefined || freed.size < replace.length || ![...freed].every(hasMessage)))
    throw createConflict(key, 'each message to replace must exist, be named once, and base must be set')
  for (const id of drop) freed.add(id)
  const given = new Set<string>()
  for (const { externalId } of [...replace.map(({ message }) => message), ...append]) {
    if (externalId === undefined) continue
    const owner = findExternalId(externalId) ?? ''
    if (given.has(externalId) || (owner !== '' && !freed.has(owner)))
      throw createConflict(key, `a message has the id ${JSON.stringify(externalId)} already`)
    given.add(externalId)
  }
}

const createConflict = (key: Key, problem: string): MemoryError =>
  new MemoryError('conflict', `Session ${formatKey(key)} was not changed: ${problem}.`)

/** Consequences of appending to a session. */
export type AppendPlan = {
  /** The stored session has expired; the append starts a new one. */
  readonly startsNewSession: boolean
  /** Ids of the messages to evict. */
  readonly evictedIds: readonly string[]
  readonly expiresAt: Millis
}

type EvictionOptions = {
  /** Number of messages to evict even if fewer are over the limit. Default: 0. */
  readonly least?: number
  /** Never evicts the first message, which tells the topic of the conversation. Default: true. */
  readonly keepsFirst?: boolean
}

/**
 * Decides how a session accepts new messages within the limits of its profile.
 *
 * @throws MemoryError `full` if messages would have to be evicted and `whenFull` is `refuse`.
 */
export function planAppend(
  head: SessionHead,
  incoming: readonly NewMessage[],
  lifetime: Lifetime,
  now: Millis,
  { least = 0, keepsFirst = true }: EvictionOptions = {},
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
    evictedIds: evictions > 0 ? selectEvictions(current, incoming.length, evictions, keepsFirst) : [],
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
 * Selects the oldest messages for eviction. If more are appended than the limit allows, the selection includes new
 * messages.
 */
function selectEvictions(head: SessionHead, incomingCount: number, count: number, keepsFirst: boolean): string[] {
  const ids: string[] = []
  const first = head.firstMessage?.sequence ?? head.lastSequence + 1
  const end = head.lastSequence + incomingCount
  for (let sequence = keepsFirst ? first + 1 : first; ids.length < count && sequence <= end; ) {
    const gap = head.gaps.find(([from, to]) => from <= sequence && sequence <= to)
    // Gaps may be long, so they are skipped at once.
    if (gap === undefined) ids.push(formatMessageId(sequence))
    sequence = (gap?.[1] ?? sequence) + 1
  }
  return ids
}
