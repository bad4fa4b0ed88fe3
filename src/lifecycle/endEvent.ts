import type { Message, Millis, Summary } from '../domain/entry.ts'
import { formatKey } from '../domain/key.ts'
import type { SessionHead } from '../domain/session.ts'

/** Reason of an end: lifetime exceeded, evicted to make room, or ended explicitly. */
export type SessionEndReason = 'expired' | 'evicted' | 'ended'

/** Content of a session at its end, with secrets masked. */
export type SessionEnd = {
  readonly messages: readonly Message[]
  readonly summaries: readonly Pick<Summary, 'text' | 'covers' | 'tier'>[]
  readonly createdAt: Millis
  readonly lastAccessed: Millis
  readonly messageCount: number
}

/** Identifies an end. After a crash the same end may be delivered again with the same `id`. */
export type SessionEndMeta = { readonly id: string; readonly reason: SessionEndReason }

/**
 * Called when a session has ended. If it throws, rejects or takes too long, it is called again with increasing delays.
 */
export type OnSessionEnd = (fullId: string, data: SessionEnd, meta: SessionEndMeta) => void | Promise<void>

/** Id of the end of one session lifetime, the same for all processes that detect it. */
export const sessionEndId = ({ key, epoch, startedAt }: SessionHead): string =>
  `end:${formatKey(key)}:${epoch}:${startedAt}`
