import { findMetadata, type Millis } from '../domain/entry.ts'
import { isInternalKey, type Key, outboxKey } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { isExpired, isUserSession, type SessionHead } from '../domain/session.ts'
import type { SecretMasker } from '../memory/secretMasker.ts'
import { tryCommit } from '../upkeep/revise.ts'
import { auxiliaryKeysOf, ownerOf } from './auxiliaryKeys.ts'
import type { SessionEndReason } from './endEvent.ts'
import type { Outbox } from './outbox.ts'

type SessionEnderDeps = {
  readonly sessions: Store
  readonly masker: SecretMasker | undefined
  /** Queue of end events; undefined without a handler. */
  readonly outbox: Outbox | undefined
}

/** A session that is written to concurrently this many times is not ended. */
const maxAttempts = 100

/**
 * Ends sessions. The end event is stored before the session is erased, in the same store: after an interruption there
 * is either an expired session, or its event in the outbox, or both, and the next process continues.
 */
export class SessionEnder {
  private readonly deps: SessionEnderDeps

  constructor(deps: SessionEnderDeps) {
    this.deps = deps
  }

  /**
   * Ends a session with its auxiliary data; false if it does not exist or was used meanwhile. `auxiliary` avoids a
   * lookup for callers that end many sessions.
   */
  async end(key: Key, reason: SessionEndReason, now: Millis, auxiliary?: readonly Key[]): Promise<boolean> {
    let wasExpiredHere = false
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      const head = await this.deps.sessions.readHead(key, 0)
      // A sweep may erase the session as soon as it is expired.
      if (head.revision === 0) return wasExpiredHere
      if (isExpired(head, now)) {
        if (await this.erase(head, reason, now, auxiliary)) return true
      } else if (reason !== 'expired') {
        // Expire it first, so that new messages start another session.
        if (await tryCommit(this.deps.sessions, { ...head, expiresAt: now }, noChanges)) wasExpiredHere = true
        continue
      }
      if (reason === 'expired') return false
    }
    return false
  }

  private async erase(
    head: SessionHead,
    reason: SessionEndReason,
    now: Millis,
    auxiliary?: readonly Key[],
  ): Promise<boolean> {
    const { sessions, masker, outbox } = this.deps
    const { key, epoch } = head
    if (isInternalKey(key)) return this.eraseAuxiliary(head, now)
    const auxiliaryKeys = auxiliary ?? (await auxiliaryKeysOf(sessions, key))
    // No event for a session that was transferred, or that has no messages.
    const hasEvent = isUserSession(head) && head.lastSequence > 0 && findMetadata(head.derived)?.movedTo === undefined
    const eventId = hasEvent ? await outbox?.enqueue(head, reason, now) : undefined
    const erasedIds = await sessions.erase(key, { expiredBy: now })
    if ((await sessions.readHead(key, 0)).epoch === epoch) {
      if (eventId !== undefined) await outbox?.remove(key, eventId)
      return false
    }
    masker?.drop(key.scope, key.id)
    for (const auxiliaryKey of auxiliaryKeys) await sessions.erase(auxiliaryKey)
    // Of several processes that end a session at once, one erases its entries.
    return erasedIds.length > 0 || head.messages + head.derived.length === 0
  }

  /** Erases auxiliary data without an event: never before its session, and an outbox only when it is empty. */
  private async eraseAuxiliary({ key, messages }: SessionHead, now: Millis): Promise<boolean> {
    const { sessions } = this.deps
    const owner = ownerOf(key)
    const isInUse =
      owner === undefined
        ? key.id === outboxKey(key.scope).id && messages > 0
        : (await sessions.readHead(owner, 0)).revision > 0
    if (!isInUse) await sessions.erase(key, { expiredBy: now })
    return false
  }
}

const noChanges = { put: [], drop: [] }
