import { formatMessageId, type Message, type Millis, type NewMessage } from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { KeyedMutex } from '../domain/keyedMutex.ts'
import type { MemoryLimit, Store } from '../domain/ports.ts'
import type { Lifetime } from '../domain/profile.ts'
import type { SessionHead } from '../domain/session.ts'
import { type AppendPlan, createLimitError, isUserSession, planAppend } from '../domain/session.ts'
import { countMessageBytes } from '../text/utf8.ts'

type LimitsDeps = {
  readonly sessions: Store
  readonly lifetime: Lifetime
  /** Ends a session to make room. */
  readonly evict: (key: Key) => Promise<unknown>
}

/** Size of a session's messages. It is valid while epoch, last and messages match the head. */
type SessionSize = { epoch: number; last: number; messages: number; bytes: number }

const maxTrackedSizes = 100_000

/** Enforces the limits of a profile: size of a session, sessions per scope, total size of the store. */
export class SessionLimits {
  private readonly deps: LimitsDeps
  private readonly sizes = new Map<string, SessionSize>()
  /** New sessions of a scope are committed one after the other, so that they can be counted. */
  private readonly scopeLocks = new KeyedMutex()

  constructor(deps: LimitsDeps) {
    this.deps = deps
  }

  /** Decides which messages to drop for new ones: the oldest except the first. Throws `full` if that is not allowed. */
  admit(head: SessionHead, incoming: readonly NewMessage[], now: Millis): AppendPlan | Promise<AppendPlan> {
    const { lifetime } = this.deps
    if (lifetime.bytes === undefined) return planAppend(head, incoming, lifetime, now)
    const size = this.sizes.get(formatKey(head.key))
    const bytes = totalBytes(incoming)
    if (size === undefined || !isCurrentSize(size, head) || size.bytes + bytes > lifetime.bytes)
      return this.admitMeasured(head, incoming, now)
    const admission = planAppend(head, incoming, lifetime, now)
    if (admission.evictedIds.length > 0) return this.admitMeasured(head, incoming, now)
    size.last += incoming.length
    size.messages += incoming.length
    size.bytes += bytes
    return admission
  }

  /** `admit` for a session that must be read, because its size is unknown or messages are dropped. */
  private async admitMeasured(head: SessionHead, incoming: readonly NewMessage[], now: Millis): Promise<AppendPlan> {
    const { lifetime } = this.deps
    const size = this.sizes.get(formatKey(head.key))
    const current = size !== undefined && isCurrentSize(size, head) ? size.bytes : await this.measureBytes(head)
    const bytes = current + totalBytes(incoming)
    const excess = bytes - (lifetime.bytes as number)
    const admission = planAppend(head, incoming, lifetime, now, excess <= 0 ? 0 : await this.countToEvict(head, excess))
    const { length: dropped } = admission.evictedIds
    this.setSize(
      head,
      incoming,
      dropped,
      dropped === 0 ? bytes : bytes - (await this.bytesEvicted(head, incoming, admission.evictedIds)),
    )
    return admission
  }

  /** Commits a write, and enforces the number of sessions per scope if it starts a session. */
  write<T>({ key, revision }: SessionHead, now: Millis, commit: () => Promise<T>): Promise<T> {
    const startsSession = revision === 0 && isUserSession({ key }) && this.deps.lifetime.sessionsPerScope !== undefined
    return startsSession ? this.scopeLocks.run(key.scope, () => this.commitNewSession(key, now, commit)) : commit()
  }

  /** Evicts sessions while the store exceeds its limit. Returns undefined when it does not. */
  evictOverflow(): Promise<void> | undefined {
    const { sessions } = this.deps
    const { memoryLimit } = sessions.capabilities
    return memoryLimit?.evictionCandidate() === undefined ? undefined : this.evictWhileOverflowing(memoryLimit)
  }

  private async evictWhileOverflowing(memoryLimit: MemoryLimit): Promise<void> {
    for (let key = memoryLimit.evictionCandidate(); key !== undefined; key = memoryLimit.evictionCandidate())
      await this.deps.evict(key)
  }

