import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import type { Clock } from '../domain/ports.ts'
import { backoffDelay } from '../domain/retry.ts'
import type { SavedSession, SessionList } from './sessions.ts'
import type { Schedule } from './settings.ts'

/** Write that the store rejected. */
export type PendingWrite = {
  readonly workspace: string
  readonly session: string
  readonly bytes: number
  /** Session as it will be once written, for reads in the meantime. */
  readonly preview?: SavedSession
  /** Must be idempotent: it is called until it succeeds. */
  readonly write: () => Promise<unknown>
}

/** State of a pending write. `lost` is set if it failed for a reason that retrying cannot fix. */
export type PendingWriteStatus = {
  readonly workspace: string
  readonly session: string
  readonly since: Millis
  readonly attempts: number
  readonly reason: string
  readonly lost?: true
}

type QueuedWrite = PendingWrite & { readonly since: Millis; tries: number; why: string }

const minRetryDelayMs = 1_000
const maxRetryDelayMs = 60_000

/** Lost writes remembered for `status`. */
const maxLostWrites = 100

/** Error codes of a store failure that may go away. */
const transientCodes: ReadonlySet<string> = new Set([
  'full',
  'disk-full',
  'file-changed',
  'not-durable',
  'busy',
  'corrupt',
])
const systemErrorCode = /^(?:ERR_SQLITE|E(?:NOSPC|IO|ROFS|DQUOT|MFILE|NFILE|ACCES|PERM|BUSY)$)/

/** Queue of writes that a failing store rejected. Held in memory and retried in order with exponential backoff. */
export class PendingWrites {
  private readonly maxBytes: number
  private readonly clock: Clock
  private readonly schedule: Schedule
  private readonly queue: QueuedWrite[] = []
  private readonly lost: PendingWriteStatus[] = []
  private cancelRetry: (() => void) | undefined
  /** Retries scheduled since the last successful write. */
  private scheduledRetries = 0
  private retrying: Promise<number> | undefined
  private closed = false

  constructor(maxBytes: number, clock: Clock, schedule: Schedule) {
    this.maxBytes = maxBytes
    this.clock = clock
    this.schedule = schedule
  }

  /** Checks whether an error is a store failure worth retrying. A profile limit is not: it would fail again. */
  isRetryable(error: unknown): boolean {
    if (this.closed) return false
    if (error instanceof MemoryError)
      return transientCodes.has(error.code) && error.param?.startsWith('lifetime.') !== true
    const code = (error as { code?: unknown } | null)?.code
    return typeof code === 'string' && systemErrorCode.test(code)
  }

  /** Queues a write. Throws `not-durable` if the queue is full. */
  enqueue(write: PendingWrite): void {
    const bytes = this.queue.reduce((sum, queued) => sum + queued.bytes, write.bytes)
    if (bytes > this.maxBytes)
      throw new MemoryError(
        'not-durable',
        'The store fails and the queue of pending writes is full, so this was not kept. Repair the store, then save again.',
      )
    this.queue.push({ ...write, since: this.clock(), tries: 1, why: '' })
    this.scheduleRetry()
  }

  has(workspace: string, session: string): boolean {
    return this.writesOf(workspace, session).length > 0
  }

  /** Throws `not-durable` if the session has pending writes. */
  assertNone(workspace: string, session: string): void {
    if (this.has(workspace, session))
      throw new MemoryError(
        'not-durable',
        `Session ${session} is not stored yet: the store fails. Try again when it works; restore_session works now.`,
      )
  }

  /** Returns the session as it will be once its newest pending write succeeds. */
  preview(workspace: string, session: string): SavedSession | undefined {
    return this.writesOf(workspace, session).findLast((queued) => queued.preview !== undefined)?.preview
  }

  /** Returns the preview of the workspace's newest pending save. */
  newestPreview(workspace: string): SavedSession | undefined {
    return this.queue.findLast((queued) => queued.workspace === workspace && queued.preview !== undefined)?.preview
  }

  /**
   * Puts pending sessions before the stored ones on the first page. If the store cannot be read, lists only the pending
   * ones.
   */
  async mergeIntoList(
    workspace: string,
    isFirstPage: boolean,
    readStored: () => Promise<SessionList>,
  ): Promise<SessionList> {
    const pending = [
      ...new Map(
        this.queue.flatMap((queued) =>
          queued.workspace === workspace && queued.preview !== undefined
            ? [[queued.session, queued.preview.metadata]]
            : [],
        ),
      ),
    ]
      .map(([, metadata]) => metadata)
      .reverse()
    if (pending.length === 0) return readStored()
    const { sessions, total } = await readStored().catch((error: unknown) => {
      if (this.isRetryable(error)) return { sessions: [], total: 0 }
      throw error
    })
    const others = sessions.filter(({ sessionId }) => !this.has(workspace, sessionId))
    return {
      sessions: [...(isFirstPage ? pending : []), ...others],
      total: total + pending.length - (sessions.length - others.length),
    }
  }

  status(): readonly PendingWriteStatus[] {
    return [...this.queue.map(toStatus), ...this.lost]
  }

  /** Discards the pending writes of a session; resolves to whether there were any. */
  async discard(workspace: string, session: string): Promise<boolean> {
    const writes = this.writesOf(workspace, session)
    for (const write of writes) this.queue.splice(this.queue.indexOf(write), 1)
    // A write in progress must finish before the caller deletes the session.
    await this.retrying
    return writes.length > 0
  }

  /** Retries all pending writes in order; resolves to the number that still fail. */
  async retry(): Promise<number> {
    if (this.queue.length === 0) return 0
    this.retrying ??= this.writeQueued().finally(() => {
      this.retrying = undefined
      this.scheduleRetry()
    })
    return this.retrying
  }

  /** Retries one last time, then stops. */
  async close(): Promise<void> {
    await this.retry()
    this.closed = true
    this.cancelRetry?.()
  }

  private async writeQueued(): Promise<number> {
    for (let next = this.queue[0]; next !== undefined; next = this.queue[0]) {
      try {
        await next.write()
        this.scheduledRetries = 0
      } catch (error) {
        next.tries++
        next.why = error instanceof Error ? error.message : 'unknown'
        if (this.isRetryable(error)) break
        this.lost.push({ ...toStatus(next), lost: true })
        this.lost.splice(0, this.lost.length - maxLostWrites)
      }
      // The write may have been discarded while it was in progress.
      if (this.queue[0] === next) this.queue.shift()
    }
    return this.queue.length
  }

  private scheduleRetry(): void {
    this.cancelRetry?.()
    this.cancelRetry = undefined
    if (this.closed || this.queue.length === 0) return
    const delay = Math.min(maxRetryDelayMs, backoffDelay(++this.scheduledRetries, minRetryDelayMs))
    this.cancelRetry = this.schedule(delay, () => void this.retry())
  }

  private writesOf(workspace: string, session: string): readonly QueuedWrite[] {
    return this.queue.filter((queued) => queued.workspace === workspace && queued.session === session)
  }
}

const toStatus = ({ workspace, session, since, tries, why }: QueuedWrite): PendingWriteStatus => ({
  workspace,
  session,
  since,
  attempts: tries,
  reason: why,
})
