type Scored = { readonly place: number; readonly score: number }

/** Keeps the places with the highest scores; of equals, the later one. */
export class Top {
  private readonly most: number
  /** A heap with the lowest on top. */
  private readonly heap: Scored[] = []
  /** What a score must reach to be kept. */
  bar = Number.NEGATIVE_INFINITY

  constructor(most: number) {
    this.most = most
  }

  offer(place: number, score: number): void {
    if (score < this.bar) return
    const offered = { place, score }
    if (this.heap.length < this.most) {
      this.heap.push(offered)
      this.rise(this.heap.length - 1)
    } else {
      const lowest = this.heap[0]
      if (lowest === undefined || !below(lowest, offered)) return
      this.heap[0] = offered
      this.sink(0)
    }
    if (this.heap.length === this.most) this.bar = this.heap[0]?.score ?? this.bar
  }

  /** Best first. */
  best(): Scored[] {
    return [...this.heap].sort((a, b) => (below(a, b) ? 1 : -1))
  }

  private rise(from: number): void {
    for (let at = from; at > 0; ) {
      const parent = (at - 1) >> 1
      if (!this.ordered(parent, at)) return
      at = parent
    }
  }

  private sink(from: number): void {
    for (let at = from; ; ) {
      const left = 2 * at + 1
      const right = left + 1
      const child = right < this.heap.length && below(this.heap[right] as Scored, this.heap[left] as Scored) ? right : left
      if (child >= this.heap.length || !this.ordered(at, child)) return
      at = child
    }
  }

  /** Puts the lower of the two on top; whether they changed places. */
  private ordered(parent: number, child: number): boolean {
    const [upper, lower] = [this.heap[parent] as Scored, this.heap[child] as Scored]
    if (!below(lower, upper)) return false
    this.heap[parent] = lower
    this.heap[child] = upper
    return true
  }
}

const below = (a: Scored, b: Scored): boolean => a.score < b.score || (a.score === b.score && a.place < b.place)