  private async commitNewSession<T>(key: Key, now: Millis, commit: () => Promise<T>): Promise<T> {
    const { sessions, lifetime, evict } = this.deps
    const maxSessions = lifetime.sessionsPerScope as number
    const count = sessions.capabilities.sessionCounter?.countSessions(key.scope)
    if (count !== undefined && count < maxSessions) return commit()
    const others = await this.otherSessions(key, now)
    if (lifetime.whenFull === 'refuse' && others.length >= maxSessions) {
      throw createLimitError(
        `${key.scope} has ${others.length} sessions and its profile allows ${maxSessions}. End one of them, or raise`,
        'sessionsPerScope',
      )
    }
    const written = await commit()
    for (const { key: unused } of others.slice(0, Math.max(0, others.length + 1 - maxSessions))) await evict(unused)
    return written
  }

  /** Lists the other sessions of a scope, least recently used first. */
  private async otherSessions({ scope, id }: Key, now: Millis) {
    const listed = await this.deps.sessions.list({ scope, limit: Number.MAX_SAFE_INTEGER })
    const alive = listed.filter((session) => isUserSession(session) && session.key.id !== id && session.expiresAt > now)
    return alive.sort((a, b) => a.touchedAt - b.touchedAt)
  }

  /** Counts how many of the oldest messages, except the first, must be dropped to free a number of bytes. */
  private async countToEvict({ key, firstMessage }: SessionHead, bytes: number): Promise<number> {
    const { lifetime, sessions } = this.deps
    if (bytes <= 0) return 0
    let [count, left] = [0, bytes]
    for (let after = firstMessage?.sequence ?? 0; left > 0 && lifetime.whenFull === 'evict'; ) {
      const page = await sessions.readMessages(key, { after, limit: 100 })
      for (const message of page) if (left > 0) [count, left] = [count + 1, left - countMessageBytes(message)]
      const last = page.at(-1)
      if (last === undefined) break
      after = last.sequence
    }
    if (left <= 0) return count
    throw createLimitError(
      `Session ${formatKey(key)} would exceed the ${lifetime.bytes} bytes its profile allows. Start a new session, send less, or raise`,
      'bytes',
    )
  }

  /** Bytes of the dropped messages. Incoming messages may be among them if more arrive than fit. */
  private async bytesEvicted(
    { key, firstMessage, lastSequence }: SessionHead,
    incoming: readonly NewMessage[],
    drop: readonly string[],
  ): Promise<number> {
    const oldest = await this.deps.sessions.readMessages(key, {
      after: firstMessage?.sequence ?? 0,
      limit: drop.length,
    })
    return (
      totalBytes(oldest) +
      totalBytes(incoming.filter((_, index) => drop.includes(formatMessageId(lastSequence + 1 + index))))
    )
  }

  /** Counts the bytes of a session once; `setSize` keeps the number up to date afterwards. */
  private async measureBytes({ key, messages }: SessionHead): Promise<number> {
    return messages === 0
      ? 0
      : totalBytes(await this.deps.sessions.readMessages(key, { limit: Number.MAX_SAFE_INTEGER }))
  }

  /** Stores the size of a session after messages were added and others dropped. */
  private setSize(
    { key, epoch, lastSequence, messages }: SessionHead,
    { length }: readonly NewMessage[],
    dropped: number,
    bytes: number,
  ): void {
    if (this.sizes.size >= maxTrackedSizes) this.sizes.clear()
    this.sizes.set(formatKey(key), { epoch, last: lastSequence + length, messages: messages + length - dropped, bytes })
  }
}

function totalBytes(messages: readonly (NewMessage | Message)[]): number {
  let bytes = 0
  for (const message of messages) bytes += countMessageBytes(message)
  return bytes
}

/** True if the measured size is that of the current messages. */
const isCurrentSize = (size: SessionSize, head: SessionHead): boolean =>
  size.last === head.lastSequence && size.messages === head.messages && size.epoch === head.epoch
