/** Binary heap: the top is the item that comes before all others. */
export class Heap<T> {
  private readonly items: T[] = []
  private readonly isBefore: (a: T, b: T) => boolean
  private readonly onMove: (item: T, index: number) => void

  /** `onMove` reports each new position of an item, which `update` and `remove` need. */
  constructor(isBefore: (a: T, b: T) => boolean, onMove: (item: T, index: number) => void = () => undefined) {
    this.isBefore = isBefore
    this.onMove = onMove
  }

  get size(): number {
    return this.items.length
  }

  /** Returns the first item without removing it. */
  get top(): T | undefined {
    return this.items[0]
  }

  push(item: T): void {
    this.siftUp(item, this.items.length)
  }

  /** Removes and returns the first item. */
  pop(): T | undefined {
    const top = this.items[0]
    if (top !== undefined) this.remove(0)
    return top
  }

  /** Replaces the first item; faster than `pop` and `push`. */
  replaceTop(item: T): void {
    this.siftDown(item, 0)
  }

  /** Restores the order after the item at an index has changed. */
  update(index: number): void {
    const item = this.items[index] as T
    this.siftDown(item, this.siftUp(item, index))
  }

  /** Removes the item at an index. */
  remove(index: number): void {
    const last = this.items.pop() as T
    if (index === this.items.length) return
    this.siftDown(last, this.siftUp(last, index))
  }

  /** Lists the items that match, in no order. If an item matches, all before it must match: only those are visited. */
  listWhile(matches: (item: T) => boolean): readonly T[] {
    const found: T[] = []
    const visit = (index: number): void => {
      const item = this.items[index]
      if (item === undefined || !matches(item)) return
      found.push(item)
      visit(2 * index + 1)
      visit(2 * index + 2)
    }
    visit(0)
    return found
  }

  /** Moves an item towards the top from a free index; returns its index. */
  private siftUp(item: T, from: number): number {
    let index = from
    while (index > 0) {
      const parentIndex = (index - 1) >> 1
      const parent = this.items[parentIndex] as T
      if (!this.isBefore(item, parent)) break
      this.setAt(index, parent)
      index = parentIndex
    }
    this.setAt(index, item)
    return index
  }

  private siftDown(item: T, from: number): void {
    const { items } = this
    let index = from
    for (let child = 2 * index + 1; child < items.length; child = 2 * index + 1) {
      if (child + 1 < items.length && this.isBefore(items[child + 1] as T, items[child] as T)) child += 1
      if (!this.isBefore(items[child] as T, item)) break
      this.setAt(index, items[child] as T)
      index = child
    }
    this.setAt(index, item)
  }

  private setAt(index: number, item: T): void {
    this.items[index] = item
    this.onMove(item, index)
  }
}
