import type { Message } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import { isExpired, type SessionHead } from '../../domain/session.ts'
import { runInSlices } from '../../domain/work.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import type { ClientMessage } from '../protocols/protocol.ts'
import { findReceipt, hasReceiptBetween, wasRefused } from '../receipts.ts'
import { type ComparableMessage, isIdentical, isUser, type NormalForms, normalizeInSteps } from './messageEquality.ts'
import { type HistoryChange, type HistoryRelation, reconcile } from './reconcile.ts'
import { hasPlaceholder, reconcileMasked, type StoredHistory } from './reconcileMasked.ts'
import type { HistoryMode } from './sessionActivity.ts'

export type ReconcileOptions = {
  readonly memory: Memory
  readonly key: Key
  readonly messages: readonly ClientMessage[]
  /** The reply that the client continues from, when the request names one. */
  readonly continuesAfter: Message | undefined
  readonly isRetry: boolean
  /** False when the session is known only by the user's name, who may have several conversations at once. */
  readonly isSingleConversation: boolean
  /** Kind of client as forced by a header or the configuration. */
  readonly forcedHistory: HistoryMode | undefined
  /** True when the request refers to stored items of its conversation instead of repeating them. */
  readonly refersToStored: boolean
  /** Returns the digest of the instructions and tools of the request. */
  readonly digestSetup: () => string
  /** Tells whether the client has resent its conversation before. */
  readonly hasResentBefore: () => Promise<boolean>
}

/** The change a request makes to a session, with the stored messages it was decided on. */
export type ReconciledHistory = HistoryChange & {
  /** Messages of the conversation that the request belongs to. */
  readonly stored: readonly Message[]
  /** The newest messages of all conversations of the session. */
  readonly recent: readonly Message[]
  /** Kind of the client. */
  readonly history: HistoryMode
  /** True when the request shows that the client resends its conversation. */
  readonly resends: boolean
  /** The conversation within the session: undefined for the first one, `new` for one that begins now. */
  readonly branch: number | 'new' | undefined
}

/** Stored messages compared beyond the number sent: replies that were never resent may lie between them. */
const extraMessages = 16
/** Reading stops here; a history that shares nothing with this many stored messages is new. */
const maxMessagesRead = 4_096

/** Number of newest messages to read before reconciling a request. */
export const recentMessagesNeeded = (sent: number): number => sent + extraMessages

/**
 * Decides which messages of a request are new, to which conversation of the session they belong, and whether the client
 * resends its conversation. Starts with the head just read and reads more only if that is not enough.
 */
export async function reconcileHistory(options: ReconcileOptions, head: SessionHead): Promise<ReconciledHistory> {
  const { continuesAfter } = options
  if (continuesAfter !== undefined) return continueAfter(options, continuesAfter)
  const forms: NormalForms = new Map()
  const fromHead = reconcileFromHead(options, head, forms)
  const found = (fromHead instanceof Promise ? await fromHead : fromHead) ?? (await reconcileFromStore(options, forms))
  return classifyClient(options, found)
}

/** A change within one conversation of the session. */
type ConversationChange = Omit<ReconciledHistory, 'history' | 'resends' | 'branch'> & {
  readonly branch: number | undefined
  /**
   * Set when nothing may be cut after the messages that both sides have: they include `no reply` of this server, or
   * they may begin `another conversation` of the same user.
   */
  readonly overlap?: 'no reply' | 'another conversation'
}

/** A change without the messages of other conversations. */
type MatchedConversation = Omit<ConversationChange, 'recent'>

async function reconcileFromStore(options: ReconcileOptions, forms: NormalForms): Promise<ConversationChange> {
  const { memory, key, messages, isSingleConversation } = options
  for (let limit = recentMessagesNeeded(messages.length); ; limit *= 4) {
    const recent = await memory.transcript(key, { limit, newest: true })
    const history = { stored: withoutSystemMessages(recent), hasEarlier: recent.length === limit, forms }
    if (isLongHistory(history, messages)) await normalizeInSlices(history, messages)
    const retried = await reconcileRetry(options, history.stored)
    const found = retried ?? (await reconcileConversations(memory, key, history, messages))
    if (found.relation === 'disjoint' && history.hasEarlier && limit <= maxMessagesRead) continue
    const change = { ...found, recent: history.stored }
    if (change.cutFrom === undefined || retried !== undefined) return change
    const sharesReply =
      (await containsOwnReply(memory, key, change.stored, change.cutFrom, change.newFrom)) ||
      ((messages[change.newFrom]?.role ?? 'assistant') === 'assistant' &&
        (await isOwnReply(memory, key, change.cutFrom)))
    if (sharesReply && isSingleConversation) return change
    const overlap = sharesReply ? 'another conversation' : 'no reply'
    return { ...change, cutFrom: undefined, overlap }
  }
}

/**
 * Tells full from thin clients. A full client's conversation that shares nothing with the stored ones, such as a
 * compacted one or a sub-agent's, is a conversation of its own within the session.
 */
