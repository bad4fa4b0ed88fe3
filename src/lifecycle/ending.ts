import { isSession } from '../domain/admission.ts'
import { aboutIn, type Message, type Millis, type Summary } from '../domain/entry.ts'
import { formatKey, isInner, type Key, outboxKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { type Head, isExpired } from '../domain/session.ts'
import type { Barrier } from '../memory/secretMasker.ts'
import { wrote } from '../upkeep/revise.ts'
import { innerOf, ownerOf } from './inner.ts'
import type { Outbox } from './outbox.ts'

/** Why a session ended: it was over, others needed its room, or somebody said so. */
export type Reason = 'expired' | 'evicted' | 'ended'

/** A session as it was when it ended: secrets are marks in it, as they were kept. */
export type SessionEnd = {
  readonly messages: readonly Message[]
  readonly summaries: readonly Pick<Summary, 'text' | 'covers' | 'tier'>[]
  readonly createdAt: Millis
  readonly lastAccessed: Millis
  readonly messageCount: number
}

/** Which end this is. The same end may be told again after a crash, always with the same `id`. */
export type EndMeta = { readonly id: string; readonly reason: Reason }

/** Hears of a session that ended. When it throws, rejects or takes too long it hears of it again, later and later. */
export type OnSessionEnd = (fullId: string, data: SessionEnd, meta: EndMeta) => void | Promise<void>

type Means = {
  readonly sessions: Store
  readonly barrier: Barrier | undefined
  /** Where ends are kept until they are told; undefined when nobody wants to know. */
  readonly outbox: Outbox | undefined
}

/** What others keep writing to is not ended. */
const mostRounds = 100

/**
 * Ends sessions. What is to be told of the end is kept first, in the same store, then the session goes: whenever this is
 * interrupted, whoever comes next finds either a session that is over, or its end in the outbox, or both.
 */
export class Endings {
  private readonly means: Means

  constructor(means: Means) {
    this.means = means
  }

  /** Ends a session with all that is kept beside it; false if there is none, or it was used meanwhile. `inner` is known to who ends many. */
  async end(key: Key, reason: Reason, now: Millis, inner?: readonly Key[]): Promise<boolean> {
    for (let round = 0; round < mostRounds; round++) {
      const head = await this.means.sessions.head(key, 0)
      if (head.revision === 0) return false
      if (isExpired(head, now)) {
        if (await this.erase(head, reason, now, inner)) return true
      } else if (reason !== 'expired') {
        // From here on it is over for everybody: what is said now begins another one.
        await wrote(this.means.sessions, { ...head, expiresAt: now }, nothing)
        continue
      }
      if (reason === 'expired') return false
    }
    return false
  }

  private async erase(head: Head, reason: Reason, now: Millis, inner?: readonly Key[]): Promise<boolean> {
    const { sessions, barrier, outbox } = this.means
    const { key, epoch } = head
    if (isInner(key)) return this.eraseInner(head, now)
    const beside = inner ?? (await innerOf(sessions, key))
    // What was moved has not ended: it goes on elsewhere. Where nothing was ever said, nothing ends.
    const isTold = isSession(head) && head.last > 0 && aboutIn(head.derived)?.movedTo === undefined
    const told = isTold ? await outbox?.put(head, reason, now) : undefined
    await sessions.erase(key, { expiredBy: now })
    if ((await sessions.head(key, 0)).epoch === epoch) {
      if (told !== undefined) await outbox?.withdraw(key, told)
      return false
    }
    barrier?.drop(key.scope, key.id)
    for (const one of beside) await sessions.erase(one)
    return true
  }

  /** Nobody is told of the engine's own. What is kept beside a session goes with it and never before; what waits to be told stays. */
  private async eraseInner({ key, messages }: Head, now: Millis): Promise<boolean> {
    const { sessions } = this.means
    const owner = ownerOf(key)
    const isWanted =
      owner === undefined
        ? key.id === outboxKey(key.scope).id && messages > 0
        : (await sessions.head(owner, 0)).revision > 0
    if (!isWanted) await sessions.erase(key, { expiredBy: now })
    return false
  }
}

const nothing = { put: [], drop: [] }

/** What names the end of one life of a session, however many find that it is over. */
export const endId = ({ key, epoch, startedAt }: Head): string => `end:${formatKey(key)}:${epoch}:${startedAt}`
