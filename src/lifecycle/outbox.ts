import type { DerivedEntry, Message, Millis, NewMessage, SessionMetadata } from '../domain/entry.ts'
import { hasErrorCode, MemoryError } from '../domain/error.ts'
import { formatKey, type Key, outboxKey, parseKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import { type Gap, isInRanges, type SessionHead } from '../domain/session.ts'
import { revise } from '../upkeep/revise.ts'
import { type SessionEnd, type SessionEndReason, sessionEndId } from './endEvent.ts'

/** A pending end event: its location in the outbox, the attempts so far and the time of the next one. */
export type PendingEnd = {
  readonly scope: Scope
  readonly epoch: number
  readonly message: string
  readonly attempts: number
  readonly nextAttemptAt: Millis
}

/** Payload of an end event. `epoch` is the session lifetime that ended. */
export type SessionEndEvent = {
  readonly id: string
  readonly key: string
  readonly epoch: number
  readonly reason: SessionEndReason
  readonly data: SessionEnd
}

const noLimit = Number.MAX_SAFE_INTEGER
/** An outbox expires after it was unused for this long. */
const emptyOutboxLifetimeMs = 86_400_000
const maxAttempts = 1_000

/**
 * Stores pending end events next to the sessions. Each event is a message without content and with one tool call, so it
 * is neither searched nor embedded.
 */
export class Outbox {
  private readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /**
   * Stores the end event of a session once, even if several processes detect the end. Resolves to its message id, or to
   * undefined if the session is gone. Throws `conflict` after 1,000 attempts.
   */
  async enqueue(session: SessionHead, reason: SessionEndReason, now: Millis): Promise<string | undefined> {
    let id = sessionEndId(session)
    for (let attempt = 0; attempt < maxAttempts; attempt++) {
      // Read the outbox first: forgetting the session changes its revision, and the commit below then fails.
      const outbox = await this.open(session.key.scope, now)
      const message = toMessage(await this.buildEvent(session, reason), now)
      if ((await this.store.readHead(session.key, 0)).epoch !== session.epoch) return undefined
      try {
        const [stored] = await this.store.commit({
          ...emptyChange(outbox, now),
          id,
          base: outbox.revision,
          append: [message],
        })
        if (stored !== undefined) return stored.id
        // An earlier event with this id was removed because the session had not ended after all.
        id = `${sessionEndId(session)}:${session.revision}`
      } catch (error) {
        if (!hasErrorCode(error, 'conflict', 'erased')) throw error
      }
    }
    throw new MemoryError('conflict', `Too many concurrent writes to the outbox of ${session.key.scope}. Try again.`)
  }

  /** Removes the event of a session that has not ended after all. */
  async remove({ scope }: Key, message: string): Promise<void> {
    await this.store.erase(outboxKey(scope), { entries: [message] })
  }

  /** Lists the pending events of a scope. */
  async pending(scope: Scope): Promise<readonly PendingEnd[]> {
    const { epoch, lastSequence, gaps, derived } = await this.store.readHead(outboxKey(scope), 0)
    const attempts = new Map(derived.map((entry) => [entry.id, entry]))
    return presentSequences(gaps, lastSequence).map((sequence) => {
      const message = `m${sequence}`
      return { scope, epoch, message, ...readAttempts(attempts.get(attemptsId(message))) }
    })
  }

  /**
   * Reads an event; undefined if it was delivered or forgotten, or if the session still exists and may be used again.
   */
  async read({ scope, message }: PendingEnd): Promise<SessionEndEvent | undefined> {
    const sequence = Number(message.slice(1))
    const [stored] = await this.store.readMessages(outboxKey(scope), {
      after: sequence - 1,
      before: sequence + 1,
      limit: 1,
    })
    const event = stored && fromMessage(stored)
    if (event === undefined) return undefined
    const { epoch, revision } = await this.store.readHead(parseKey(event.key), 0)
    return revision > 0 && epoch === event.epoch ? undefined : event
  }

  /**
   * Counts an attempt to deliver an event before it is made. False if another process has counted one since `pending`
   * was read, or if the event is gone.
   */
  async claim(pending: PendingEnd, nextAttemptAt: Millis, now: Millis): Promise<boolean> {
    const { scope, message, attempts } = pending
    const claimed = await revise(this.store, outboxKey(scope), (outbox) => {
      const sequence = Number(message.slice(1))
      const isGone = outbox.epoch !== pending.epoch || isInRanges(outbox.gaps, sequence)
      if (isGone || findAttempts(outbox, message).attempts !== attempts) return undefined
      return { put: [toAttemptsEntry({ ...pending, attempts: attempts + 1, nextAttemptAt }, now)], drop: [] }
    })
    return claimed !== undefined
  }

  /** Stores the number of attempts and the time of the next one. */
  async reschedule(pending: PendingEnd, now: Millis): Promise<void> {
    const { scope, epoch } = pending
    const change = emptyChange({ key: outboxKey(scope), epoch }, now)
    await this.store.commit({ ...change, put: [toAttemptsEntry(pending, now)] })
  }

  /** Deletes a delivered event. */
  async acknowledge({ scope, message }: PendingEnd): Promise<void> {
    await this.store.erase(outboxKey(scope), { entries: [message, attemptsId(message)] })
  }

  /** Lists the scopes with pending events, for a process that has just started. */
  async *scopes(): AsyncIterable<Scope> {
    for (let after = ''; ; ) {
      const [next] = await this.store.list({ after, limit: 1 })
      if (next === undefined) return
      const { scope } = next.key
      if ((await this.store.readHead(outboxKey(scope), 0)).messages > 0) yield scope
      // `~` is not allowed in keys and sorts after all of them.
      after = `${scope}:~`
    }
  }

  /** Returns the outbox of a scope; creates it if necessary, because a commit needs a revision to check. */
  private async open(scope: Scope, now: Millis): Promise<SessionHead> {
    const outbox = await this.store.readHead(outboxKey(scope), 0)
    if (outbox.revision > 0) return outbox
    await this.store.commit(emptyChange(outbox, now))
    return this.store.readHead(outbox.key, 0)
  }

  private async buildEvent(session: SessionHead, reason: SessionEndReason): Promise<SessionEndEvent> {
    const { key, epoch, startedAt, touchedAt, derived } = session
    const messages = await this.store.readMessages(key, { limit: noLimit })
    const summaries = derived.flatMap((entry) =>
      entry.kind === 'summary' ? [{ text: entry.text, covers: entry.covers, tier: entry.tier }] : [],
    )
    const data = { messages, summaries, createdAt: startedAt, lastAccessed: touchedAt, messageCount: messages.length }
    return { id: sessionEndId(session), key: formatKey(key), epoch, reason, data }
  }
}

/** Lists the outbox entries that belong to a session. */
export async function pendingEntriesOf(store: Store, key: Key): Promise<readonly string[]> {
  const pending = await store.readMessages(outboxKey(key.scope), { limit: noLimit })
  const own = pending.filter(({ toolCalls: [call] = [] }) => call?.id.startsWith(`end:${formatKey(key)}:`))
  return own.flatMap(({ id }) => [id, attemptsId(id)])
}

const emptyChange = ({ key, epoch }: Pick<SessionHead, 'key' | 'epoch'>, now: Millis) => ({
  key,
  at: now,
  epoch,
  append: [],
  put: [],
  drop: [],
  expiresAt: now + emptyOutboxLifetimeMs,
})

const toMessage = ({ id, ...event }: SessionEndEvent, at: Millis): NewMessage => ({
  at,
  role: 'assistant',
  content: '',
  toolCalls: [{ id, name: 'session.ended', arguments: JSON.stringify(event) }],
  tokens: 0,
  lineTokens: 0,
  tokenizer: '',
  weight: 0,
})

function fromMessage({ toolCalls: [call] = [] }: Message): SessionEndEvent | undefined {
  return call && { id: call.id, ...(JSON.parse(call.arguments) as Omit<SessionEndEvent, 'id'>) }
}

const attemptsId = (message: string): string => `${message}:attempts`

type Attempts = Pick<PendingEnd, 'attempts' | 'nextAttemptAt'>

const readAttempts = (entry: DerivedEntry | undefined): Attempts =>
  entry?.kind === 'about' ? (entry.metadata as Attempts) : { attempts: 0, nextAttemptAt: 0 }

const findAttempts = ({ derived }: SessionHead, message: string): Attempts =>
  readAttempts(derived.find(({ id }) => id === attemptsId(message)))

const toAttemptsEntry = ({ message, attempts, nextAttemptAt }: PendingEnd, at: Millis): SessionMetadata => ({
  ...{ kind: 'about', id: attemptsId(message), at, sources: [] },
  metadata: { attempts, nextAttemptAt },
})

/** Lists the sequence numbers of existing messages. */
function presentSequences(gaps: readonly Gap[], last: number): readonly number[] {
  const found: number[] = []
  let next = 1
  for (const [from, to] of [...gaps, [last + 1, last + 1] as const]) {
    for (; next < from; next++) found.push(next)
    next = to + 1
  }
  return found
}
