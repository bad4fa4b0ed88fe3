import { type Admission, crowded, expiry, isSession } from '../domain/admission.ts'
import { type About, aboutIn, type Millis, type Said } from '../domain/entry.ts'
import { type Key, outboxKey, type Scope } from '../domain/key.ts'
import type { Clock, Erasure, Store } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { type Head, isExpired } from '../domain/session.ts'
import type { Barrier } from '../memory/secretMasker.ts'
import { wrote } from '../upkeep/revise.ts'
import { type Description, described, parseDescription } from './about.ts'
import { Deliveries } from './deliveries.ts'
import { Endings, type OnSessionEnd, type Reason } from './ending.ts'
import { innerOf, orphansAfter, ownerOf } from './inner.ts'
import { isBounded, Limits } from './limits.ts'
import { endsOf, Outbox } from './outbox.ts'
import { Transfer } from './transfer.ts'

export type LifecycleOptions = {
  /** Hears of every session that ends, once. */
  readonly onSessionEnd?: OnSessionEnd | undefined
  /** A signal that is given after so much time: for tests. */
  readonly expire?: (after: Millis) => AbortSignal
}

/** What a lifecycle needs of a memory. */
export type LifecycleMeans = {
  readonly profile: Profile
  readonly sessions: Store
  readonly store: Store
  readonly barrier: Barrier | undefined
  readonly clock: Clock
}

const everything = Number.MAX_SAFE_INTEGER
/** So many keys are looked at with each sweep for what a crash has left behind. */
const lookedAt = 1_000

/** How sessions begin, grow, move and end. */
export class Lifecycle {
  private readonly means: LifecycleMeans
  private readonly limits: Limits
  private readonly endings: Endings
  private readonly moving: Transfer
  private readonly deliveries: Deliveries | undefined
  /** How far it was looked for what a crash has left behind. */
  private looked = ''

  constructor(
    means: LifecycleMeans,
    { onSessionEnd, expire = (after) => AbortSignal.timeout(after) }: LifecycleOptions,
  ) {
    const { sessions, profile, clock } = means
    this.means = means
    const outbox = onSessionEnd && new Outbox(sessions)
    this.deliveries = outbox && new Deliveries({ outbox, onSessionEnd, durability: sessions.durability, clock, expire })
    this.endings = new Endings({ ...means, outbox })
    this.limits = new Limits({ sessions, lifetime: profile.lifetime, evict: (key) => this.end(key, 'evicted') })
    this.moving = new Transfer(means)
  }

  /** A session that was just read, for somebody who is about to write to it. One that is over ends first; one that was moved is refused. */
  current(head: Head, now: Millis): Head | Promise<Head> {
    if (isExpired(head, now)) return this.renewed(head.key, now)
    // Nothing is said about most sessions, nor that they were moved.
    return aboutIn(head.derived) === undefined ? head : this.moving.settled(head, now)
  }

  /** Decides how a session takes in new messages, by the limits of its profile. */
  admit(head: Head, incoming: readonly Said[], now: Millis): Admission | Promise<Admission> {
    return this.limits.admit(head, incoming, now)
  }

  /** Writes to a session that was read before, and ends others of its scope that have to give way to it. */
  write<T>(head: Head, now: Millis, commit: () => Promise<T>): Promise<T> {
    return this.limits.write(head, now, commit)
  }

  /** Ends sessions while all of them take too much, as they may after each write; nothing, if they do not. */
  relieve(): Promise<void> | undefined {
    return this.limits.relieve()
  }

  /** Ends a session; false if there is none, or if it was to be over and is not. Whoever wants to hear of it does so later. */
  async end(key: Key, reason: Reason, now: Millis = this.means.clock()): Promise<boolean> {
    const isEnded = await this.endings.end(key, reason, now)
    if (isEnded) this.deliveries?.heard(key.scope)
    return isEnded
  }

  /** Ends what is over and what there is too much of, and tells of ends that are due. */
  async sweep(now: Millis): Promise<readonly Key[]> {
    const { sessions, profile } = this.means
    const ended = await this.endAll(await sessions.list({ expiredBy: now, limit: everything }), now)
    const many =
      profile.lifetime.sessions === undefined ? [] : (await sessions.list({ limit: everything })).filter(isSession)
    for (const key of crowded(many, profile.lifetime)) if (await this.endings.end(key, 'evicted', now)) ended.push(key)
    if (isBounded(sessions)) {
      for (let key = sessions.overflowing(); key !== undefined; key = sessions.overflowing())
        if (await this.endings.end(key, 'evicted', now)) ended.push(key)
      sessions.rest(now)
    }
    await this.tidy()
    for (const { scope } of ended) this.deliveries?.heard(scope)
    await this.deliveries?.tick(now)
    return ended
  }

