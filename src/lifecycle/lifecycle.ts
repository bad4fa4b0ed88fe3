import { type Admission, crowded, expiry, isSession } from '../domain/admission.ts'
import { type About, aboutIn, type Millis, type Said } from '../domain/entry.ts'
import { type Key, outboxKey, type Scope } from '../domain/key.ts'
import type { Clock, Erasure, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { type Head, isExpired } from '../domain/session.ts'
import type { Barrier } from '../memory/secretMasker.ts'
import { tryCommit } from '../upkeep/revise.ts'
import { auxiliaryKeysOf, findOrphans, ownerOf } from './auxiliaryKeys.ts'
import { SessionEndDelivery } from './delivery.ts'
import type { OnSessionEnd, Reason } from './endEvent.ts'
import { isBounded, SessionLimits } from './limits.ts'
import { applyMetadataUpdate, type Description, parseMetadataUpdate } from './metadata.ts'
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
export type LifecycleMeans = {
  readonly profile: Profile
  readonly sessions: Store
  readonly store: Store
  readonly barrier: Barrier | undefined
  readonly clock: Clock
}

const noLimit = Number.MAX_SAFE_INTEGER
/** Keys scanned for orphans per sweep. */
const orphanScanKeys = 1_000

/** Controls how sessions start, grow, move and end. */
export class Lifecycle {
  private readonly deps: LifecycleMeans
  private readonly limits: SessionLimits
  private readonly ender: SessionEnder
  private readonly sessionTransfer: SessionTransfer
  private readonly delivery: SessionEndDelivery | undefined
  /** Position of the orphan scan. */
  private orphanScanAfter = ''

  constructor(
    deps: LifecycleMeans,
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

  /** Prepares a session for a write: ends it if it is expired and finishes an interrupted transfer. Throws `moved` if it was transferred. */
  current(head: Head, now: Millis): Head | Promise<Head> {
    if (isExpired(head, now)) return this.endExpired(head.key, now)
    // Most sessions have no metadata and cannot have moved.
    return aboutIn(head.derived) === undefined ? head : this.sessionTransfer.resumeOrReject(head, now)
  }

  /** Decides by the limits of the profile which messages to drop. Throws `full` if there is no room. */
  admit(head: Head, incoming: readonly Said[], now: Millis): Admission | Promise<Admission> {
    return this.limits.admit(head, incoming, now)
  }

  /** Commits a write, and evicts other sessions of the scope if it starts one session too many. */
  write<T>(head: Head, now: Millis, commit: () => Promise<T>): Promise<T> {
    return this.limits.write(head, now, commit)
  }

  /** Evicts sessions while the store exceeds its limit. Returns undefined when it does not. */
  relieve(): Promise<void> | undefined {
    return this.limits.evictOverflow()
  }

  /** Ends a session; false if it does not exist, or for `expired`, if it is still alive. The end event is delivered later. */
  async end(key: Key, reason: Reason, now: Millis = this.deps.clock()): Promise<boolean> {
    const isEnded = await this.ender.end(key, reason, now)
    if (isEnded) this.delivery?.notify(key.scope)
    return isEnded
  }

  /** Ends expired sessions and those above the limits, and starts due deliveries. */
  async sweep(now: Millis): Promise<readonly Key[]> {
    const { sessions, profile } = this.deps
    const ended = await this.endAll(await sessions.list({ expiredBy: now, limit: noLimit }), now)
    const existing =
      profile.lifetime.sessions === undefined ? [] : (await sessions.list({ limit: noLimit })).filter(isSession)
    for (const key of crowded(existing, profile.lifetime))
      if (await this.ender.end(key, 'evicted', now)) ended.push(key)
    if (isBounded(sessions)) {
      for (let key = sessions.overflowing(); key !== undefined; key = sessions.overflowing())
        if (await this.ender.end(key, 'evicted', now)) ended.push(key)
      sessions.rest(now)
    }
    await this.eraseOrphans()
    for (const { scope } of ended) this.delivery?.notify(scope)
    await this.delivery?.tick(now)
    return ended
  }

  /** Returns the metadata of a session; undefined if it has none or is expired. */
  async about(key: Key): Promise<About | undefined> {
    const head = await this.deps.sessions.head(key, 0)
    return isExpired(head, this.deps.clock()) ? undefined : aboutIn(head.derived)
  }

  /** Updates the metadata of a session, which is created if necessary. */
  async describe(key: Key, update: Description): Promise<About> {
    const { sessions, profile, barrier, clock } = this.deps
    const { metadata, ...others } = parseMetadataUpdate(key, update)
    const masked =
      metadata === undefined || barrier === undefined
        ? update
        : { ...others, metadata: await barrier.json(key, metadata) }
    for (;;) {
      const at = clock()
      const head = await this.current(await sessions.head(key, 0), at)
      const about = applyMetadataUpdate(aboutIn(head.derived), masked, at)
      const expiresAt = expiry({ ...head, derived: [about] }, profile.lifetime, at)
      const isWritten = await this.write(head, at, () =>
        tryCommit(sessions, { ...head, touchedAt: at, expiresAt }, { put: [about], drop: [] }),
      )
      await this.relieve()
      if (isWritten) return about
    }
  }

  /** Moves a session to another key of its scope. */
  async transfer(from: Key, to: Key): Promise<void> {
    const now = this.deps.clock()
    // An expired session at the target is ended first.
    if (isExpired(await this.deps.sessions.head(to, 0), now)) await this.end(to, 'expired', now)
    await this.sessionTransfer.transfer(from, to, now)
  }

  /** Lists the data to forget with a session: branches and pending end events. */
  async beside(store: Store, key: Key): Promise<readonly { readonly key: Key; readonly only?: Erasure }[]> {
    const auxiliary = (await auxiliaryKeysOf(store, key)).map((auxiliaryKey) => ({ key: auxiliaryKey }))
    // A tenant's own conversation has no end events.
    if (key.id === '') return auxiliary
    // The outbox is included even if empty: erasing from it makes a concurrent `enqueue` for this session retry.
    return [...auxiliary, { key: outboxKey(key.scope), only: { entries: await pendingEntriesOf(store, key) } }]
  }

  /** Number of pending end events whose last attempt failed. */
  get waiting(): number {
    return this.delivery?.failingCount ?? 0
  }

  /** Resolves when no end event is being delivered. */
  async settled(): Promise<void> {
    await this.delivery?.whenIdle()
  }

  /** Waits for deliveries in progress and starts no more. */
  async stop(): Promise<void> {
    await this.delivery?.stop()
  }

  /** Ends an expired session and returns its successor, which may be the target of a transfer by then. */
  private async endExpired(key: Key, now: Millis): Promise<Head> {
    await this.end(key, 'expired', now)
    const head = await this.deps.sessions.head(key, 0)
    return isExpired(head, now) ? head : this.current(head, now)
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
export const lifecycleWith =
  (options: LifecycleOptions = {}) =>
  (deps: LifecycleMeans): Lifecycle =>
    new Lifecycle(deps, options)
