import { measureInSteps, measureMessage } from '../context/measureMessage.ts'
import { type MessageInput, messageError, type ParsedMessage } from '../domain/chat.ts'
import type { OptionChecks } from '../domain/checkOptions.ts'
import { isExternalId, type Message, type Millis, type NewMessage } from '../domain/entry.ts'
import {
  anyObject,
  anyText,
  anyValue,
  checkOption,
  hasErrorCode,
  integerAtLeast,
  MemoryError,
  trueOrFalse,
} from '../domain/error.ts'
import { formatKey, type Key, scopeKey } from '../domain/key.ts'
import type { KeyedMutex } from '../domain/keyed.ts'
import type { Ledger } from '../domain/ledger.ts'
import type { Clock, Store, Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import {
  addGapRange,
  isExpired,
  isInRanges,
  planAppend,
  type SessionChange,
  type SessionHead,
} from '../domain/session.ts'
import { estimateSize } from '../domain/stringify.ts'
import { type Pause, runInSlices, type Work } from '../domain/work.ts'
import { parseInput } from '../formats/parseInput.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { Upkeep } from '../upkeep/upkeep.ts'
import type { EmbeddingQueue } from './embedding.ts'
import { countKnowledgeUse } from './knowledge.ts'
import type { SecretMasker } from './secretMasker.ts'

/** Options of `append`. */
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
  /** Leaves that many sequence numbers before the messages unused, for replies still on their way; default 0. */
  readonly reserve?: number
  /**
   * Stores a single message under this sequence number if it is reserved or the next one; otherwise at the end.
   */
  readonly sequence?: number
}

export const appendOptionChecks: OptionChecks<AppendOptions> = {
  operationId: anyText,
  epoch: integerAtLeast(0),
  answers: anyObject,
  replyFollows: trueOrFalse,
  // The place is checked together with the messages.
  branch: anyValue,
  reserve: anyValue,
  sequence: anyValue,
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
  /** Lets other work run between two steps on long messages. */
  readonly pause?: Pause | undefined
  /** Sessions to which long messages are being appended. */
  readonly longAppends?: KeyedMutex | undefined
}

/** Options of an append that depends on the state of the session. */
export type InternalAppendOptions = AppendOptions & {
  /** Rejects with `conflict` if the session has changed since `current` was read; default false. */
  readonly ifUnchanged?: boolean
}

/** Stored messages, and the epoch they were stored in. */
export type AppendResult = { readonly stored: readonly Message[]; readonly epoch: number }

/** Messages whose place depends on the head are tried again this often when others write to the session meanwhile. */
const maxPlaceAttempts = 100

/**
 * Stores messages at the end of a session or in a reserved slot, with secrets masked; an expired session begins anew.
 * `current` spares reading the session; it must have been read just now.
 */
export async function appendToSession(
  deps: AppendDeps,
  key: Key,
  messages: readonly MessageInput[],
  options: InternalAppendOptions,
  current?: SessionHead,
): Promise<AppendResult> {
  const at = deps.clock()
  const parsed = parseMessages(messages, at)
  if (parsed.length === 0) return { stored: [], epoch: 0 }
  checkPlace(options, parsed.length)
  const { longAppends } = deps
  const name = formatKey(key)
  // Later messages wait for those whose preparation takes several turns of the event loop.
  if (longAppends === undefined || !(isLong(parsed) || longAppends.isHeld(name)))
    return appendParsed(deps, key, parsed, { at, ...options }, current)
  return longAppends.run(name, async () => {
    // Checking the payloads has taken a turn of its own.
    await deps.pause?.()
    return appendParsed(deps, key, parsed, { at, ...options }, current)
  })
}

/**
 * Validates messages from a caller. The id of one becomes the external id of its first message: a message with several
 * tool results is stored as one for each.
 */
export function parseMessages(messages: readonly MessageInput[], at: Millis): readonly ParsedMessage[] {
  if (!Array.isArray(messages))
    throw new MemoryError('bad-message', 'messages must be a list such as [{ role: "user", content: "Hello" }].', {
      param: 'messages',
    })
  return messages.flatMap((message: MessageInput, index) => {
    const parsed = parseInput(message, index, at)
    const { id: externalId } = message
    // Some SDKs leave the id of a new message empty, and some programs number their messages.
    if (typeof externalId !== 'string' || externalId === '') return parsed
    if (!isExternalId(externalId))
      throw messageError(index, '.id', 'must be a text of 1 to 256 characters without U+0000')
    return parsed.map((one, position) => (position === 0 ? { ...one, externalId } : one))
  })
}

