/** Lets one piece of work after the other through for each name, in the order in which they came. */
export class Lanes {
  private readonly ends = new Map<string, Promise<unknown>>()

  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const done = this.ends.get(name)?.then(work) ?? work()
    const leave = (): void => {
      if (this.ends.get(name) === end) this.ends.delete(name)
    }
    const end = done.then(leave, leave)
    this.ends.set(name, end)
    return done
  }
}
