import type { Millis } from '../domain/entry.ts'
import type { Clock } from '../domain/ports.ts'

/** Clocks that differ by less are left as they are, so that times are stored exactly as they were given. */
const toleranceMs = 1_000
/** Time between two comparisons with the clock of the store. */
const syncIntervalMs = 600_000

/**
 * The clock of a store on a server, which all processes agree on. Between comparisons it follows the steady clock of
 * this process, so that a change of the system time has no effect.
 */
export class StoreClock {
  readonly #readTime: () => Promise<Millis>
  /** Time of the store minus that of the steady clock; until the first comparison, that of this machine. */
  #offset = Date.now() - performance.now()
  #syncedAt = Number.NEGATIVE_INFINITY

  /** `readTime` asks the store for its time. */
  constructor(readTime: () => Promise<Millis>) {
    this.#readTime = readTime
  }

  /** Compares the clocks; half of the round trip is taken as the delay of the reply. */
  async sync(): Promise<void> {
    const before = performance.now()
    this.#syncedAt = before
    const time = await this.#readTime()
    this.#offset = time - (before + performance.now()) / 2
  }

  /** Compares the clocks again if it is time to, without delaying the caller. */
  syncIfDue(): void {
    if (performance.now() - this.#syncedAt > syncIntervalMs) this.sync().catch(() => undefined)
  }

  /**
   * Returns a clock on the time of the store that advances as `local` does. `local` itself is used where it is right.
   * Any clock other than `Date.now`, such as that of a test, is compared only once.
   */
  correct(local: Clock): Clock {
    const isSystemClock = local === Date.now
    const difference = () => this.#now() - local()
    const fixed = difference()
    return () => {
      const offset = isSystemClock ? difference() : fixed
      return Math.abs(offset) <= toleranceMs ? local() : Math.round(local() + offset)
    }
  }

  #now(): number {
    return performance.now() + this.#offset
  }
}
