/** Keeps the places with the highest scores; of equals, the later one. A heap in two columns with the lowest on top. */
export class Top {
  /** What a score must reach to be kept. */
  bar = Number.NEGATIVE_INFINITY
  private readonly most: number
  private readonly places: Uint32Array
  private readonly scores: Float64Array
  private length = 0

  constructor(most: number) {
    this.most = most
    this.places = new Uint32Array(most)
    this.scores = new Float64Array(most)
  }

  offer(place: number, score: number): void {
    if (score < this.bar || this.most === 0) return
    if (this.length < this.most) this.rise(this.length++, place, score)
    else if (!this.isBelow(score, place, 0)) this.sink(place, score)
    if (this.length === this.most) this.bar = this.scores[0] as number
  }

  /** Best first. */
  best(): { place: number; score: number }[] {
    const kept = Array.from({ length: this.length }, (_, at) => ({
      place: this.places[at] as number,
      score: this.scores[at] as number,
    }))
    return kept.sort((a, b) => b.score - a.score || b.place - a.place)
  }

  private rise(from: number, place: number, score: number): void {
    let at = from
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!this.isBelow(score, place, parent)) break
      this.put(at, this.places[parent] as number, this.scores[parent] as number)
      at = parent
    }
    this.put(at, place, score)
  }

  private sink(place: number, score: number): void {
    let at = 0
    for (let child = 1; child < this.length; child = 2 * at + 1) {
      const right = child + 1
      if (right < this.length && this.isBelow(this.scores[right] as number, this.places[right] as number, child))
        child = right
      if (this.isBelow(score, place, child)) break
      this.put(at, this.places[child] as number, this.scores[child] as number)
      at = child
    }
    this.put(at, place, score)
  }

  private isBelow(score: number, place: number, other: number): boolean {
    const otherScore = this.scores[other] as number
    return score < otherScore || (score === otherScore && place < (this.places[other] as number))
  }

  private put(at: number, place: number, score: number): void {
    this.places[at] = place
    this.scores[at] = score
  }
}
