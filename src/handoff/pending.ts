import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Clock } from '../domain/ports.ts'
import type { Kept, Listing } from './sessions.ts'
import type { Later } from './settings.ts'

/** Something that could not be written yet. */
export type Job = {
  readonly workspace: string
  readonly session: string
  readonly bytes: number
  /** The session as it will be, for whoever asks meanwhile. */
  readonly kept?: Kept
  /** Does the same however often it is called. */
  readonly write: () => Promise<unknown>
}

/** What waits, as it is told: since when, and how often it was tried; `lost` if it can no longer be written, whatever the store does. */
export type Waiting = {
  readonly workspace: string
  readonly session: string
  readonly since: Millis
  readonly tries: number
  readonly why: string
  readonly lost?: true
}

type Held = Job & { readonly since: Millis; tries: number; why: string }

/** The first wait, and the longest. */
const pause = { first: 1_000, most: 60_000 }

/** So many that were lost are remembered. */
const mostLost = 100

/** Codes of a store that may work again later. */
const passing: ReadonlySet<string> = new Set(['full', 'not-durable', 'busy', 'corrupt'])

/** Keeps what a failing store did not take, in memory and in order, and tries again until it does. */
export class Pending {
  private readonly most: number
  private readonly clock: Clock
  private readonly later: Later
  private readonly jobs: Held[] = []
  private readonly lost: Waiting[] = []
  private cancel: (() => void) | undefined
  private wait = pause.first
  private retrying: Promise<number> | undefined
  private closed = false

  constructor(most: number, clock: Clock, later: Later) {
    this.most = most
    this.clock = clock
    this.later = later
  }

  /** Whether this is the failure of a store, not of a request: a limit of the profile is none, it would be the same again. */
  takes(error: unknown): boolean {
    if (this.closed) return false
    if (error instanceof MemoryError) return passing.has(error.code) && error.param?.startsWith('lifetime.') !== true
    const code = (error as { code?: unknown } | null)?.code
    return (
      typeof code === 'string' && /^(?:ERR_SQLITE|E(?:NOSPC|IO|ROFS|DQUOT|MFILE|NFILE|ACCES|PERM|BUSY)$)/.test(code)
    )
  }

  /** Keeps something until the store is back; refused when too much waits already. */
  keep(job: Job): void {
    const bytes = this.jobs.reduce((sum, one) => sum + one.bytes, job.bytes)
    if (bytes > this.most)
      throw new MemoryError(
        'not-durable',
        'The store fails and too much waits for it already: this is not kept. Make the store work again, then save once more.',
      )
    this.jobs.push({ ...job, since: this.clock(), tries: 1, why: '' })
    this.plan()
  }

  isWaiting(workspace: string, session: string): boolean {
    return this.of(workspace, session).length > 0
  }

  /** Refuses what can only be done with a session that is stored. */
  refuseWaiting(workspace: string, session: string): void {
    if (this.isWaiting(workspace, session))
      throw new MemoryError(
        'not-durable',
        `Session ${session} is not stored yet: the store fails. Try again when it works; restore_session works now.`,
      )
  }

  /** A session as it will be once it is written. */
  kept(workspace: string, session: string): Kept | undefined {
    return this.of(workspace, session).findLast((job) => job.kept !== undefined)?.kept
  }

  /** The session of a workspace that was to be saved last. */
  newest(workspace: string): Kept | undefined {
    return this.jobs.findLast((job) => job.workspace === workspace && job.kept !== undefined)?.kept
  }

  /** A list with what waits before what is stored, on its first page. A store that cannot even be read leaves what waits. */
  async listed(workspace: string, isFirst: boolean, stored: () => Promise<Listing>): Promise<Listing> {
    const waiting = [
      ...new Map(
        this.jobs.flatMap((job) =>
          job.workspace === workspace && job.kept !== undefined ? [[job.session, job.kept.metadata]] : [],
        ),
      ),
    ]
      .map(([, metadata]) => metadata)
      .reverse()
    if (waiting.length === 0) return stored()
    const { sessions, total } = await stored().catch((error: unknown) => {
      if (this.takes(error)) return { sessions: [], total: 0 }
      throw error
    })
    const others = sessions.filter(({ sessionId }) => !this.isWaiting(workspace, sessionId))
    return {
      sessions: [...(isFirst ? waiting : []), ...others],
      total: total + waiting.length - (sessions.length - others.length),
    }
  }

  waiting(): readonly Waiting[] {
    return [...this.jobs.map(told), ...this.lost]
  }

  /** Lets go of what waits of a session, which is to be forgotten. */
  async drop(workspace: string, session: string): Promise<boolean> {
    const found = this.of(workspace, session)
    for (const job of found) this.jobs.splice(this.jobs.indexOf(job), 1)
    // What is being written just now is forgotten once it is.
    await this.retrying
    return found.length > 0
  }

  /** Tries to write what waits, in order; resolves to how much still does. */
  async retry(): Promise<number> {
    if (this.jobs.length === 0) return 0
    this.retrying ??= this.written().finally(() => {
      this.retrying = undefined
      this.plan()
    })
    return this.retrying
  }

  /** Tries a last time, and stops. */
  async close(): Promise<void> {
    await this.retry()
    this.closed = true
    this.cancel?.()
  }

  private async written(): Promise<number> {
    for (let job = this.jobs[0]; job !== undefined; job = this.jobs[0]) {
      try {
        await job.write()
        this.wait = pause.first
      } catch (error) {
        job.tries++
        job.why = error instanceof Error ? error.message : 'unknown'
        if (this.takes(error)) break
        this.lost.push({ ...told(job), lost: true })
        this.lost.splice(0, this.lost.length - mostLost)
      }
      // It may have been forgotten while it was written.
      if (this.jobs[0] === job) this.jobs.shift()
    }
    return this.jobs.length
  }

  private plan(): void {
    this.cancel?.()
    this.cancel = undefined
    if (this.closed || this.jobs.length === 0) return
    this.cancel = this.later(this.wait, () => void this.retry())
    this.wait = Math.min(pause.most, 2 * this.wait)
  }

  private of(workspace: string, session: string): readonly Held[] {
    return this.jobs.filter((job) => job.workspace === workspace && job.session === session)
  }
}

const told = ({ workspace, session, since, tries, why }: Held): Waiting => ({ workspace, session, since, tries, why })
