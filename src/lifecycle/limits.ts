import { type Admission, admit, full, isSession } from '../domain/admission.ts'
import { type Message, type Millis, messageId, type Said } from '../domain/entry.ts'
import { formatKey, type Key, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Lifetime } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'
import type { Bounded, Counted } from '../stores/ram/attic.ts'
import { bytesOf } from '../text/utf8.ts'

type Means = {
  readonly sessions: Store
  readonly lifetime: Lifetime
  /** Ends a session that gives way to others. */
  readonly evict: (key: Key) => Promise<unknown>
}

/** What a session holds, in the state that these numbers tell: they differ whenever it may hold other messages. */
type Size = { epoch: number; last: number; messages: number; bytes: number }

/** So many sessions are known by their size. */
const mostKnown = 100_000

/** Keeps sessions within the limits of their profile: how large one grows, how many a scope has, what all of them take. */
export class Limits {
  private readonly means: Means
  private readonly sizes = new Map<string, Size>()
  /** Sessions of a scope begin one after the other, so that they can be counted. */
  private readonly beginning = new Map<Scope, Promise<unknown>>()

  constructor(means: Means) {
    this.means = means
  }

  /** Decides how a session takes in new messages: the oldest but the first give way, or it is full. */
  admit(head: Head, incoming: readonly Said[], now: Millis): Admission | Promise<Admission> {
    const { lifetime } = this.means
    if (lifetime.bytes === undefined) return admit(head, incoming, lifetime, now)
    const size = this.sizes.get(formatKey(head.key))
    const bytes = sum(incoming)
    if (size === undefined || !isOf(size, head) || size.bytes + bytes > lifetime.bytes)
      return this.measured(head, incoming, now)
    const admission = admit(head, incoming, lifetime, now)
    if (admission.drop.length > 0) return this.measured(head, incoming, now)
    size.last += incoming.length
    size.messages += incoming.length
    size.bytes += bytes
    return admission
  }

  /** The same for a session that must be read for it: because its size is not known, or something gives way. */
  private async measured(head: Head, incoming: readonly Said[], now: Millis): Promise<Admission> {
    const { lifetime } = this.means
    const size = this.sizes.get(formatKey(head.key))
    const held = size !== undefined && isOf(size, head) ? size.bytes : await this.bytesIn(head)
    const bytes = held + sum(incoming)
    const over = bytes - (lifetime.bytes as number)
    const admission = admit(head, incoming, lifetime, now, over <= 0 ? 0 : await this.giveWay(head, over))
    const { length: gone } = admission.drop
    this.know(head, incoming, gone, gone === 0 ? bytes : bytes - (await this.bytesGone(head, incoming, admission.drop)))
    return admission
  }

  /** Writes to a session, and sees to it that its scope has not too many of them then. */
  write<T>({ key, revision }: Head, now: Millis, commit: () => Promise<T>): Promise<T> {
    const isOneMore = revision === 0 && isSession({ key }) && this.means.lifetime.sessionsPerScope !== undefined
    return isOneMore ? this.inTurn(key.scope, () => this.begin(key, now, commit)) : commit()
  }

  /** Ends sessions while all of them take too much; nothing, if they do not. */
  relieve(): Promise<void> | undefined {
    const { sessions } = this.means
    return isBounded(sessions) && sessions.overflowing() !== undefined ? this.shrink(sessions) : undefined
  }

  private async shrink(sessions: Bounded): Promise<void> {
    for (let key = sessions.overflowing(); key !== undefined; key = sessions.overflowing()) await this.means.evict(key)
  }

  private async begin<T>(key: Key, now: Millis, commit: () => Promise<T>): Promise<T> {
    const { sessions, lifetime, evict } = this.means
    const most = lifetime.sessionsPerScope as number
    if (isCounted(sessions) && sessions.sessionsIn(key.scope) < most) return commit()
    const others = await this.others(key, now)
    if (lifetime.whenFull === 'refuse' && others.length >= most) {
      throw full(
        `${key.scope} has ${others.length} sessions and its profile allows ${most}. End one of them, or raise`,
        'sessionsPerScope',
      )
    }
    const written = await commit()
    for (const { key: unused } of others.slice(0, Math.max(0, others.length + 1 - most))) await evict(unused)
    return written
  }

  /** The other sessions of a scope, those that nobody has used for longest first. */
  private async others({ scope, id }: Key, now: Millis) {
    const listed = await this.means.sessions.list({ scope, limit: Number.MAX_SAFE_INTEGER })
    const alive = listed.filter((one) => isSession(one) && one.key.id !== id && one.expiresAt > now)
    return alive.sort((a, b) => a.touchedAt - b.touchedAt)
  }

  private inTurn<T>(scope: Scope, work: () => Promise<T>): Promise<T> {
    const turn = (this.beginning.get(scope) ?? Promise.resolve()).then(work, work)
    this.beginning.set(scope, turn)
    const end = (): void => {
      if (this.beginning.get(scope) === turn) this.beginning.delete(scope)
    }
    turn.then(end, end)
    return turn
  }

  /** How many of the oldest messages but the first must go so that this many bytes are free. */
  private async giveWay({ key, first }: Head, bytes: number): Promise<number> {
    const { lifetime, sessions } = this.means
    if (bytes <= 0) return 0
    let [many, left] = [0, bytes]
    for (let after = first?.sequence ?? 0; left > 0 && lifetime.whenFull === 'evict'; ) {
      const page = await sessions.page(key, { after, limit: 100 })
      for (const message of page) if (left > 0) [many, left] = [many + 1, left - bytesOf(message)]
      const last = page.at(-1)
      if (last === undefined) break
      after = last.sequence
    }
    if (left <= 0) return many
    throw full(
      `Session ${formatKey(key)} would hold more than the ${lifetime.bytes} bytes its profile allows. Start a new session, say less, or raise`,
      'bytes',
    )
  }

  /** What those take that give way; of more than fit at once, some that were never there. */
  private async bytesGone(
    { key, first, last }: Head,
    incoming: readonly Said[],
    drop: readonly string[],
  ): Promise<number> {
    const oldest = await this.means.sessions.page(key, { after: first?.sequence ?? 0, limit: drop.length })
    return sum(oldest) + sum(incoming.filter((_, place) => drop.includes(messageId(last + 1 + place))))
  }

  /** How many bytes were said in a session: counted once, and followed from there. */
  private async bytesIn({ key, messages }: Head): Promise<number> {
    return messages === 0 ? 0 : sum(await this.means.sessions.page(key, { limit: Number.MAX_SAFE_INTEGER }))
  }

  /** Follows the size of a session that takes in messages, while so many others are gone. */
  private know({ key, epoch, last, messages }: Head, { length }: readonly Said[], gone: number, bytes: number): void {
    if (this.sizes.size >= mostKnown) this.sizes.clear()
    this.sizes.set(formatKey(key), { epoch, last: last + length, messages: messages + length - gone, bytes })
  }
}

function sum(messages: readonly (Said | Message)[]): number {
  let bytes = 0
  for (const message of messages) bytes += bytesOf(message)
  return bytes
}

/** Whether a session still holds the messages that were measured. */
const isOf = (size: Size, head: Head): boolean =>
  size.last === head.last && size.messages === head.messages && size.epoch === head.epoch

export const isBounded = (store: Store): store is Store & Bounded => 'overflowing' in store
const isCounted = (store: Store): store is Store & Counted => 'sessionsIn' in store
