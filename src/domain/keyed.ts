/** Releases a lock; further calls do nothing. */
export type Release = () => void

/** Runs one task at a time per name, in the order of the calls. */
export class KeyedMutex {
  /** Tasks waiting behind the current holder of each name. */
  private readonly waiting = new Map<string, (() => void)[]>()

  /** Takes the lock of a name, at once when it is free. The position in the queue is taken before the first await. */
  async acquire(name: string): Promise<Release> {
    const queue = this.waiting.get(name)
    if (queue === undefined) this.waiting.set(name, [])
    else await new Promise<void>((resume) => queue.push(resume))
    let isHeld = true
    return () => {
      if (isHeld) this.releaseNext(name)
      isHeld = false
    }
  }

  /** True while the lock of a name is held. */
  isHeld(name: string): boolean {
    return this.waiting.has(name)
  }

  async run<T>(name: string, task: () => Promise<T>): Promise<T> {
    const release = await this.acquire(name)
    try {
      return await task()
    } finally {
      release()
    }
  }

  private releaseNext(name: string): void {
    const next = this.waiting.get(name)?.shift()
    if (next === undefined) this.waiting.delete(name)
    else next()
  }
}

/** Returns the value stored under a key; computes and stores it first if it is missing. */
export function getOrCompute<K, V>(
  map: { get(key: K): V | undefined; set(key: K, value: V): unknown },
  key: K,
  compute: (key: K) => V,
): V {
  const existing = map.get(key)
  if (existing !== undefined) return existing
  const computed = compute(key)
  map.set(key, computed)
  return computed
}
