/** Places by their worth, the best first; of equals, the later place. A heap with the best on top. */
export class Queue {
  readonly #heap: { readonly place: number; readonly worth: number }[] = []

  add(place: number, worth: number): void {
    const entry = { place, worth }
    let at = this.#heap.push(entry) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.#isBefore(at, parent)) break
      this.#swap(at, parent)
      at = parent
    }
  }

  /** The best, which is then no longer in it. */
  take(): { readonly place: number; readonly worth: number } | undefined {
    const last = this.#heap.length - 1
    if (last > 0) this.#swap(0, last)
    const best = this.#heap.pop()
    let at = 0
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2]
      let next = at
      if (left < last && this.#isBefore(left, next)) next = left
      if (right < last && this.#isBefore(right, next)) next = right
      if (next === at) return best
      this.#swap(at, next)
      at = next
    }
  }

  #isBefore(at: number, other: number): boolean {
    const [one, two] = [this.#heap[at], this.#heap[other]]
    if (one === undefined || two === undefined) return false
    return one.worth > two.worth || (one.worth === two.worth && one.place > two.place)
  }

  #swap(at: number, other: number): void {
    const kept = this.#heap[at] as { place: number; worth: number }
    this.#heap[at] = this.#heap[other] as { place: number; worth: number }
    this.#heap[other] = kept
  }
}
