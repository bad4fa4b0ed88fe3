import type { Millis } from '../../domain/entry.ts'

/** An item with an expiry time; `heapIndex` is its position and is maintained by the heap. */
export type HeapItem = { readonly expiresAt: Millis; heapIndex: number }

/** Binary min-heap by expiry time: expired items are found without visiting the others. */
export class ExpiryHeap<T extends HeapItem> {
  private readonly heap: T[] = []

  add(item: T): void {
    this.heap.push(item)
    this.siftUp(item, this.heap.length - 1)
  }

  /** Restores the order after an item's expiry time has changed. */
  update(item: T): void {
    this.siftUp(item, item.heapIndex)
    this.siftDown(item, item.heapIndex)
  }

  remove(item: T): void {
    const last = this.heap.pop() as T
    if (last === item) return
    this.setAt(item.heapIndex, last)
    this.update(last)
  }

  /** Returns the items that have expired at `now`, in no order. */
  listExpired(now: Millis): readonly T[] {
    const expired: T[] = []
    const visit = (index: number): void => {
      const item = this.heap[index]
      // Children never expire before their parent.
      if (item === undefined || item.expiresAt > now) return
      expired.push(item)
      visit(2 * index + 1)
      visit(2 * index + 2)
    }
    visit(0)
    return expired
  }

  private siftUp(item: T, from: number): void {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.heap[parentIndex] as T
      if (parent.expiresAt <= item.expiresAt) break
      this.setAt(index, parent)
      index = parentIndex
    }
    this.setAt(index, item)
  }

  private siftDown(item: T, from: number): void {
    let index = from
    for (;;) {
      const child = this.earlierChild(index)
      if (child === undefined || child.expiresAt >= item.expiresAt) break
      const childIndex = child.heapIndex
      this.setAt(index, child)
      index = childIndex
    }
    this.setAt(index, item)
  }

  private earlierChild(index: number): T | undefined {
    const left = this.heap[2 * index + 1]
    const right = this.heap[2 * index + 2]
    return left !== undefined && right !== undefined && right.expiresAt < left.expiresAt ? right : left
  }

  private setAt(index: number, item: T): void {
    this.heap[index] = item
    item.heapIndex = index
  }
}
