import { getOrCompute } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'

/** Clients whose habits are kept, over all sessions. */
const maxHabits = 10_000

/** Names a client of a session; neither part contains a line break. */
const habitKey = (session: string, client: string): string => `${session}\n${client}`

/** Tracks the running turns and the clients of each session while the server runs. */
export class SessionActivity {
  /**
   * Questions whose replies are on their way, by session and sequence number; true if the next number is kept for the
   * reply. A session at rest has no entry.
   */
  private readonly openQuestions = new Map<string, Map<number, boolean>>()
  /** Clients by whether they resend their conversation. */
  private readonly habits = new LruCache<string, boolean>({ maxEntries: maxHabits })

  /** Marks a question as open until the returned function is called. */
  openQuestion(session: string, sequence: number): () => void {
    const open = getOrCompute(this.openQuestions, session, () => new Map<number, boolean>())
    open.set(sequence, false)
    return () => {
      open.delete(sequence)
      if (open.size === 0 && this.openQuestions.get(session) === open) this.openQuestions.delete(session)
    }
  }

  /** Keeps the number after an open question for its reply. Returns false if the question is not open. */
  reserveReply(session: string, question: number): boolean {
    const open = this.openQuestions.get(session)
    if (open?.has(question) !== true) return false
    open.set(question, true)
    return true
  }

  /** True if the number after a question is kept for its reply. */
  isReplyReserved(session: string, question: number): boolean {
    return this.openQuestions.get(session)?.get(question) === true
  }

  /** True or false if the client's habit is known, undefined if the session's receipts must tell. */
  resendsHistory(session: string, client: string): boolean | undefined {
    return this.habits.get(habitKey(session, client))
  }

  rememberHabit(session: string, client: string, resends: boolean): void {
    this.habits.set(habitKey(session, client), resends)
  }
}
