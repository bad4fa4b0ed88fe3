import type { Millis } from '../domain/entry.ts'
import type { Scope } from '../domain/key.ts'
import type { Clock } from '../domain/ports.ts'
import { backoffDelay } from '../domain/retry.ts'
import { rejectOnAbort } from '../upkeep/modelCall.ts'
import type { OnSessionEnd } from './endEvent.ts'
import type { Outbox, PendingEnd, SessionEndEvent } from './outbox.ts'

type DeliveryDeps = {
  readonly outbox: Outbox
  /** False for a store that ends with this process. */
  readonly outlivesProcess: boolean
  readonly onSessionEnd: OnSessionEnd
  readonly clock: Clock
  /** Creates a signal that aborts after a delay. */
  readonly timeoutSignal: (after: Millis) => AbortSignal
}

const deliveryTimeoutMs = 30_000
const maxConcurrentDeliveries = 16
/** Interval between scans for events that other processes left behind. */
const scopeScanIntervalMs = 3_600_000

/** Delay before the next attempt: one second, doubled after each failure, at most one hour. */
export const deliveryDelay = (attempts: number): Millis => Math.min(3_600_000, backoffDelay(attempts, 1_000))

/** Delivers session end events from the outboxes in the background. Failed events stay there and are retried. */
export class SessionEndDelivery {
  private readonly deps: DeliveryDeps
  /** Scopes that may have pending events. */
  private readonly scopes = new Set<Scope>()
  private readonly queue = new Map<string, PendingEnd>()
  private readonly running = new Map<string, Promise<void>>()
  /** Ids of events whose last attempt failed. */
  private readonly failing = new Set<string>()
  private scannedAt: Millis = Number.NEGATIVE_INFINITY
  private stopped = false

  constructor(deps: DeliveryDeps) {
    this.deps = deps
  }

  /** Schedules delivery of the pending events of a scope and returns at once. */
  notify(scope: Scope): void {
    this.scopes.add(scope)
    this.runInBackground(`${scope} `, () => this.collect(scope, this.deps.clock()))
  }

  /** Looks for pending events of a scope on the next tick. */
  watch(scope: Scope): void {
    this.scopes.add(scope)
  }

  /** Starts the due deliveries and resolves when they have started. */
  async tick(now: Millis): Promise<void> {
    await this.scanScopes(now)
    for (const scope of [...this.scopes]) await this.collect(scope, now)
  }

  /** Number of pending events whose last attempt failed. */
  get failingCount(): number {
    return this.failing.size
  }

  /** Resolves when no delivery is in progress. */
  async whenIdle(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running.values())
  }

  /** Waits for deliveries in progress and starts no more. */
  async stop(): Promise<void> {
    this.stopped = true
    await this.whenIdle()
  }

  /** Finds scopes with pending events which another process may have left behind. */
  private async scanScopes(now: Millis): Promise<void> {
    if (!this.deps.outlivesProcess || now < this.scannedAt + scopeScanIntervalMs) return
    this.scannedAt = now
    for await (const scope of this.deps.outbox.scopes()) this.scopes.add(scope)
  }

  private async collect(scope: Scope, now: Millis): Promise<void> {
    const pending = await this.deps.outbox.pending(scope)
    if (pending.length === 0) this.scopes.delete(scope)
    this.dropDelivered(scope, pending)
    for (const event of pending) if (event.nextAttemptAt <= now) this.queue.set(deliveryId(event), event)
    this.start()
  }

  /** Stops counting failed events that another process has delivered since. */
  private dropDelivered(scope: Scope, pending: readonly PendingEnd[]): void {
    if (this.failing.size === 0) return
    const waiting = new Set(pending.map(deliveryId))
    for (const id of this.failing) if (id.startsWith(`${scope} `) && !waiting.has(id)) this.failing.delete(id)
  }

  /** Starts queued deliveries up to the concurrency limit. */
  private start(): void {
    for (const [name, pending] of this.queue) {
      if (this.stopped || this.running.size >= maxConcurrentDeliveries) return
      this.queue.delete(name)
      this.runInBackground(name, () => this.attempt(pending))
    }
  }

  /** Runs work once per name. Errors are ignored, because the event stays in the outbox and is retried. */
  private runInBackground(name: string, work: () => Promise<void>): void {
    if (this.stopped || this.running.has(name)) return
    const end = (): void => {
      this.running.delete(name)
      this.start()
    }
    this.running.set(name, work().then(end, end))
  }

  private async attempt(pending: PendingEnd): Promise<void> {
    const { outbox, clock } = this.deps
    const event = await outbox.read(pending)
    if (event === undefined) return void this.failing.delete(deliveryId(pending))
    const attempts = pending.attempts + 1
    // Claimed before the attempt, so that no other process delivers it at the same time, nor this one after a crash.
    const nextAttemptAt = clock() + deliveryTimeoutMs + deliveryDelay(attempts)
    if (!(await outbox.claim(pending, nextAttemptAt, clock()))) return
    const isDelivered = await this.deliver(event)
    if (isDelivered) this.failing.delete(deliveryId(pending))
    else this.failing.add(deliveryId(pending))
    if (isDelivered) await outbox.acknowledge(pending)
    else await outbox.reschedule({ ...pending, attempts, nextAttemptAt: clock() + deliveryDelay(attempts) }, clock())
  }

  /** Calls the handler; false if it throws or times out. The error is discarded, because it may quote user content. */
  private async deliver({ id, key, reason, data }: SessionEndEvent): Promise<boolean> {
    const timeout = rejectOnAbort(this.deps.timeoutSignal(deliveryTimeoutMs))
    try {
      await Promise.race([
        Promise.resolve().then(() => this.deps.onSessionEnd(key, data, { id, reason })),
        timeout.promise,
      ])
      return true
    } catch {
      return false
    } finally {
      timeout.dispose()
    }
  }
}

const deliveryId = ({ scope, message }: PendingEnd): string => `${scope} ${message}`
