import type { Clock } from '../../domain/ports.ts'
import type { RedisConnection } from './connection.ts'

/** Clocks that differ by less are left as they are, so that times are stored exactly as they were given. */
const toleranceMs = 1_000
/** Time between two comparisons with the clock of Redis. */
const syncIntervalMs = 600_000

/**
 * The clock of Redis, which all servers agree on. Between comparisons it follows the steady clock of this process, so
 * that a change of the system time has no effect.
 */
export class RedisClock {
  readonly #connection: RedisConnection
  readonly #key: string
  /** Time of Redis minus that of the steady clock. */
  #offset = 0
  #syncedAt = Number.NEGATIVE_INFINITY

  constructor(connection: RedisConnection, key: string) {
    this.#connection = connection
    this.#key = key
  }

  /** Compares the clocks; half of the round trip is taken as the delay of the reply. */
  async sync(): Promise<void> {
    const before = performance.now()
    this.#syncedAt = before
    const [seconds, micros] = (await this.#connection.run(this.#key, ['TIME'], true)) as readonly [string, string]
    const middle = (before + performance.now()) / 2
    this.#offset = Number(seconds) * 1_000 + Number(micros) / 1_000 - middle
  }

  /** Compares the clocks again if it is time to, without delaying the caller. */
  syncIfDue(): void {
    if (performance.now() - this.#syncedAt > syncIntervalMs) this.sync().catch(() => undefined)
  }

  /**
   * Returns a clock on the time of Redis that advances as `local` does. `local` itself is used where it is right. Any
   * clock other than `Date.now`, such as that of a test, is compared only once.
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
