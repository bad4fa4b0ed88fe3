import { getOrCompute } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'

/**
 * Kind of client. A `full` client resends its conversation, which is forwarded as it is; a `thin` client sends only
 * what is new, and memory supplies the history.
 */
export type HistoryMode = 'full' | 'thin'

/** A question whose replies are on their way: several when it was asked again meanwhile. */
type OpenQuestion = {
  replies: number
  /** Sequence numbers after the question that are kept for its replies. */
  reserved: number
  /** Entries of the question, to be erased if all attempts to answer it are refused. */
  refusedEntries: readonly string[]
}

/** Clients whose habits are kept, over all sessions. */
const maxHabits = 10_000

/** Names a client of a session; neither part contains a line break. */
const habitKey = (session: string, client: string): string => `${session}\n${client}`

/** Tracks the running turns and the clients of each session while the server runs. */
export class SessionActivity {
  /** By session and sequence number. A session at rest has no entry. */
  private readonly openQuestions = new Map<string, Map<number, OpenQuestion>>()
  /** Clients by whether they resend their conversation. */
  private readonly habits = new LruCache<string, boolean>({ maxEntries: maxHabits })

  /** Marks a question as open until the returned function is called. */
  openQuestion(session: string, sequence: number): () => void {
    const questions = getOrCompute(this.openQuestions, session, () => new Map<number, OpenQuestion>())
    const question = getOrCompute(questions, sequence, () => ({ replies: 0, reserved: 0, refusedEntries: [] }))
    question.replies++
    return () => {
      question.replies--
      if (question.replies === 0) questions.delete(sequence)
      if (questions.size === 0 && this.openQuestions.get(session) === questions) this.openQuestions.delete(session)
    }
  }

  /** Keeps numbers after an open question for its replies. Returns how many; 0 if the question is not open. */
  reserveReplies(session: string, question: number): number {
    const open = this.openQuestions.get(session)?.get(question)
    if (open === undefined) return 0
    open.reserved = open.replies
    return open.reserved
  }

  /** Numbers after a question that are kept for its replies. */
  reservedReplies(session: string, question: number): number {
    return this.openQuestions.get(session)?.get(question)?.reserved ?? 0
  }

  /**
   * Reports that the upstream refused an attempt to answer a question. Returns the entries to erase: none while another
   * attempt is on its way.
   */
  refuse(session: string, question: number, entries: readonly string[]): readonly string[] {
    const open = this.openQuestions.get(session)?.get(question)
    if (open === undefined) return entries
    open.refusedEntries = [...open.refusedEntries, ...entries]
    return open.replies > 1 ? [] : open.refusedEntries
  }

  /** True or false if the client's habit is known, undefined if the session's receipts must tell. */
  resendsHistory(session: string, client: string): boolean | undefined {
    return this.habits.get(habitKey(session, client))
  }

  rememberHabit(session: string, client: string, resends: boolean): void {
    this.habits.set(habitKey(session, client), resends)
  }
}
