/** Collects the rows with the highest scores; among equal scores, the higher row. A min-heap in two typed arrays. */
export class TopK {
  /** Lowest score that can still enter. */
  threshold = Number.NEGATIVE_INFINITY
  private readonly capacity: number
  private readonly rows: Uint32Array
  private readonly scores: Float64Array
  private length = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.rows = new Uint32Array(capacity)
    this.scores = new Float64Array(capacity)
  }

  push(row: number, score: number): void {
    if (score < this.threshold || this.capacity === 0) return
    if (this.length < this.capacity) this.siftUp(this.length++, row, score)
    else if (!this.isBelow(score, row, 0)) this.replaceMin(row, score)
    if (this.length === this.capacity) this.threshold = this.scores[0] as number
  }

  /** Returns the collected rows, best first. */
  sorted(): { row: number; score: number }[] {
    const entries = Array.from({ length: this.length }, (_, at) => ({
      row: this.rows[at] as number,
      score: this.scores[at] as number,
    }))
    return entries.sort((a, b) => b.score - a.score || b.row - a.row)
  }

  private siftUp(from: number, row: number, score: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.isBelow(score, row, parent)) break
      this.set(at, this.rows[parent] as number, this.scores[parent] as number)
      at = parent
    }
    this.set(at, row, score)
  }

  private replaceMin(row: number, score: number): void {
    let at = 0
    for (let child = 1; child < this.length; child = 2 * at + 1) {
      const right = child + 1
      if (right < this.length && this.isBelow(this.scores[right] as number, this.rows[right] as number, child))
        child = right
      if (this.isBelow(score, row, child)) break
      this.set(at, this.rows[child] as number, this.scores[child] as number)
      at = child
    }
    this.set(at, row, score)
  }

  private isBelow(score: number, row: number, other: number): boolean {
    const otherScore = this.scores[other] as number
    return score < otherScore || (score === otherScore && row < (this.rows[other] as number))
  }

  private set(at: number, row: number, score: number): void {
    this.rows[at] = row
    this.scores[at] = score
  }
}
