import { getOrCompute } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'

/**
 * Kind of client. A `full` client resends its conversation, which is forwarded as it is; a `thin` client sends only
 * what is new, and memory supplies the history.
 */
export type HistoryMode = 'full' | 'thin'

/** Running turns and clients of one session, which are not stored. */
type Activity = {
  /** Questions whose replies are on their way, by sequence number; true if the next number is kept for the reply. */
  readonly openQuestions: Map<number, boolean>
  /** Clients of the session, by whether they resend their conversation. */
  readonly resendsHistory: Map<string, boolean>
}

const maxSessions = 10_000
const maxClients = 32

const createActivity = (): Activity => ({ openQuestions: new Map(), resendsHistory: new Map() })

/** Tracks the running turns and the clients of each session while the server runs. */
export class SessionActivity {
  private readonly sessions = new LruCache<string, Activity>({ maxEntries: maxSessions })

  /** Marks a question as open until the returned function is called. */
  openQuestion(session: string, sequence: number): () => void {
    const { openQuestions } = getOrCompute(this.sessions, session, createActivity)
    openQuestions.set(sequence, false)
    return () => openQuestions.delete(sequence)
  }

  /** Keeps the number after an open question for its reply. Returns false if the question is not open. */
  reserveReply(session: string, question: number): boolean {
    const openQuestions = this.sessions.get(session)?.openQuestions
    if (openQuestions?.has(question) !== true) return false
    openQuestions.set(question, true)
    return true
  }

  /** True if the number after a question is kept for its reply. */
  isReplyReserved(session: string, question: number): boolean {
    return this.sessions.get(session)?.openQuestions.get(question) === true
  }

  /** True or false if the client's habit is known, undefined if the session's receipts must tell. */
  resendsHistory(session: string, client: string): boolean | undefined {
    return this.sessions.get(session)?.resendsHistory.get(client)
  }

  rememberHabit(session: string, client: string, resends: boolean): void {
    const { resendsHistory } = getOrCompute(this.sessions, session, createActivity)
    const [oldest] = resendsHistory.keys()
    if (resendsHistory.size >= maxClients && oldest !== undefined) resendsHistory.delete(oldest)
    resendsHistory.set(client, resends)
  }
}
