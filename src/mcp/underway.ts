/** Work that has begun: whoever closes what it works on waits for it first. */
export class Underway {
  private readonly running = new Set<Promise<unknown>>()

  /** Begins work and remembers it until it is done. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const promise = work()
    const done = promise.catch(() => undefined).finally(() => this.running.delete(done))
    this.running.add(done)
    return promise
  }

  /** Resolves when nothing is under way. */
  async settled(): Promise<void> {
    while (this.running.size > 0) await Promise.all(this.running)
  }
}
