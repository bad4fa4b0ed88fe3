import { alignHistories, commonPrefixLength, findOverlap } from './historyAlignment.ts'
import { type ComparableMessage, isUser, type NormalForms } from './messageEquality.ts'

/** A stored message with its sequence number in the session. */
export type StoredMessage = ComparableMessage & { readonly sequence: number }

/** Relation of the history a client sends to the stored one. */
export type HistoryRelation =
  | 'first'
  | 'exact'
  | 'continued'
  | 'regenerated'
  | 'edited'
  | 'truncated'
  | 'newest-only'
  | 'disjoint'

export type HistoryChange = {
  /** Index of the first sent message that is new. */
  readonly newFrom: number
  /**
   * Sequence number from which stored messages are no longer part of the client's conversation; they become a branch.
   */
  readonly cutFrom: number | undefined
  readonly relation: HistoryRelation
}

/**
 * Decides which sent messages are new and which stored messages the client has taken back. `stored` are the newest
 * stored messages without system messages; `hasEarlier` says that there are older ones, and `forms` may hold the normal
 * forms of messages. A client may send its whole
 * history, the end of it, or only its newest message. A new user message is never taken for an old one unless the
 * history sent with it shows that, and nothing is cut except after a message that both sides have.
 *
 * `disjoint` means that none of several sent messages is in `stored`: with `hasEarlier`, read more and try again.
 *
 * @example
 * reconcile([hello, hi], [hello, hi, bye], { hasEarlier: false }) // { newFrom: 2, cutFrom: undefined, relation: 'continued' }
 * reconcile([hello, hi, how, fine], [hello, hi, bye], { hasEarlier: false }) // { newFrom: 2, cutFrom: how.sequence, relation: 'edited' }
 */
export function reconcile(
  stored: readonly StoredMessage[],
  sent: readonly ComparableMessage[],
  { hasEarlier, forms = new Map() }: { readonly hasEarlier: boolean; readonly forms?: NormalForms },
): HistoryChange {
  if (stored.length === 0 && !hasEarlier) return appendFrom(0, 'first')
  return sent.every(isUser)
    ? reconcileQuestions(stored, sent, hasEarlier, forms)
    : reconcileConversation(stored, sent, hasEarlier, forms)
}

/** Handles clients that resend replies too. */
function reconcileConversation(
  stored: readonly StoredMessage[],
  sent: readonly ComparableMessage[],
  hasEarlier: boolean,
  forms: NormalForms,
): HistoryChange {
  const end = alignHistories(stored, sent, hasEarlier, forms)
  if (end?.stored === stored.length) return appendFrom(end.sent, end.sent === sent.length ? 'exact' : 'continued')
  const next = end && stored[end.stored]
  const hasReplies = sent.some(({ role }) => role === 'assistant')
  if (end === undefined || next === undefined) return appendFrom(0, hasReplies ? 'disjoint' : 'newest-only')
  const rest = stored.slice(end.stored)
  if (!hasReplies && isNewToolResult(sent, rest)) return appendFrom(0, 'newest-only')
  if (end.sent < sent.length) return { newFrom: end.sent, cutFrom: next.sequence, relation: 'edited' }
  const wentBack = sent.at(-1)?.role === 'assistant' || rest.some(isUser)
  return { newFrom: end.sent, cutFrom: next.sequence, relation: wentBack ? 'truncated' : 'regenerated' }
}

/**
 * Tool results sent alone are a retry while their turn lasts, unless the same call was made again: some servers restart
 * the numbering of calls in each reply.
 */
function isNewToolResult(sent: readonly ComparableMessage[], rest: readonly StoredMessage[]): boolean {
  const answeredIds = new Set(sent.map(({ toolCallId }) => toolCallId))
  return rest.some((message) => isUser(message) || message.toolCalls?.some(({ id }) => answeredIds.has(id)))
}

/**
 * Handles clients that send user messages only. A repeated question sent alone is asked again; sent after others, its
 * reply is to be regenerated.
 */
function reconcileQuestions(
  stored: readonly StoredMessage[],
  sent: readonly ComparableMessage[],
  hasEarlier: boolean,
  forms: NormalForms,
): HistoryChange {
  const questions = stored.filter(isUser)
  const known = findOverlap(questions, sent, forms).suffixLength
  if (known === sent.length) {
    const reply = stored[stored.findLastIndex(isUser) + 1]
    if (reply === undefined || known === 0) return appendFrom(known, 'exact')
    return known > 1
      ? { newFrom: known, cutFrom: reply.sequence, relation: 'regenerated' }
      : appendFrom(0, 'newest-only')
  }
  if (known > 0) return appendFrom(known, 'continued')
  if (sent.length === 1) return appendFrom(0, 'newest-only')
  return (hasEarlier ? undefined : reconcilePrefix(stored, questions, sent, forms)) ?? appendFrom(0, 'disjoint')
}

/** Handles sent messages that start like the session but do not reach its end. */
function reconcilePrefix(
  stored: readonly StoredMessage[],
  questions: readonly StoredMessage[],
  sent: readonly ComparableMessage[],
  forms: NormalForms,
): HistoryChange | undefined {
  const prefix = commonPrefixLength(stored, sent, forms)
  const next = stored[prefix]
  // No reply was left out up to here, so whatever follows was taken back.
  if (prefix === sent.length && next !== undefined)
    return { newFrom: prefix, cutFrom: next.sequence, relation: 'truncated' }
  if (prefix > 0 && next !== undefined && isUser(next))
    return { newFrom: prefix, cutFrom: next.sequence, relation: 'edited' }
  const asked = Math.min(commonPrefixLength(questions, sent, forms), sent.length - 1)
  return asked > 0 ? appendFrom(asked, 'continued') : undefined
}

const appendFrom = (newFrom: number, relation: HistoryRelation): HistoryChange => ({
  newFrom,
  cutFrom: undefined,
  relation,
})
