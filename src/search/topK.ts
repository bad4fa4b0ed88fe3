import { Heap } from '../domain/heap.ts'

type ScoredRow = { readonly row: number; readonly score: number }

const isLower = (a: ScoredRow, b: ScoredRow): boolean => a.score < b.score || (a.score === b.score && a.row < b.row)

/** Collects the rows with the highest scores; among equal scores, the higher row. */
export class TopK {
  /** Lowest score that can still enter. */
  threshold = Number.NEGATIVE_INFINITY
  private readonly capacity: number
  private readonly heap = new Heap(isLower)

  constructor(capacity: number) {
    this.capacity = capacity
  }

  push(row: number, score: number): void {
    if (score < this.threshold) return
    const { heap, capacity } = this
    const scored = { row, score }
    if (heap.size < capacity) heap.push(scored)
    else if (heap.top !== undefined && isLower(heap.top, scored)) heap.replaceTop(scored)
    if (heap.size === capacity) this.threshold = heap.top?.score ?? Number.POSITIVE_INFINITY
  }

  /** Returns the collected rows, best first. */
  sorted(): ScoredRow[] {
    return this.heap.listWhile(() => true).toSorted((a, b) => b.score - a.score || b.row - a.row)
  }
}
