import { weighed } from '../context/render.ts'
import { admit } from '../domain/admission.ts'
import { type Incoming, parseMessage } from '../domain/chat.ts'
import type { Message, Millis } from '../domain/entry.ts'
import { type ErrorCode, MemoryError } from '../domain/error.ts'
import { type Key, scopeKey } from '../domain/key.ts'
import type { Ledger } from '../domain/ledger.ts'
import type { Clock, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import { type Change, type Head, isExpired } from '../domain/session.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { Upkeep } from '../upkeep/upkeep.ts'
import type { Embedding } from './embedding.ts'
import { use } from './remembering.ts'
import type { Barrier } from './secrets.ts'

export type AppendOptions = {
  readonly operationId?: string
  readonly epoch?: number
  /** The receipt of the context that these messages answer: knowledge that was shown in it counts as used. */
  readonly answers?: Ledger
  /** Whether a reply follows at once: upkeep that nobody waits for then comes after it. */
  readonly replyFollows?: boolean
}

/** What appending takes. */
export type Appending = {
  readonly sessions: Store
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  readonly barrier: Barrier | undefined
  readonly clock: Clock
  /** Where the memory of scopes lives. */
  readonly store: Store
  readonly life?: Lifecycle | undefined
  /** Those who hear of what was stored. */
  readonly vectors?: Embedding | undefined
  readonly keeping?: Upkeep | undefined
}

/** What was stored, and in which epoch. */
export type Appended = { readonly stored: readonly Message[]; readonly epoch: number }

/**
 * Stores messages at the end of a session, without their secrets; one that is over begins anew with them. Who has just read
 * the session, and has waited for nothing since, tells it as `read`.
 */
export async function appended(
  means: Appending,
  key: Key,
  messages: readonly Incoming[],
  options: AppendOptions,
  read?: Head,
): Promise<Appended> {
  const { sessions, profile, tokenizer, barrier, clock, life } = means
  if (!Array.isArray(messages))
    throw new MemoryError('bad-message', 'messages must be a list such as [{ role: "user", content: "Hello" }].', {
      param: 'messages',
    })
  const at = clock()
  const parsed = messages.map((message, place) => parseMessage(message, place, at))
  if (parsed.length === 0) return { stored: [], epoch: 0 }
  const known = read ?? (await sessions.head(key, 0))
  // Nobody waits for what is at hand: most sessions are as they were read, and their size is known.
  const now = life?.current(known, at) ?? (isExpired(known, at) ? renewed(means, key, at) : known)
  const head = now instanceof Promise ? await now : now
  const safe = barrier?.finds(parsed) ? await Promise.all(parsed.map((one) => barrier.masked(key, one))) : parsed
  const append = safe.map((one) => weighed(tokenizer, one, profile.cap))
  const { operationId, epoch = head.epoch } = options
  const id = operationId && ((await barrier?.text(key, operationId)) ?? operationId)
  let stored: readonly Message[]
  try {
    const admission = life?.admit(head, append, at) ?? admit(head, append, profile.lifetime, at)
    const { drop, expiresAt } = admission instanceof Promise ? await admission : admission
    const change: Change = { key, at, epoch, append, put: [], drop, expiresAt }
    const commit = () => sessions.commit(id === undefined ? change : { id, ...change })
    stored = await (life?.write(head, at, commit) ?? commit())
    const relief = life?.relieve()
    if (relief !== undefined) await relief
  } catch (error) {
    const before = hasCode(error, 'full') ? await answered(sessions, head, id) : undefined
    if (before === undefined) throw error
    return { stored: before, epoch }
  }
  means.vectors?.heard(key, epoch, stored)
  means.keeping?.heard(key, options.replyFollows ? 'asked' : 'said', stored.at(-1), epoch)
  const shown = options.answers?.knowledge ?? []
  // What was said is stored by now: whether what it was told could be counted as used changes nothing of that.
  if (shown.length > 0) await use(means.store, scopeKey(key), shown, { session: key.id, at }).catch(() => undefined)
  return { stored, epoch }
}

/** A session after the one that was over is gone, with all that is known of it. */
async function renewed({ sessions, barrier }: Appending, key: Key, now: Millis): Promise<Head> {
  await sessions.erase(key, { expiredBy: now })
  barrier?.drop(key.scope, key.id)
  return sessions.head(key, 0)
}

/** What an operation was answered when it was done, if it was: no base is ever below zero, so nothing new is done here. */
async function answered(
  store: Store,
  { key, epoch, expiresAt, touchedAt }: Head,
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
