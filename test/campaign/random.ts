import { seededRandom } from '../fault/random.ts'

/** Choices of a generator; the same seed makes the same choices. */
export class Random {
  private readonly generate: () => number

  constructor(seed: number) {
    this.generate = seededRandom(seed)
  }

  /** A number in [0, 1). */
  next(): number {
    return this.generate()
  }

  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.generate() * (max - min + 1))
  }

  chance(probability: number): boolean {
    return this.generate() < probability
  }

  pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.generate() * choices.length)] as T
  }

  /** Picks a value by its relative weight. */
  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    let left = this.generate() * choices.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, value] of choices) {
      left -= weight
      if (left < 0) return value
    }
    return (choices.at(-1) as readonly [number, T])[1]
  }

  list<T>(min: number, max: number, create: (index: number) => T): T[] {
    return Array.from({ length: this.int(min, max) }, (_, index) => create(index))
  }
}

/** The seed of one input of a run, so that it can be repeated alone. */
export const seedOf = (seed: number, index: number): number => (Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) + index) >>> 0
