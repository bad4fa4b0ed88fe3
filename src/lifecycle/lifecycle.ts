import { checkOptions } from '../domain/checkOptions.ts'
import {
  countMessageBytes,
  findMetadata,
  formatMessageId,
  type Message,
  type Millis,
  type NewMessage,
  type SessionMetadata,
} from '../domain/entry.ts'
import { anyFunction } from '../domain/error.ts'
import { formatKey, type Key, outboxKey, personKey, type Scope } from '../domain/key.ts'
import { KeyedMutex } from '../domain/keyed.ts'
import type { Clock, EraseFilter, MemoryLimit, Store } from '../domain/ports.ts'
import type { Lifetime, Profile } from '../domain/profile.ts'
import {
  type AppendPlan,
  computeExpiry,
  createLimitError,
  isExpired,
  isUserSession,
  planAppend,
  type SessionHead,
  selectExcessSessions,
} from '../domain/session.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { tryCommit } from '../upkeep/revise.ts'
import { auxiliaryKeysOf, findOrphans, ownerOf } from './auxiliaryKeys.ts'
import { SessionEndDelivery } from './delivery.ts'
import type { OnSessionEnd, SessionEndReason } from './endEvent.ts'
import { applyMetadataUpdate, checkMetadataSize, parseMetadataUpdate, type SessionMetadataUpdate } from './metadata.ts'
import { Outbox, pendingEntriesOf } from './outbox.ts'
import { SessionEnder } from './sessionEnd.ts'
import { SessionTransfer } from './transfer.ts'

/** Options of `createLifecycle`. */
export type LifecycleOptions = {
  /** Called once for every session that ends. Default: none. */
  readonly onSessionEnd?: OnSessionEnd | undefined
  /** Creates a signal that aborts after a delay; replaceable for tests. Default: `AbortSignal.timeout`. */
  readonly timeoutSignal?: (after: Millis) => AbortSignal
}

/** Dependencies of a lifecycle that a memory provides. */
export type LifecycleDeps = {
  readonly profile: Profile
  readonly sessions: Store
  readonly store: Store
  readonly masker: SecretMasker | undefined
  readonly clock: Clock
}

const noLimit = Number.MAX_SAFE_INTEGER
/** True if an interrupted process leaves its work in the store. */
const outlivesProcess = ({ durability, capabilities }: Store): boolean =>
  durability === 'durable' || capabilities.shared !== undefined
const ignore = (): void => undefined
/** Part of the idle time by which a session may expire early, so that not every read is a write: 86 s of 24 h. */
const refreshTolerance = 0.001
/** Keys scanned for orphans per sweep. */
const orphanScanKeys = 1_000

/** Controls how sessions start, grow, move and end. */
export class Lifecycle {
  private readonly deps: LifecycleDeps
  private readonly limits: SessionLimits
  private readonly ender: SessionEnder
  private readonly sessionTransfer: SessionTransfer
  private readonly delivery: SessionEndDelivery | undefined
  /** Position of the orphan scan. */
  private orphanScanAfter = ''

  constructor(
    deps: LifecycleDeps,
    { onSessionEnd, timeoutSignal = (after) => AbortSignal.timeout(after) }: LifecycleOptions,
  ) {
    const { sessions, profile, clock } = deps
    this.deps = deps
    const outbox = onSessionEnd && new Outbox(sessions)
    this.delivery =
      outbox &&
      new SessionEndDelivery({
        outbox,
        onSessionEnd,
        outlivesProcess: outlivesProcess(sessions),
        clock,
        timeoutSignal,
      })
    this.ender = new SessionEnder({ ...deps, outbox })
    this.limits = new SessionLimits({ sessions, lifetime: profile.lifetime, evict: (key) => this.end(key, 'evicted') })
    this.sessionTransfer = new SessionTransfer(deps)
  }

  /**
   * Prepares a session for a write: ends it if it is expired and finishes an interrupted transfer. Throws `moved` if it
   * was transferred.
   */
  prepareForWrite(head: SessionHead, now: Millis): SessionHead | Promise<SessionHead> {
    if (isExpired(head, now)) return this.endExpired(head.key, now)
    // Most sessions have no metadata and cannot have moved.
    return findMetadata(head.derived) === undefined ? head : this.sessionTransfer.resumeOrReject(head, now)
  }