async function classifyClient(options: ReconcileOptions, change: ConversationChange): Promise<ReconciledHistory> {
  const { messages, forcedHistory, refersToStored, hasResentBefore } = options
  const { overlap, ...found } = change
  const isUnrelated = found.relation === 'disjoint' || found.relation === 'newest-only' || overlap !== undefined
  if (forcedHistory === 'thin') return { ...found, history: 'thin', resends: false }
  if (refersToStored) return { ...found, history: 'full', resends: true }
  const isConversation =
    messages.some(({ role }) => role === 'assistant') &&
    overlap !== 'no reply' &&
    found.relation !== 'newest-only' &&
    !isPartOfTurn(found, messages)
  // The first request may only hold examples.
  const resends = isConversation && found.relation !== 'first' && !isSingleTurn(messages)
  const isFull =
    forcedHistory === 'full' ||
    isConversation ||
    (found.relation !== 'first' &&
      ((isUnrelated && (await ignoresOpenCall(options, found))) || (await hasResentBefore())))
  if (!isFull) return { ...found, history: 'thin', resends }
  if (!isUnrelated || found.stored.length === 0) return { ...found, history: 'full', resends }
  const shared = overlap === undefined ? countStored(found.recent, messages) : found.newFrom
  const newFrom = Math.min(shared, messages.length - 1)
  const unrelated = { newFrom, cutFrom: undefined, relation: 'disjoint', branch: 'new', history: 'full' } as const
  return { ...found, ...unrelated, stored: [], resends }
}

/**
 * True when a request holds only the newest turn of a longer conversation: a question with its tool calls and results,
 * or the end of that. The client may leave the turns before it to memory.
 */
function isPartOfTurn({ stored, newFrom, branch }: ConversationChange, messages: readonly ClientMessage[]): boolean {
  return branch === undefined && stored.length > newFrom && isSingleTurn(messages)
}

/** True for one question with its tool calls and results, or the end of that: thin clients send it in a tool loop. */
function isSingleTurn(messages: readonly ClientMessage[]): boolean {
  const afterQuestion = messages.findIndex(({ role }) => role !== 'user')
  return messages
    .slice(afterQuestion)
    .every(({ role, toolCalls }) => role === 'tool' || (role === 'assistant' && toolCalls !== undefined))
}

/**
 * True when a conversation of the session waits for the results of tool calls, and the request has none and other
 * instructions: it comes from another conversation of the same program, such as a sub-agent's.
 */
async function ignoresOpenCall(
  { memory, key, messages, digestSetup }: ReconcileOptions,
  { recent }: ConversationChange,
): Promise<boolean> {
  if (messages.some(({ role }) => role === 'tool')) return false
  const newest = new Map(recent.map((message) => [message.branch, message]))
  for (const { toolCalls, sequence } of newest.values()) {
    if (toolCalls === undefined) continue
    const receipt = await findReceipt(internalsOf(memory).sessions, key, { sequence })
    if (receipt?.setup !== undefined && receipt.setup !== digestSetup()) return true
  }
  return false
}

/** Number of messages at the start of a request that are stored already. */
function countStored(stored: readonly Message[], messages: readonly ClientMessage[]): number {
  const keyOf = ({ role, content }: ComparableMessage): string => `${role} ${content}`
  const known = new Set(stored.map(keyOf))
  const first = messages.findIndex((message) => !known.has(keyOf(message)))
  return first < 0 ? messages.length : first
}

/** Reconciles with the newest messages alone, as is enough for nearly all requests. Undefined when it is not. */
function reconcileFromHead(
  { memory, messages, isRetry }: ReconcileOptions,
  head: SessionHead,
  forms: NormalForms,
): ConversationChange | undefined | Promise<ConversationChange | undefined> {
  if (isRetry || isExpired(head, internalsOf(memory).clock())) return undefined
  const { recent: all } = head
  if (isLiteralContinuation(all, messages))
    return {
      stored: all,
      newFrom: all.length,
      cutFrom: undefined,
      relation: 'continued',
      recent: all,
      branch: undefined,
    }
  const limit = recentMessagesNeeded(messages.length)
  const recent = all.length > limit ? all.slice(-limit) : all
  const stored = withoutSystemMessages(recent)
  if (stored.some((message) => message.branch !== undefined || hasPlaceholder(message))) return undefined
  const history = { stored, hasEarlier: recent.length === limit, forms }
  const decide = (): ConversationChange | undefined => {
    const change = reconcile(stored, messages, history)
    if (change.relation === 'disjoint' || change.cutFrom !== undefined) return undefined
    return { ...change, stored, branch: undefined, recent: stored }
  }
  return isLongHistory(history, messages) ? normalizeInSlices(history, messages).then(decide) : decide()
}

/** Limits of messages, and of characters in each, up to which a history is compared without a pause. */
const maxShortHistory = 200
const maxShortCharacters = 65_536

const isLongHistory = ({ stored }: StoredHistory, sent: readonly ClientMessage[]): boolean =>
  stored.length > 0 &&
  (stored.length + sent.length > maxShortHistory || (!sent.every(isUser) && [...stored, ...sent].some(isLongMessage)))

