import type { Message } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import { isExpired, type SessionHead } from '../../domain/session.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { findMasks, normalizeSecrets } from '../../text/secrets.ts'
import type { ClientMessage } from '../protocols/protocol.ts'
import { hasReceiptBetween } from '../receipts.ts'
import { type ComparableMessage, isIdentical, isUser } from './messageEquality.ts'
import { type HistoryChange, reconcile } from './reconcile.ts'

export type ReconcileOptions = {
  readonly memory: Memory
  readonly key: Key
  readonly messages: readonly ClientMessage[]
  /** Sequence number of the reply that the client continues from, when the request names one. */
  readonly continuesAfter: number | undefined
  readonly isRetry: boolean
  /** False when the session is known only by the user's name, who may have several conversations at once. */
  readonly isSingleConversation: boolean
}

/** The change a request makes to a session, with the stored messages it was decided on. */
export type ReconciledHistory = HistoryChange & {
  readonly stored: readonly Message[]
  /** True when the session was not read again since `head`. */
  readonly isHeadCurrent: boolean
}

/** Stored messages compared beyond the number sent: replies that were never resent may lie between them. */
const extraMessages = 16
/** Reading stops here; a history that shares nothing with this many stored messages is new. */
const maxMessagesRead = 4_096

/** Number of newest messages to read before reconciling a request. */
export const recentMessagesNeeded = (sent: number): number => sent + extraMessages

/**
 * Decides which messages of a request are new. Starts with the head just read and reads more only if that is not
 * enough.
 */
export async function reconcileHistory(options: ReconcileOptions, head: SessionHead): Promise<ReconciledHistory> {
  const { memory, key, messages, continuesAfter, isRetry, isSingleConversation } = options
  const fromHead = continuesAfter === undefined ? reconcileFromHead(options, head) : undefined
  if (fromHead !== undefined) return fromHead
  for (let limit = recentMessagesNeeded(messages.length); ; limit *= 4) {
    const recent = await memory.transcript(key, { limit, newest: true })
    const stored = withoutSystemMessages(recent)
    if (continuesAfter !== undefined)
      return { stored, isHeadCurrent: false, ...(await continueAfter(memory, key, continuesAfter)) }
    const history = { stored, hasEarlier: recent.length === limit }
    const change = reconcileRetry(options, stored) ?? (await reconcileMasked(memory, key, history, messages))
    if (change.relation === 'disjoint' && history.hasEarlier && limit <= maxMessagesRead) continue
    const mayCut =
      change.cutFrom === undefined ||
      isRetry ||
      (isSingleConversation && (await containsOwnReply(memory, key, stored, change.cutFrom, change.newFrom)))
    return { ...change, stored, isHeadCurrent: false, cutFrom: mayCut ? change.cutFrom : undefined }
  }
}

/** Reconciles with the newest messages alone, as is enough for nearly all requests. Undefined when it is not. */
function reconcileFromHead(
  { memory, key, messages, isRetry }: ReconcileOptions,
  head: SessionHead,
): ReconciledHistory | undefined {
  if (isRetry || isExpired(head, internalsOf(memory).clock())) return undefined
  if (isLiteralContinuation(head.recent, messages))
    return {
      stored: head.recent,
      newFrom: head.recent.length,
      cutFrom: undefined,
      relation: 'continued',
      isHeadCurrent: true,
    }
  const limit = recentMessagesNeeded(messages.length)
  const recent = head.recent.length > limit ? head.recent.slice(-limit) : head.recent
  const stored = withoutSystemMessages(recent)
  const change = reconcileMasked(memory, key, { stored, hasEarlier: recent.length === limit }, messages)
  if (change instanceof Promise || change.relation === 'disjoint' || change.cutFrom !== undefined) return undefined
  return { ...change, stored, isHeadCurrent: true }
}

const isSystem = ({ role }: Message): boolean => role === 'system'
const withoutSystemMessages = (messages: readonly Message[]): readonly Message[] =>
  messages.some(isSystem) ? messages.filter((message) => !isSystem(message)) : messages

/** A client that names the reply it continues from sends only new messages; anything stored after that reply is cut. */
async function continueAfter(memory: Memory, key: Key, sequence: number): Promise<HistoryChange> {
  const [next] = await internalsOf(memory).sessions.readMessages(key, { after: sequence, limit: 1 })
  return { newFrom: 0, cutFrom: next?.sequence, relation: next === undefined ? 'continued' : 'regenerated' }
}

/** A retry of a single question says nothing new; if it was answered, the answer is to be regenerated. */
function reconcileRetry(
  { isRetry, messages }: ReconcileOptions,
  stored: readonly Message[],
): HistoryChange | undefined {
  const [only] = messages
  if (!isRetry || messages.length !== 1 || only?.role !== 'user') return undefined
  const question = stored.findLastIndex(({ role }) => role === 'user')
  if (stored[question]?.content !== only.content) return undefined
  return { newFrom: 1, cutFrom: stored[question + 1]?.sequence, relation: 'regenerated' }
}