  /**
   * Restarts the idle time of a session that was read. Returns undefined when the session has no idle time, or when it
   * restarted too recently to matter.
   */
  refresh(head: SessionHead, now: Millis = this.deps.clock()): Promise<void> | undefined {
    const { sessions, profile } = this.deps
    const idle = findMetadata(head.derived)?.idle ?? profile.lifetime.idle
    if (idle === undefined || head.revision === 0 || isExpired(head, now)) return undefined
    if (now - head.touchedAt <= idle * refreshTolerance) return undefined
    const expiresAt = computeExpiry(head, profile.lifetime, now)
    // Reading with another profile than the session was written with must not shorten its life.
    if (expiresAt <= head.expiresAt) return undefined
    const written = tryCommit(sessions, { ...head, touchedAt: now, expiresAt }, { put: [], drop: [] })
    // Reads must work on a full disk. A session written or erased meanwhile needs no refresh.
    return written.then(ignore, ignore)
  }

  /** Decides by the limits of the profile which messages to drop. Throws `full` if there is no room. */
  admit(head: SessionHead, incoming: readonly NewMessage[], now: Millis): AppendPlan | Promise<AppendPlan> {
    return this.limits.admit(head, incoming, now)
  }

  /** Commits a write, and evicts other sessions of the scope if it starts one session too many. */
  write<T>(head: SessionHead, now: Millis, commit: () => Promise<T>): Promise<T> {
    return this.limits.write(head, now, commit)
  }

  /** Evicts sessions while the store exceeds its limit. Returns undefined when it does not. */
  evictOverflow(): Promise<void> | undefined {
    return this.limits.evictOverflow()
  }

  /**
   * Ends a session; false if it does not exist, or for `expired`, if it is still alive. The end event is delivered
   * later.
   */
  async end(key: Key, reason: SessionEndReason, now: Millis = this.deps.clock()): Promise<boolean> {
    // The event is stored before the session is erased; if that fails, the next tick delivers it.
    this.delivery?.watch(key.scope)
    const isEnded = await this.ender.end(key, reason, now)
    if (isEnded) this.delivery?.notify(key.scope)
    return isEnded
  }

  /** Ends expired sessions and those above the limits, and starts due deliveries. */
  async sweep(now: Millis): Promise<readonly Key[]> {
    const { sessions, profile } = this.deps
    const ended = await this.endAll(await sessions.list({ expiredBy: now, limit: noLimit }), now)
    const existing =
      profile.lifetime.sessions === undefined ? [] : (await sessions.list({ limit: noLimit })).filter(isUserSession)
    for (const key of selectExcessSessions(existing, profile.lifetime))
      if (await this.ender.end(key, 'evicted', now)) ended.push(key)
    const { memoryLimit } = sessions.capabilities
    if (memoryLimit !== undefined) {
      for (let key = memoryLimit.evictionCandidate(); key !== undefined; key = memoryLimit.evictionCandidate())
        if (await this.ender.end(key, 'evicted', now)) ended.push(key)
      memoryLimit.compressIdle(now)
    }
    await this.eraseOrphans()
    for (const { scope } of ended) this.delivery?.notify(scope)
    await this.delivery?.tick(now)
    return ended
  }

  /** Returns the metadata of a session; undefined if it has none or is expired. */
  async metadata(key: Key): Promise<SessionMetadata | undefined> {
    const head = await this.deps.sessions.readHead(key, 0)
    return isExpired(head, this.deps.clock()) ? undefined : findMetadata(head.derived)
  }

  /** Updates the metadata of a session, which is created if necessary. */
  async setMetadata(key: Key, update: SessionMetadataUpdate): Promise<SessionMetadata> {
    const { sessions, profile, masker, clock } = this.deps
    const { metadata, template } = parseMetadataUpdate(key, update)
    masker?.checkKey(key)
    if (update.person !== undefined) masker?.checkKey(personKey(key.scope, update.person))
    const masked: SessionMetadataUpdate = {
      ...update,
      ...(metadata !== undefined && masker !== undefined && { metadata: await masker.maskJson(key, metadata) }),
      ...(template !== undefined && masker !== undefined && { template: await masker.maskText(key, template) }),
    }
    // Masks may be longer than what they mask.
    checkMetadataSize(masked.metadata, 'metadata')
    for (;;) {
      const at = clock()
      const head = await this.prepareForWrite(await sessions.readHead(key, 0), at)
      const about = applyMetadataUpdate(findMetadata(head.derived), masked, at)
      const expiresAt = computeExpiry({ ...head, derived: [about] }, profile.lifetime, at)
      const isWritten = await this.write(head, at, () =>
        tryCommit(sessions, { ...head, touchedAt: at, expiresAt }, { put: [about], drop: [] }),
      )
      await this.evictOverflow()
      if (isWritten) return about
    }
  }

