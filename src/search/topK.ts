import { Heap } from '../domain/heap.ts'

export type ScoredRow = { readonly row: number; readonly score: number }

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

/** Classes of equal width into which scores are counted; the lowest class that is needed is found without sorting. */
const classCount = 1_024

/**
 * Returns at least the `count` rows with the highest scores above 0, best first, or all if there are fewer. Returns
 * more if several are about as good as the last one. For thousands of rows this is faster than a heap.
 */
export function selectHighest(
  scores: Float32Array,
  end: number,
  count: number,
  isEligible: (row: number) => boolean,
): ScoredRow[] {
  let highest = 0
  for (let row = 0; row < end; row++) if ((scores[row] as number) > highest) highest = scores[row] as number
  if (highest === 0) return []
  const factor = (classCount - 1) / highest
  const sizes = new Uint32Array(classCount)
  for (let row = 0; row < end; row++) {
    const index = ((scores[row] as number) * factor) | 0
    sizes[index] = (sizes[index] as number) + 1
  }
  const selected: ScoredRow[] = []
  // Rows that are not eligible are counted too, so that more classes may be needed: then many more at once.
  for (let [above, wanted] = [classCount, count]; above > 0 && selected.length < count; wanted *= 8) {
    let lowest = above - 1
    for (let found = sizes[lowest] as number; found < wanted && lowest > 0; found += sizes[lowest] as number) lowest--
    for (let row = 0; row < end; row++) {
      const score = scores[row] as number
      const index = (score * factor) | 0
      if (index >= lowest && index < above && score > 0 && isEligible(row)) selected.push({ row, score })
    }
    above = lowest
  }
  return selected.sort((a, b) => b.score - a.score || b.row - a.row)
}