  async about(key: Key): Promise<About | undefined> {
    const head = await this.means.sessions.head(key, 0)
    return isExpired(head, this.means.clock()) ? undefined : aboutIn(head.derived)
  }

  /** Says something about a session, which begins with it if need be. */
  async describe(key: Key, given: Description): Promise<About> {
    const { sessions, profile, barrier, clock } = this.means
    const { metadata, ...others } = parseDescription(key, given)
    const news =
      metadata === undefined || barrier === undefined
        ? given
        : { ...others, metadata: await barrier.json(key, metadata) }
    for (;;) {
      const at = clock()
      const head = await this.current(await sessions.head(key, 0), at)
      const about = described(aboutIn(head.derived), news, at)
      const expiresAt = expiry({ ...head, derived: [about] }, profile.lifetime, at)
      const isWritten = await this.write(head, at, () =>
        wrote(sessions, { ...head, touchedAt: at, expiresAt }, { put: [about], drop: [] }),
      )
      await this.relieve()
      if (isWritten) return about
    }
  }

  /** Lets a session go on under another key of its scope. */
  async transfer(from: Key, to: Key): Promise<void> {
    const now = this.means.clock()
    // What is over there makes room.
    if (isExpired(await this.means.sessions.head(to, 0), now)) await this.end(to, 'expired', now)
    await this.moving.transfer(from, to, now)
  }

  /** What is kept beside a session, to be forgotten with it: its branches, its receipts, what nobody was told yet of its end. */
  async beside(store: Store, key: Key): Promise<readonly { readonly key: Key; readonly only?: Erasure }[]> {
    const inner = (await innerOf(store, key)).map((one) => ({ key: one }))
    // Nobody is told of the end of a tenant's own conversation.
    if (key.id === '') return inner
    // Also if nothing waits: who is about to keep the end of this session must look again.
    return [...inner, { key: outboxKey(key.scope), only: { entries: await endsOf(store, key) } }]
  }

  /** How many ends wait although it was tried to tell of them. */
  get waiting(): number {
    return this.deliveries?.waiting ?? 0
  }

  /** Resolves when nobody is being told of an end any more. */
  async settled(): Promise<void> {
    await this.deliveries?.settled()
  }

  async stop(): Promise<void> {
    await this.deliveries?.stop()
  }

  /** A session after the one that was over has ended; by then the key may have been given to one that moves there. */
  private async renewed(key: Key, now: Millis): Promise<Head> {
    await this.end(key, 'expired', now)
    const head = await this.means.sessions.head(key, 0)
    return isExpired(head, now) ? head : this.current(head, now)
  }

  /** Ends sessions that are over. What is kept beside them is looked up once for each scope. */
  private async endAll(over: readonly { readonly key: Key }[], now: Millis): Promise<Key[]> {
    const beside = new Map<Scope, Map<string, Key[]>>()
    const ended: Key[] = []
    for (const { key } of over) {
      const ofScope = beside.get(key.scope) ?? (await this.innerIn(key.scope))
      beside.set(key.scope, ofScope)
      if (await this.endings.end(key, 'expired', now, ofScope.get(key.id) ?? [])) ended.push(key)
    }
    return ended
  }

  /** What the engine keeps beside the sessions of a scope, by the id of the session. */
  private async innerIn(scope: Scope): Promise<Map<string, Key[]>> {
    const listed = await this.means.sessions.list({ scope, limit: everything })
    const bySession = new Map<string, Key[]>()
    for (const { key } of listed) {
      const session = ownerOf(key)?.id
      if (session !== undefined) bySession.set(session, [...(bySession.get(session) ?? []), key])
    }
    return bySession
  }

  /** Some of what a crash may have left behind goes with each sweep, which stays short however many sessions there are. What is in RAM has no crash behind it. */
  private async tidy(): Promise<void> {
    const { sessions } = this.means
    if (sessions.durability === 'ram') return
    const { found, next = '' } = await orphansAfter(sessions, this.looked, lookedAt)
    for (const key of found) await sessions.erase(key)
    this.looked = next
  }
}

/**
 * Limits on sessions, their ends and transfers, for a memory.
 *
 * @example
 * const memory = await openMemory({ lifecycle: lifecycleWith({ onSessionEnd: (id, { messageCount }) => console.log(id, messageCount) }) })
 */
export const lifecycleWith =
  (options: LifecycleOptions = {}) =>
  (means: LifecycleMeans): Lifecycle =>
    new Lifecycle(means, options)