async function appendParsed(
  deps: AppendDeps,
  key: Key,
  parsed: readonly ParsedMessage[],
  options: InternalAppendOptions & { readonly at: Millis },
  current: SessionHead | undefined,
): Promise<AppendResult> {
  const { sessions, profile, tokenizer, masker } = deps
  const { at } = options
  const live = prepareHead(deps, current ?? (await sessions.readHead(key, 0)), at)
  // Awaiting only promises saves a microtask on the common path.
  const head = live instanceof Promise ? await live : live
  if (head.revision === 0) masker?.checkKey(key)
  masker?.checkExternalIds(parsed)
  const masking = masker?.maskMessages(key, parsed) ?? parsed
  const masked = masking instanceof Promise ? await masking : masking
  const append =
    deps.pause !== undefined && isLong(parsed)
      ? await runInSlices(measureMessages(deps, masked), deps.pause)
      : masked.map((message) => measureMessage(tokenizer, message, profile.maxMessageTokens))
  const { operationId, epoch = head.epoch } = options
  const id = operationId && ((await masker?.maskText(key, operationId)) ?? operationId)
  let stored: readonly Message[]
  try {
    stored = await commitInPlace(deps, head, { id, at, epoch, append }, options)
    const eviction = deps.lifecycle?.evictOverflow()
    if (eviction !== undefined) await eviction
  } catch (error) {
    const repeated = hasErrorCode(error, 'full') ? await findOperation(sessions, head, id) : undefined
    if (repeated === undefined) throw error
    return { stored: repeated, epoch }
  }
  deps.embedding?.enqueue(key, epoch, stored)
  const reminders = deps.upkeep?.storeReminders(key, epoch, stored)
  if (reminders !== undefined) await reminders
  deps.upkeep?.notify(key, options.replyFollows ? 'asked' : 'said', stored.at(-1), epoch)
  const shown = options.answers?.knowledge ?? []
  // The messages are stored by now; failing to count usage must not fail the call.
  if (shown.length > 0)
    await countKnowledgeUse(deps.store, scopeKey(key), shown, { session: key.id, at }).catch(() => undefined)
  return { stored, epoch }
}

/** Characters of messages that take a noticeable part of the time in which other requests may wait. */
const longCharacters = 65_536
/** Characters that take as long as a message beside its text. */
const messageCharacters = 300
/** Counting is faster than the work that slices are made for. */
const countingSpeed = 8

const isLong = (messages: readonly ParsedMessage[]): boolean => {
  let size = 0
  for (const message of messages) {
    size += messageSize(message)
    if (size > longCharacters) return true
  }
  return false
}

const messageSize = ({ content, name, toolCallId, toolCalls, payload }: ParsedMessage): number => {
  let size = messageCharacters + content.length + (name?.length ?? 0) + (toolCallId?.length ?? 0)
  for (const call of toolCalls ?? [])
    size += messageCharacters + call.id.length + call.name.length + call.arguments.length
  return payload === undefined ? size : size + estimateSize(payload.items, longCharacters)
}

/** Counts the tokens of messages in steps. */
function* measureMessages(
  { tokenizer, profile }: AppendDeps,
  messages: readonly ParsedMessage[],
): Work<readonly NewMessage[]> {
  const measured: NewMessage[] = []
  // Replacing the secrets of the last message has taken a turn of its own.
  yield Number.POSITIVE_INFINITY
  for (const message of messages) {
    measured.push(yield* measureInSteps(tokenizer, message, profile.maxMessageTokens))
    yield Math.ceil(messageSize(message) / countingSpeed)
  }
  yield Number.POSITIVE_INFINITY
  return measured
}

function checkPlace({ branch, reserve, sequence }: AppendOptions, count: number): void {
  if (branch !== undefined && branch !== 'new')
    checkOption('branch', branch, Number.isSafeInteger(branch) && branch > 0, 'a sequence number or "new"')
  if (reserve !== undefined)
    checkOption('reserve', reserve, Number.isSafeInteger(reserve) && reserve >= 0, 'a whole number, 0 or more')
  if (sequence === undefined) return
  const isSlot = Number.isSafeInteger(sequence) && sequence > 0 && count === 1 && !reserve
  checkOption('sequence', sequence, isSlot, 'a sequence number for a single message, without reserve')
}