const isLongMessage = ({ content, toolCalls = [] }: ComparableMessage): boolean =>
  content.length > maxShortCharacters || toolCalls.some((call) => call.arguments.length > maxShortCharacters)

/** Computes the normal forms of messages, with pauses. */
const normalizeInSlices = ({ stored, forms }: StoredHistory, sent: readonly ClientMessage[]): Promise<void> =>
  runInSlices(normalizeInSteps([...stored, ...sent], forms), yieldWhenLong)

/** Reconciles with each conversation of the session and returns the change that fits best. */
async function reconcileConversations(
  memory: Memory,
  key: Key,
  history: StoredHistory,
  sent: readonly ClientMessage[],
): Promise<MatchedConversation> {
  const { stored } = history
  if (stored.some(({ branch }) => branch !== undefined)) return reconcileBranches(memory, key, history, sent)
  return { ...(await reconcileMasked(memory, key, history, sent)), stored, branch: undefined }
}

async function reconcileBranches(
  memory: Memory,
  key: Key,
  history: StoredHistory,
  sent: readonly ClientMessage[],
): Promise<MatchedConversation> {
  const conversations = Map.groupBy(history.stored, ({ branch }) => branch)
  if (!conversations.has(undefined)) conversations.set(undefined, [])
  let best: MatchedConversation | undefined
  for (const [branch, stored] of conversations) {
    const hasEarlier = history.hasEarlier && stored[0]?.sequence !== branch
    const change = await reconcileMasked(memory, key, { ...history, stored, hasEarlier }, sent)
    const candidate = { ...change, stored, branch }
    if (best === undefined || compareFit(candidate, best) > 0) best = candidate
  }
  // There is always the first conversation.
  return best as MatchedConversation
}

/** Strength of the tie between a request and a conversation, by their relation. */
const fitOf: Readonly<Record<HistoryRelation, number>> = {
  exact: 3,
  continued: 3,
  regenerated: 2,
  edited: 2,
  truncated: 2,
  'newest-only': 1,
  disjoint: 0,
  first: 0,
}

const compareFit = (a: HistoryChange, b: HistoryChange): number =>
  fitOf[a.relation] - fitOf[b.relation] || a.newFrom - b.newFrom

const isSystem = ({ role }: Message): boolean => role === 'system'
const withoutSystemMessages = (messages: readonly Message[]): readonly Message[] =>
  messages.some(isSystem) ? messages.filter((message) => !isSystem(message)) : messages

/**
 * A client that names the reply it continues from sends only new messages; anything that its conversation has after
 * that reply is cut.
 */
async function continueAfter(
  { memory, key, messages }: ReconcileOptions,
  { sequence, branch }: Message,
): Promise<ReconciledHistory> {
  const recent = await memory.transcript(key, { limit: recentMessagesNeeded(messages.length), newest: true })
  const later = await internalsOf(memory).sessions.readMessages(key, {
    after: sequence,
    limit: Number.MAX_SAFE_INTEGER,
  })
  const next = later.find((message) => message.branch === branch)
  const stored = withoutSystemMessages(recent)
  return {
    stored: stored.filter((message) => message.branch === branch),
    recent: stored,
    newFrom: 0,
    cutFrom: next?.sequence,
    relation: next === undefined ? 'continued' : 'regenerated',
    history: 'thin',
    resends: false,
    branch,
  }
}

/** A retry of a single question says nothing new; if it was answered, the answer is to be regenerated. */
async function reconcileRetry(
  { isRetry, messages, memory, key }: ReconcileOptions,
  all: readonly Message[],
): Promise<MatchedConversation | undefined> {
  const [only] = messages
  if (!isRetry || messages.length !== 1 || only?.role !== 'user') return undefined
  const asked = all.findLast(({ role }) => role === 'user')
  if (asked?.content !== only.content) return undefined
  // After a refusal the question of the failed attempt is gone; the stored one is another with the same words.
  if (await wasRefused(internalsOf(memory).sessions, key)) return undefined
  const stored = all.filter(({ branch }) => branch === asked.branch)
  const cutFrom = stored[stored.indexOf(asked) + 1]?.sequence
  return { newFrom: 1, cutFrom, relation: 'regenerated', stored, branch: asked.branch }
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

/** True for a reply of this server: a client that sends another one or none in its place takes it back. */
const isOwnReply = (memory: Memory, key: Key, sequence: number): Promise<boolean> =>
  hasReceiptBetween(internalsOf(memory).sessions, key, sequence, sequence + 1)

/**
 * True when the client resends everything stored, replies included, character by character, and continues from there.
 */
function isLiteralContinuation(stored: readonly Message[], sent: readonly ClientMessage[]): boolean {
  if (stored.length >= sent.length || !haveEqualLengths(stored, sent)) return false
  let hasReplies = false
  for (let index = 0; index < stored.length; index++) {
    const message = stored[index] as Message
    if (!isIdentical(message, sent[index] as ClientMessage) || hasPlaceholder(message)) return false
    if (message.branch !== undefined) return false
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
