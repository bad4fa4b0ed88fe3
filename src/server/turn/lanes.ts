/** Lets one piece of work after the other through for each name, in the order in which they came. */
export class Lanes {
  /** Who waits behind the one that is let through. */
  private readonly waiting = new Map<string, (() => void)[]>()

  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const free = this.enter(name)
    if (free !== undefined) await free
    try {
      return await work()
    } finally {
      this.leave(name)
    }
  }

  /** Resolves when the lane is free; nothing, if it is now. Whoever enters must leave. */
  enter(name: string): Promise<void> | undefined {
    const waiting = this.waiting.get(name)
    if (waiting !== undefined) return new Promise((resume) => waiting.push(resume))
    this.waiting.set(name, [])
    return undefined
  }

  leave(name: string): void {
    const next = this.waiting.get(name)?.shift()
    if (next === undefined) this.waiting.delete(name)
    else next()
  }
}
