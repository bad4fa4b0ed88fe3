import { measureMessage } from '../context/render.ts'
import { type MessageInput, parseMessage } from '../domain/chat.ts'
import type { Message, Millis } from '../domain/entry.ts'
import { type ErrorCode, MemoryError } from '../domain/error.ts'
import { type Key, scopeKey } from '../domain/key.ts'
import type { Ledger } from '../domain/ledger.ts'
import type { Clock, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { isExpired, planAppend, type SessionChange, type SessionHead } from '../domain/session.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { Upkeep } from '../upkeep/upkeep.ts'
import type { EmbeddingQueue } from './embedding.ts'
import { countKnowledgeUse } from './knowledge.ts'
import type { SecretMasker } from './secretMasker.ts'

export type AppendOptions = {
  /** Makes the call idempotent: repeated with the same id, it stores the messages once and returns the same result. */
  readonly operationId?: string
  /** Epoch in which the messages were asked for; they are refused as `erased` if the session was forgotten since. */
  readonly epoch?: number
  /** Receipt of the context that these messages answer: knowledge shown in it counts as used. */
  readonly answers?: Ledger
  /** Postpones upkeep until the reply that follows at once; default false. */
  readonly replyFollows?: boolean
  /** Conversation of the messages within the session: its first sequence number, or `new` to start one. */
  readonly branch?: number | 'new'
  /** Leaves the next sequence numbers unused, for replies that are still on their way; default 0. */
  readonly reserve?: number
  /** Stores a single message under this reserved sequence number instead of at the end. */
  readonly sequence?: number
}

export type AppendDeps = {
  readonly sessions: Store
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  readonly masker: SecretMasker | undefined
  readonly clock: Clock
  /** Store of the scope's own memory. */
  readonly store: Store
  readonly lifecycle?: Lifecycle | undefined
  readonly embedding?: EmbeddingQueue | undefined
  readonly upkeep?: Upkeep | undefined
}

/** Stored messages, and the epoch they were stored in. */
export type AppendResult = { readonly stored: readonly Message[]; readonly epoch: number }

/**
 * Stores messages at the end of a session, with secrets masked; an expired session begins anew. `current` spares
 * reading the session; it must have been read just now.
 */
export async function appendToSession(
  deps: AppendDeps,
  key: Key,
  messages: readonly MessageInput[],
  options: AppendOptions,
  current?: SessionHead,
): Promise<AppendResult> {
  const { sessions, profile, tokenizer, masker, clock, lifecycle } = deps
  if (!Array.isArray(messages))
    throw new MemoryError('bad-message', 'messages must be a list such as [{ role: "user", content: "Hello" }].', {
      param: 'messages',
    })
  const at = clock()
  const parsed = messages.map((message, index) => parseMessage(message, index, at))
  if (parsed.length === 0) return { stored: [], epoch: 0 }
  const read = current ?? (await sessions.readHead(key, 0))
  // Awaiting only promises saves a microtask on the common path.
  const live = lifecycle?.prepareForWrite(read, at) ?? (isExpired(read, at) ? restartExpired(deps, key, at) : read)
  const head = live instanceof Promise ? await live : live
  const masked = masker?.hasSecrets(parsed)
    ? await Promise.all(parsed.map((message) => masker.maskMessage(key, message)))
    : parsed
  const append = masked.map((message) => measureMessage(tokenizer, message, profile.maxMessageTokens))
  const { operationId, epoch = head.epoch } = options
  const id = operationId && ((await masker?.maskText(key, operationId)) ?? operationId)
  let stored: readonly Message[]
  try {
    const admission = lifecycle?.admit(head, append, at) ?? planAppend(head, append, profile.lifetime, at)
    const { evictedIds, expiresAt } = admission instanceof Promise ? await admission : admission
    const change: SessionChange = { key, at, epoch, append, put: [], drop: evictedIds, expiresAt }
    const commit = () => sessions.commit(id === undefined ? change : { id, ...change })
    stored = await (lifecycle?.write(head, at, commit) ?? commit())
    const eviction = lifecycle?.evictOverflow()
    if (eviction !== undefined) await eviction
  } catch (error) {
    const repeated = hasCode(error, 'full') ? await findOperation(sessions, head, id) : undefined
    if (repeated === undefined) throw error
    return { stored: repeated, epoch }
  }
  deps.embedding?.enqueue(key, epoch, stored)
  deps.upkeep?.notify(key, options.replyFollows ? 'asked' : 'said', stored.at(-1), epoch)
  const shown = options.answers?.knowledge ?? []
  // The messages are stored by now; failing to count usage must not fail the call.
  if (shown.length > 0)
    await countKnowledgeUse(deps.store, scopeKey(key), shown, { session: key.id, at }).catch(() => undefined)
  return { stored, epoch }
}

/** Erases an expired session and returns the head of its successor. */
async function restartExpired({ sessions, masker }: AppendDeps, key: Key, now: Millis): Promise<SessionHead> {
  await sessions.erase(key, { expiredBy: now })
  masker?.drop(key.scope, key.id)
  return sessions.readHead(key, 0)
}

/** Result of an operation that was committed before, if it was. The impossible base of -1 prevents a new commit. */
async function findOperation(
  store: Store,
  { key, epoch, expiresAt, touchedAt }: SessionHead,
  id: string | undefined,
): Promise<readonly Message[] | undefined> {
  if (id === undefined) return undefined
  try {
    return await store.commit({ id, key, at: touchedAt, epoch, base: -1, append: [], put: [], drop: [], expiresAt })
  } catch (error) {
    if (hasCode(error, 'conflict')) return undefined
    throw error
  }
}

const hasCode = (error: unknown, code: ErrorCode): boolean => error instanceof MemoryError && error.code === code