  /** Moves a session to another key of its scope. */
  async transfer(from: Key, to: Key): Promise<void> {
    const now = this.deps.clock()
    this.deps.masker?.checkKey(to)
    // An expired session at the target is ended first.
    if (isExpired(await this.deps.sessions.readHead(to, 0), now)) await this.end(to, 'expired', now)
    await this.sessionTransfer.transfer(from, to, now)
  }

  /** Lists the data to forget with a session: branches and pending end events. */
  async auxiliaryData(store: Store, key: Key): Promise<readonly { readonly key: Key; readonly only?: EraseFilter }[]> {
    const auxiliary = (await auxiliaryKeysOf(store, key)).map((auxiliaryKey) => ({ key: auxiliaryKey }))
    // A tenant's own conversation has no end events.
    if (key.id === '') return auxiliary
    // The outbox is included even if empty: erasing from it makes a concurrent `enqueue` for this session retry.
    return [...auxiliary, { key: outboxKey(key.scope), only: { entries: await pendingEntriesOf(store, key) } }]
  }

  /** Number of pending end events whose last attempt failed. */
  get failingDeliveries(): number {
    return this.delivery?.failingCount ?? 0
  }

  /** Resolves when no end event is being delivered. */
  async whenIdle(): Promise<void> {
    await this.delivery?.whenIdle()
  }

  /** Waits for deliveries in progress and starts no more. */
  async stop(): Promise<void> {
    await this.delivery?.stop()
  }

  /** Ends an expired session and returns its successor, which may be the target of a transfer by then. */
  private async endExpired(key: Key, now: Millis): Promise<SessionHead> {
    await this.end(key, 'expired', now)
    const head = await this.deps.sessions.readHead(key, 0)
    return isExpired(head, now) ? head : this.prepareForWrite(head, now)
  }

  /** Ends expired sessions; auxiliary keys are looked up once per scope. */
  private async endAll(expired: readonly { readonly key: Key }[], now: Millis): Promise<Key[]> {
    const byScope = new Map<Scope, Map<string, Key[]>>()
    const ended: Key[] = []
    for (const { key } of expired) {
      const bySession = byScope.get(key.scope) ?? (await this.auxiliaryKeysIn(key.scope))
      byScope.set(key.scope, bySession)
      this.delivery?.watch(key.scope)
      if (await this.ender.end(key, 'expired', now, bySession.get(key.id) ?? [])) ended.push(key)
    }
    return ended
  }

  /** Lists the auxiliary keys of a scope by session id. */
  private async auxiliaryKeysIn(scope: Scope): Promise<Map<string, Key[]>> {
    const listed = await this.deps.sessions.list({ scope, limit: noLimit })
    const bySession = new Map<string, Key[]>()
    for (const { key } of listed) {
      const session = ownerOf(key)?.id
      if (session !== undefined) bySession.set(session, [...(bySession.get(session) ?? []), key])
    }
    return bySession
  }

  /** Erases orphans of one scan page, which keeps a sweep short. A store that ends with this process has none. */
  private async eraseOrphans(): Promise<void> {
    const { sessions } = this.deps
    if (!outlivesProcess(sessions)) return
    const { found, next = '' } = await findOrphans(sessions, this.orphanScanAfter, orphanScanKeys)
    for (const key of found) await sessions.erase(key)
    this.orphanScanAfter = next
  }
}

/**
 * Creates the lifecycle of a memory: session limits, end events and transfers.
 *
 * @example
 * const memory = await openMemory({ lifecycle: createLifecycle({ onSessionEnd: (id, { messageCount }) => console.log(id, messageCount) }) })
 */
export const createLifecycle = (options: LifecycleOptions = {}): ((deps: LifecycleDeps) => Lifecycle) => {
  checkOptions<LifecycleOptions>('createLifecycle', options, { onSessionEnd: anyFunction, timeoutSignal: anyFunction })
  return (deps) => new Lifecycle(deps, options)
}

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
class SessionLimits {
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
    const least = excess <= 0 ? 0 : await this.countToEvict(head, excess)
    const admission = planAppend(head, incoming, lifetime, now, { least })
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
    const count = await sessions.capabilities.sessionCounter?.countSessions(key.scope)
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
