/** Lets one piece of work after the other through for each name, in the order in which they came. */
export class Lanes {
  private readonly ends = new Map<string, Promise<unknown>>()

  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const done = (this.ends.get(name) ?? Promise.resolve()).then(work)
    const end: Promise<void> = done.then(
      () => this.leave(name, end),
      () => this.leave(name, end),
    )
    this.ends.set(name, end)
    return done
  }

  private leave(name: string, end: Promise<unknown>): void {
    if (this.ends.get(name) === end) this.ends.delete(name)
  }
}
