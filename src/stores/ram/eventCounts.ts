import { LruCache } from '../../domain/lruCache.ts'

/** Names that are counted one by one, at about 200 bytes each. */
const defaultMaxNames = 50_000

/**
 * Counts events by name, such as the erasures of a session. A count never falls: names that were dropped because there
 * are too many, and names never seen, share the highest count that was dropped.
 */
export class EventCounts {
  private readonly counts = new LruCache<string, number>()
  private readonly maxNames: number
  private floor = 0

  constructor(maxNames = defaultMaxNames) {
    this.maxNames = maxNames
  }

  /** Number of names that are counted one by one. */
  get size(): number {
    return this.counts.size
  }

  get(name: string): number {
    return this.counts.peek(name) ?? this.floor
  }

  increment(name: string): void {
    this.counts.set(name, this.get(name) + 1)
    const oldest = this.counts.size > this.maxNames ? this.counts.oldest : undefined
    if (oldest === undefined) return
    this.counts.delete(oldest[0])
    this.floor = Math.max(this.floor, oldest[1])
  }
}
