/** Offsets of the rows of a list: measured heights, and an estimate for rows that were never on the screen. */
export class RowOffsets {
  private readonly estimatedHeight: number
  private heights = new Float64Array(0)
  private offsets = new Float64Array(1)
  /** Offsets up to this row are up to date. */
  private validUntil = 0

  constructor(estimatedHeight: number) {
    this.estimatedHeight = estimatedHeight
  }

  get count(): number {
    return this.heights.length
  }

  resize(count: number): void {
    const { heights } = this
    if (heights.length === count) return
    this.heights = new Float64Array(count).fill(this.estimatedHeight)
    this.heights.set(heights.subarray(0, count))
    this.offsets = new Float64Array(count + 1)
    this.validUntil = 0
  }

  /** Stores the height of a row. Returns false if it had that height already. */
  setHeight(index: number, height: number): boolean {
    if (index >= this.heights.length || this.heights[index] === height) return false
    this.heights[index] = height
    this.validUntil = Math.min(this.validUntil, index)
    return true
  }

  /** Offset of a row from the top; that of `count` is the end of the last row. */
  at(index: number): number {
    const { heights, offsets } = this
    for (let row = this.validUntil; row < heights.length; row++)
      offsets[row + 1] = (offsets[row] as number) + (heights[row] as number)
    this.validUntil = heights.length
    return offsets[Math.min(index, heights.length)] as number
  }

  /** Row at an offset, by binary search. */
  find(offset: number): number {
    let [low, high] = [0, this.heights.length]
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.at(middle) <= offset) low = middle
      else high = middle - 1
    }
    return Math.min(low, Math.max(0, this.heights.length - 1))
  }
}
