import { align, commonStart, overlap } from './align.ts'
import { type Compared, isUser } from './likeness.ts'

export type { Compared } from './likeness.ts'

/** A message that is stored, and its place in the session. */
export type Stored = Compared & { readonly sequence: number }

/** How the history a client sends relates to what is stored. */
export type Reconciled = {
  /** What of the messages sent is new, from this place on. */
  readonly fresh: number
  /** Stored messages from this sequence number on are no longer part of the conversation as the client tells it: they become a branch. */
  readonly cut: number | undefined
  readonly how: 'first' | 'exact' | 'continued' | 'regenerated' | 'edited' | 'truncated' | 'newest-only' | 'disjoint'
}

/**
 * Decides what of a request is new, and what of the session its client has taken back. `stored` are the newest stored
 * messages, without instructions; `hasEarlier` tells that there are older ones. A client may send its whole history, the
 * end of it or only its newest message. What a user says newly is never taken for something said before, unless the
 * history sent with it shows that; and nothing is cut but after a message that both sides have.
 *
 * 'disjoint' tells that several messages were sent of which none is in `stored`: with `hasEarlier`, more should be read.
 *
 * @example
 * reconcile([hello, hi], [hello, hi, bye], { hasEarlier: false }) // { fresh: 2, cut: undefined, how: 'continued' }
 * reconcile([hello, hi, how, fine], [hello, hi, bye], { hasEarlier: false }) // { fresh: 2, cut: how.sequence, how: 'edited' }
 */
export function reconcile(
  stored: readonly Stored[],
  sent: readonly Compared[],
  { hasEarlier }: { readonly hasEarlier: boolean },
): Reconciled {
  if (stored.length === 0 && !hasEarlier) return fresh(0, 'first')
  return sent.every(isUser) ? byQuestions(stored, sent, hasEarlier) : byHistory(stored, sent, hasEarlier)
}

/** The client tells replies too. */
function byHistory(stored: readonly Stored[], sent: readonly Compared[], hasEarlier: boolean): Reconciled {
  const reach = align(stored, sent, hasEarlier)
  if (reach?.stored === stored.length) return fresh(reach.sent, reach.sent === sent.length ? 'exact' : 'continued')
  const next = reach && stored[reach.stored]
  const hasReplies = sent.some(({ role }) => role === 'assistant')
  if (reach === undefined || next === undefined) return fresh(0, hasReplies ? 'disjoint' : 'newest-only')
  const rest = stored.slice(reach.stored)
  if (!hasReplies && isAnotherResult(sent, rest)) return fresh(0, 'newest-only')
  if (reach.sent < sent.length) return { fresh: reach.sent, cut: next.sequence, how: 'edited' }
  const isBack = sent.at(-1)?.role === 'assistant' || rest.some(isUser)
  return { fresh: reach.sent, cut: next.sequence, how: isBack ? 'truncated' : 'regenerated' }
}

/** Results alone are a retry while their turn lasts, unless the same call was made again: some servers number calls anew in each reply. */
function isAnotherResult(sent: readonly Compared[], rest: readonly Stored[]): boolean {
  const answered = new Set(sent.map(({ answers }) => answers))
  return rest.some((message) => isUser(message) || message.calls?.some(({ id }) => answered.has(id)))
}

/**
 * The client sends users' messages alone: it leaves the replies to memory, or has had none. What a reply was given to is
 * said again when it comes alone; when others come before it, it is the reply that is wanted again.
 */
function byQuestions(stored: readonly Stored[], sent: readonly Compared[], hasEarlier: boolean): Reconciled {
  const asked = stored.filter(isUser)
  const known = overlap(asked, sent).ending
  if (known === sent.length) {
    const reply = stored[stored.findLastIndex(isUser) + 1]
    if (reply === undefined || known === 0) return fresh(known, 'exact')
    return known > 1 ? { fresh: known, cut: reply.sequence, how: 'regenerated' } : fresh(0, 'newest-only')
  }
  if (known > 0) return fresh(known, 'continued')
  if (sent.length === 1) return fresh(0, 'newest-only')
  return (hasEarlier ? undefined : fromStart(stored, asked, sent)) ?? fresh(0, 'disjoint')
}

/** The client's messages begin as the session does, but do not reach its end. */
function fromStart(
  stored: readonly Stored[],
  asked: readonly Stored[],
  sent: readonly Compared[],
): Reconciled | undefined {
  const whole = commonStart(stored, sent)
  const next = stored[whole]
  // Up to here no reply was left out, so what follows is known to be taken back.
  if (whole === sent.length && next !== undefined) return { fresh: whole, cut: next.sequence, how: 'truncated' }
  if (whole > 0 && next !== undefined && isUser(next)) return { fresh: whole, cut: next.sequence, how: 'edited' }
  const left = Math.min(commonStart(asked, sent), sent.length - 1)
  return left > 0 ? fresh(left, 'continued') : undefined
}

const fresh = (from: number, how: Reconciled['how']): Reconciled => ({ fresh: from, cut: undefined, how })
