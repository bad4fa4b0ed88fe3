import { findMetadata, type Millis, type NewMessage, type SessionMetadata } from '../domain/entry.ts'
import { type Key, outboxKey, type Scope } from '../domain/key.ts'
import type { Clock, EraseFilter, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import {
  type AppendPlan,
  computeExpiry,
  isExpired,
  isUserSession,
  type SessionHead,
  selectExcessSessions,
} from '../domain/session.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { tryCommit } from '../upkeep/revise.ts'
import { auxiliaryKeysOf, findOrphans, ownerOf } from './auxiliaryKeys.ts'
import { SessionEndDelivery } from './delivery.ts'
import type { OnSessionEnd, SessionEndReason } from './endEvent.ts'
import { SessionLimits } from './limits.ts'
import { applyMetadataUpdate, parseMetadataUpdate, type SessionMetadataUpdate } from './metadata.ts'
import { Outbox, pendingEntriesOf } from './outbox.ts'
import { SessionEnder } from './sessionEnd.ts'
import { SessionTransfer } from './transfer.ts'

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
      outbox && new SessionEndDelivery({ outbox, onSessionEnd, durability: sessions.durability, clock, timeoutSignal })
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
    const { metadata, ...others } = parseMetadataUpdate(key, update)
    const masked =
      metadata === undefined || masker === undefined
        ? update
        : { ...others, metadata: await masker.maskJson(key, metadata) }
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

  /** Erases orphans of one scan page, which keeps a sweep short. RAM stores have no orphans. */
  private async eraseOrphans(): Promise<void> {
    const { sessions } = this.deps
    if (sessions.durability === 'ram') return
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
export const createLifecycle =
  (options: LifecycleOptions = {}) =>
  (deps: LifecycleDeps): Lifecycle =>
    new Lifecycle(deps, options)
