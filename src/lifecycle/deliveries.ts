import type { Millis } from '../domain/entry.ts'
import type { Scope } from '../domain/key.ts'
import type { Clock, Store } from '../domain/ports.ts'
import { aborted } from '../upkeep/ask.ts'
import type { OnSessionEnd } from './ending.ts'
import type { Outbox, Told, Waiting } from './outbox.ts'

export type DeliveryMeans = {
  readonly outbox: Outbox
  readonly durability: Store['durability']
  readonly onSessionEnd: OnSessionEnd
  readonly clock: Clock
  /** A signal that is given after so much time. */
  readonly expire: (after: Millis) => AbortSignal
}

/** So long may it take to tell of an end. */
const patience = 30_000
/** So many ends are told at a time. */
const abreast = 16
/** How often it is looked for what other processes have left behind. */
const lookEvery = 3_600_000

/** How long to wait after so many attempts that failed: a second, then twice as long each time, at most an hour. */
export const backoff = (attempts: number): Millis => Math.min(3_600_000, 1_000 * 2 ** (attempts - 1))

/** Tells of ends that wait in outboxes, in the background. What fails stays there, and is tried again when its time has come. */
export class Deliveries {
  private readonly means: DeliveryMeans
  /** Where something may wait. */
  private readonly scopes = new Set<Scope>()
  private readonly due = new Map<string, Waiting>()
  private readonly underWay = new Map<string, Promise<void>>()
  /** What was tried in vain so far. */
  private readonly failed = new Set<string>()
  private lookedAt: Millis = Number.NEGATIVE_INFINITY
  private stopped = false

  constructor(means: DeliveryMeans) {
    this.means = means
  }

  /** Takes note that something waits in a scope, and returns at once. */
  heard(scope: Scope): void {
    this.scopes.add(scope)
    this.inBackground(`${scope} `, () => this.collect(scope, this.means.clock()))
  }

  /** Begins with what is due, and resolves when that has begun. */
  async tick(now: Millis): Promise<void> {
    await this.look(now)
    for (const scope of [...this.scopes]) await this.collect(scope, now)
  }

  /** How many ends wait although it was tried to tell of them. */
  get waiting(): number {
    return this.failed.size
  }

  /** Resolves when nothing is under way any more. */
  async settled(): Promise<void> {
    while (this.underWay.size > 0) await Promise.all(this.underWay.values())
  }

  /** Lets what is under way come to its end, and begins nothing more. */
  async stop(): Promise<void> {
    this.stopped = true
    await this.settled()
  }

  /** A store that outlives a process may hold what another one has left behind. */
  private async look(now: Millis): Promise<void> {
    if (this.means.durability === 'ram' || now < this.lookedAt + lookEvery) return
    this.lookedAt = now
    for await (const scope of this.means.outbox.scopes()) this.scopes.add(scope)
  }

  private async collect(scope: Scope, now: Millis): Promise<void> {
    const waiting = await this.means.outbox.waiting(scope)
    if (waiting.length === 0) this.scopes.delete(scope)
    for (const one of waiting) if (one.next <= now) this.due.set(nameOf(one), one)
    this.start()
  }

  /** A few at a time; who has finished makes room for the next. */
  private start(): void {
    for (const [name, waiting] of this.due) {
      if (this.stopped || this.underWay.size >= abreast) return
      this.due.delete(name)
      this.inBackground(name, () => this.attempt(waiting))
    }
  }

  /** Whatever fails stays in the outbox, and is tried again. */
  private inBackground(name: string, work: () => Promise<void>): void {
    if (this.stopped || this.underWay.has(name)) return
    const end = (): void => {
      this.underWay.delete(name)
      this.start()
    }
    this.underWay.set(name, work().then(end, end))
  }

  private async attempt(waiting: Waiting): Promise<void> {
    const { outbox, clock } = this.means
    const told = await outbox.read(waiting)
    if (told === undefined) return void this.failed.delete(nameOf(waiting))
    const attempts = waiting.attempts + 1
    // Noted before: if this process ends meanwhile, or another one looks, it is not told twice at once.
    await outbox.postpone({ ...waiting, attempts, next: clock() + patience + backoff(attempts) }, clock())
    const isHeard = await this.tell(told)
    if (isHeard) this.failed.delete(nameOf(waiting))
    else this.failed.add(nameOf(waiting))
    if (isHeard) await outbox.done(waiting)
    else await outbox.postpone({ ...waiting, attempts, next: clock() + backoff(attempts) }, clock())
  }

  /** Whether somebody has heard of an end. Why not is not told: it may quote what was said. */
  private async tell({ id, key, reason, data }: Told): Promise<boolean> {
    const late = aborted(this.means.expire(patience))
    try {
      await Promise.race([
        Promise.resolve().then(() => this.means.onSessionEnd(key, data, { id, reason })),
        late.promise,
      ])
      return true
    } catch {
      return false
    } finally {
      late.end()
    }
  }
}

const nameOf = ({ scope, message }: Waiting): string => `${scope} ${message}`
