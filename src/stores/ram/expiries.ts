import type { Millis } from '../../domain/entry.ts'

/** Something that is over at a time; `slot` is its place here, and nobody else's business. */
export type Expiring = { readonly expiresAt: Millis; slot: number }

/** What is over first, first: a heap, in which whatever is over is found without looking at what is not. */
export class Expiries<T extends Expiring> {
  private readonly heap: T[] = []

  add(one: T): void {
    this.heap.push(one)
    this.rise(one, this.heap.length - 1)
  }

  /** Finds the place of something that has another time now. */
  moved(one: T): void {
    this.rise(one, one.slot)
    this.sink(one, one.slot)
  }

  remove(one: T): void {
    const last = this.heap.pop() as T
    if (last === one) return
    this.put(last, one.slot)
    this.moved(last)
  }

  /** What is over at a given time, in no order. Nothing below something that is not over can be. */
  over(now: Millis): readonly T[] {
    const found: T[] = []
    const look = (slot: number): void => {
      const one = this.heap[slot]
      if (one === undefined || one.expiresAt > now) return
      found.push(one)
      look(2 * slot + 1)
      look(2 * slot + 2)
    }
    look(0)
    return found
  }

  private rise(one: T, from: number): void {
    let slot = from
    for (
      let above = (slot - 1) >> 1;
      slot > 0 && (this.heap[above] as T).expiresAt > one.expiresAt;
      above = (slot - 1) >> 1
    ) {
      this.put(this.heap[above] as T, slot)
      slot = above
    }
    this.put(one, slot)
  }

  private sink(one: T, from: number): void {
    let slot = from
    for (
      let below = this.sooner(slot);
      below !== undefined && below.expiresAt < one.expiresAt;
      below = this.sooner(slot)
    ) {
      const freed = below.slot
      this.put(below, slot)
      slot = freed
    }
    this.put(one, slot)
  }

  /** Of the two below a slot, the one that is over first. */
  private sooner(slot: number): T | undefined {
    const left = this.heap[2 * slot + 1]
    const right = this.heap[2 * slot + 2]
    return left !== undefined && right !== undefined && right.expiresAt < left.expiresAt ? right : left
  }

  private put(one: T, slot: number): void {
    this.heap[slot] = one
    one.slot = slot
  }
}