/**
 * True when the shared history contains a reply of this server. A greeting or examples that a client sends before each
 * question look like history too, and must not cut what was said after them last time.
 */
async function containsOwnReply(
  memory: Memory,
  key: Key,
  stored: readonly Message[],
  cutFrom: number,
  sharedCount: number,
): Promise<boolean> {
  const cutIndex = stored.findIndex(({ sequence }) => sequence === cutFrom)
  const firstShared = stored[Math.max(0, cutIndex - sharedCount)]?.sequence ?? 0
  return hasReceiptBetween(internalsOf(memory).sessions, key, firstShared, cutFrom)
}

type StoredHistory = { readonly stored: readonly Message[]; readonly hasEarlier: boolean }

/**
 * True when the client resends everything stored, replies included, character by character, and continues from there.
 */
function isLiteralContinuation(stored: readonly Message[], sent: readonly ClientMessage[]): boolean {
  if (stored.length >= sent.length || !haveEqualLengths(stored, sent)) return false
  let hasReplies = false
  for (let index = 0; index < stored.length; index++) {
    const message = stored[index] as Message
    if (!isIdentical(message, sent[index] as ClientMessage) || hasPlaceholder(message)) return false
    hasReplies ||= !isUser(message)
  }
  return hasReplies
}

/** Cheap first comparison; touching all messages in one short loop lets the processor prefetch them. */
function haveEqualLengths(stored: readonly Message[], sent: readonly ClientMessage[]): boolean {
  for (let index = 0; index < stored.length; index++)
    if (stored[index]?.content.length !== sent[index]?.content.length) return false
  return true
}

/**
 * Reconciles in the stored form, with secrets masked. Placeholders written by another process cannot be resolved here;
 * such messages are matched by the rest of their text, and in doubt the newest message is stored twice rather than
 * lost.
 */
function reconcileMasked(
  memory: Memory,
  key: Key,
  history: StoredHistory,
  sent: readonly ClientMessage[],
): HistoryChange | Promise<HistoryChange> {
  return history.stored.some(hasPlaceholder)
    ? reconcileWithPlaceholders(memory, key, history, sent)
    : reconcile(history.stored, sent, history)
}

async function reconcileWithPlaceholders(
  memory: Memory,
  key: Key,
  { stored, hasEarlier }: StoredHistory,
  sent: readonly ClientMessage[],
): Promise<HistoryChange> {
  const withoutSecrets = <T extends ComparableMessage>(message: T): T => mapTexts(message, normalizeSecrets)
  const change = reconcile(stored.map(withoutSecrets), sent.map(withoutSecrets), { hasEarlier })
  const remaining = stored.filter(({ sequence }) => change.cutFrom === undefined || sequence < change.cutFrom)
  const matched = remaining.slice(Math.max(0, remaining.length - change.newFrom))
  const offset = change.newFrom - matched.length
  // Of messages that differ only in their secrets, the first with another secret is new, and so is all that follows.
  for (const [matchedIndex, message] of matched.entries()) {
    const index = matchedIndex + offset
    const other = sent[index]
    // A client may leave messages out or reword them; then these two are not a pair.
    if (other === undefined || !hasPlaceholder(message)) continue
    if (!haveSameTexts(withoutSecrets(other), withoutSecrets(message))) continue
    const isSame = memory.knowsSecrets(key, textsOf(message).join('\n'))
      ? haveSameTexts(await memory.maskMessage(key, other), message)
      : index < sent.length - 1
    if (!isSame) return { ...change, newFrom: index }
  }
  return change
}

const textsOf = ({ content, toolCalls, toolCallId }: ComparableMessage): readonly string[] => [
  content,
  ...(toolCalls ?? []).flatMap((call) => [call.id, call.name, call.arguments]),
  toolCallId ?? '',
]
/** Placeholders start with a rare character, which is tested first. */
const containsPlaceholder = (text: string): boolean => text.includes('⟨') && findMasks(text).length > 0
const hasPlaceholder = (message: Message): boolean =>
  message.toolCalls === undefined && message.toolCallId === undefined
    ? containsPlaceholder(message.content)
    : textsOf(message).some(containsPlaceholder)
const haveSameTexts = (a: ComparableMessage, b: ComparableMessage): boolean =>
  JSON.stringify(textsOf(a)) === JSON.stringify(textsOf(b))

function mapTexts<T extends ComparableMessage>(message: T, change: (text: string) => string): T {
  const { content, toolCalls, toolCallId } = message
  return {
    ...message,
    content: change(content),
    ...(toolCalls && {
      toolCalls: toolCalls.map((call) => ({
        id: change(call.id),
        name: change(call.name),
        arguments: change(call.arguments),
      })),
    }),
    ...(toolCallId !== undefined && { toolCallId: change(toolCallId) }),
  }
}