/** Returns the head to write to: an expired session begins anew, one that has moved is rejected. */
export const prepareHead = (deps: AppendDeps, head: SessionHead, at: Millis): SessionHead | Promise<SessionHead> =>
  deps.lifecycle?.prepareForWrite(head, at) ?? (isExpired(head, at) ? restartExpired(deps, head.key, at) : head)

type Operation = Pick<SessionChange, 'at' | 'epoch' | 'append'> & { readonly id: string | undefined }

/** Commits messages where the options say. */
async function commitInPlace(
  deps: AppendDeps,
  head: SessionHead,
  operation: Operation,
  options: InternalAppendOptions,
): Promise<readonly Message[]> {
  const { branch, reserve = 0, sequence, ifUnchanged = false } = options
  if (ifUnchanged) {
    const { admittedTo, append, ...place } = placeMessages(head, operation.append, options)
    return commitMessages(deps, admittedTo, { ...operation, append }, { ...place, base: head.revision })
  }
  if (branch === undefined && reserve === 0 && sequence === undefined) return commitMessages(deps, head, operation)
  for (let current = head, attempts = 1; ; attempts++) {
    const { admittedTo, append, ...place } = placeMessages(current, operation.append, options)
    try {
      return await commitMessages(deps, admittedTo, { ...operation, append }, place)
    } catch (error) {
      if (!hasErrorCode(error, 'conflict') || attempts === maxPlaceAttempts) throw error
      const { revision } = current
      current = await prepareHead(deps, await deps.sessions.readHead(head.key, 0), operation.at)
      // Another message has the id of one of these.
      if (current.revision === revision) throw error
    }
  }
}

type Place = Pick<SessionChange, 'from' | 'base' | 'append'> & {
  /** The session with the reserved numbers, by which the limits of the profile are checked. */
  readonly admittedTo: SessionHead
}

/** Decides which sequence numbers messages get. A place that others could take meanwhile is bound to the revision. */
function placeMessages(
  head: SessionHead,
  append: readonly NewMessage[],
  { branch, reserve = 0, sequence }: AppendOptions,
): Place {
  const withBranch = (first: number): readonly NewMessage[] =>
    branch === undefined ? append : append.map((message) => ({ ...message, branch: branch === 'new' ? first : branch }))
  // The number after the newest message stays valid when another process appends and leaves it free for a reply.
  if (sequence !== undefined && (isInRanges(head.gaps, sequence) || sequence === head.lastSequence + 1))
    return { from: { sequence }, append: withBranch(sequence), admittedTo: head }
  const first = head.lastSequence + reserve + 1
  if (reserve === 0)
    return { append: withBranch(first), admittedTo: head, ...(branch === 'new' && { base: head.revision }) }
  return {
    from: { sequence: first },
    base: head.revision,
    append: withBranch(first),
    admittedTo: { ...head, lastSequence: first - 1, gaps: addGapRange(head.gaps, head.lastSequence + 1, first - 1) },
  }
}

/** Commits messages within the limits of the profile. */
export async function commitMessages(
  { sessions, profile, lifecycle }: AppendDeps,
  head: SessionHead,
  { id, at, epoch, append }: Operation,
  { drop = [], ...place }: Pick<SessionChange, 'from' | 'base' | 'replace'> & Partial<Pick<SessionChange, 'drop'>> = {},
): Promise<readonly Message[]> {
  const { key } = head
  const admission = lifecycle?.admit(head, append, at) ?? planAppend(head, append, profile.lifetime, at)
  const { evictedIds, expiresAt } = admission instanceof Promise ? await admission : admission
  const change: SessionChange = { key, at, epoch, append, put: [], drop: [...drop, ...evictedIds], expiresAt, ...place }
  const commit = () => sessions.commit(id === undefined ? change : { id, ...change })
  return lifecycle?.write(head, at, commit) ?? commit()
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
    if (hasErrorCode(error, 'conflict')) return undefined
    throw error
  }
}
