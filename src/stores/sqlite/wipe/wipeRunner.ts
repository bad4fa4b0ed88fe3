import { setTimeout as wait } from 'node:timers/promises'
import type { Millis } from '../../../domain/entry.ts'
import { MemoryError } from '../../../domain/error.ts'
import type { LongReads } from '../../../domain/fileMaintenance.ts'
import type { WriteQueue } from '../writeQueue.ts'
import { createLongReads } from './longReads.ts'

/** Passes that nobody waits for take at most one part in this many of the time. */
const idleTimesPassDuration = 20

/** Attempts to truncate the log while other connections read it. */
const maxTruncateAttempts = 50
/** Pause between two attempts, in which others can write: a pass of another process needs that to end. */
const truncateRetryMs = 50

/** Runs passes of `wipeFile` in the worker thread, one at a time. */
export class WipeRunner {
  private readonly queue: WriteQueue
  readonly longReads: LongReads
  private running: Promise<void> | undefined
  /** Pass that begins after the running one, for all that have asked for it since. */
  private next: Promise<void> | undefined
  /** Something may have been erased since the last pass: true at first, because an earlier process may have failed. */
  private isNeeded = true
  private dueAt: Millis = 0

  constructor(queue: WriteQueue, longReads = createLongReads()) {
    this.queue = queue
    this.longReads = longReads
  }

  /** Marks a pass as needed: something is about to be erased in the writer thread, or was by another connection. */
  noteErasure(): void {
    this.isNeeded = true
  }

  /** Resolves after a pass that began after the call. Calls during a pass share the next one. */
  wipe(): Promise<void> {
    if (this.running === undefined) return this.start()
    this.next ??= this.settled().then(() => {
      this.next = undefined
      return this.running ?? this.start()
    })
    return this.next
  }

  /** Runs a pass if something was erased since the last one, unless that was too recently or others use the file. */
  async wipeIfDue(): Promise<void> {
    if (!this.isNeeded || this.running !== undefined || performance.now() < this.dueAt) return
    await this.start().catch((error: unknown) => {
      if (!(error instanceof MemoryError && error.code === 'busy')) throw error
    })
  }

  /** Empties the log after the running pass, which keeps it, and after long reads. Returns false if others use it. */
  async truncateLog(): Promise<boolean> {
    await this.settled()
    const result = await this.longReads.exclude(() => this.queue.submit({ truncateLog: true }))
    return 'isLogTruncated' in result && result.isLogTruncated === true
  }

  /** Empties the log, however long others use it. Rejects with `busy` if that is too long. */
  async emptyLog(path: string): Promise<void> {
    for (let attempts = 0; attempts < maxTruncateAttempts; attempts++) {
      await wait(truncateRetryMs)
      if (await this.truncateLog()) return
    }
    throw new MemoryError(
      'busy',
      `The data is erased, but a reader of ${path} keeps it in the log. Repeat the erasure in a moment.`,
    )
  }

  /** Resolves at the end of the running pass, whether it fails or not. */
  async settled(): Promise<void> {
    await this.running?.catch(() => undefined)
  }

  /** Resolves when all passes that were asked for have ended. */
  async drain(): Promise<void> {
    while (this.running !== undefined || this.next !== undefined) await Promise.allSettled([this.running, this.next])
  }

  private start(): Promise<void> {
    this.isNeeded = false
    const running = this.longReads
      .exclude(() => this.run())
      .finally(() => {
        this.running = undefined
      })
    this.running = running
    return running
  }

  private async run(): Promise<void> {
    const startedAt = performance.now()
    try {
      for (;;) {
        const result = await this.queue.submit({ wipe: true })
        if (!('isWiped' in result) || result.isWiped) return
        if (result.waitMs > 0) await wait(result.waitMs)
      }
    } catch (error) {
      this.isNeeded = true
      throw error
    } finally {
      const now = performance.now()
      this.dueAt = now + (now - startedAt) * idleTimesPassDuration
    }
  }
}
