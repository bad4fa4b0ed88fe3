import { setTimeout as delay } from 'node:timers/promises'

/** A count takes at most this share of the time, however long it takes. */
const maxTimeShare = 0.01
/** Readers wait for the first count up to this long, and for later ones if the last one was this quick. */
const maxWaitMs = 50

/**
 * Counts something whose size grows with the store. The count is repeated when it is read, in the background and for
 * at most a hundredth of the time, so that a probe costs the same however much is stored.
 */
export class BackgroundCount<T> {
  private readonly count: () => Promise<T>
  private latest: { readonly value: T } | { readonly error: unknown } | undefined
  private running: Promise<void> | undefined
  private lastDurationMs = 0
  private nextAt = 0

  constructor(count: () => Promise<T>) {
    this.count = count
  }

  /** Returns the latest count; undefined while the first one takes longer than a probe should. Throws its error. */
  async read(): Promise<T | undefined> {
    if (this.running === undefined && performance.now() >= this.nextAt) this.running = this.run()
    if (this.running !== undefined && (this.latest === undefined || this.lastDurationMs < maxWaitMs))
      await waitBriefly(this.running)
    if (this.latest !== undefined && 'error' in this.latest) throw this.latest.error
    return this.latest?.value
  }

  private async run(): Promise<void> {
    const startedAt = performance.now()
    try {
      this.latest = { value: await this.count() }
    } catch (error) {
      this.latest = { error }
    }
    this.lastDurationMs = performance.now() - startedAt
    this.nextAt = performance.now() + this.lastDurationMs / maxTimeShare
    this.running = undefined
  }
}

async function waitBriefly(work: Promise<void>): Promise<void> {
  const timer = new AbortController()
  await Promise.race([work, delay(maxWaitMs, undefined, { signal: timer.signal, ref: false }).catch(() => undefined)])
  timer.abort()
}
