import type { Json } from '../../src/domain/entry.ts'

/** A violated expectation. `kind` names the class of the failure and is the same after shrinking; `detail` describes it. */
export type Finding = {
  readonly kind: string
  readonly detail: string
  readonly input: Json
  /** A longer input that includes what happened before, in case `input` alone does not fail. */
  readonly longInput?: Json
}

/** Tries inputs again, in an environment of their own. */
export type Replayer = AsyncDisposable & { replay(input: Json): Promise<readonly Finding[]> }

/** Figures of a run by name. */
export type Figures = Readonly<Record<string, number>>

export const partStores = ['ram', 'sqlite', 'encrypted', 'postgres', 'redis'] as const
export type PartStore = (typeof partStores)[number]

export type RunOptions = {
  readonly seed: number
  /** Number of inputs to try. */
  readonly inputs: number
  /** Store of the parts that can use several; default: RAM, SQLite and encrypted SQLite. */
  readonly store?: PartStore | undefined
  /** True when the run must stop although inputs are left. */
  readonly isOver: () => boolean
  /** Receives the figures of the part while it runs. */
  readonly counter: Counter
  /** Called with the number of inputs tried so far. */
  readonly onProgress: (done: number) => void
  readonly onFinding: (finding: Finding) => void
}

/** One part of the campaign. */
export type Part = {
  readonly name: string
  /** Unit of the count, such as `inputs` or `probes`. */
  readonly unit: string
  readonly description: string
  /** Number of inputs of a full run, and of the slice in the ordinary test suite. */
  readonly fullCount: number
  readonly sliceCount: number
  /** Most processes that may work on the part at once. */
  readonly maxWorkers: number
  /** Attempts to reduce an input that fails; 0 if its parts do not fail alone. */
  readonly maxShrinkTries: number
  /** Returns the number of inputs that were tried. */
  run(options: RunOptions): Promise<number>
  openReplayer(): Promise<Replayer>
}

/** Counts events by name. */
export class Counter {
  private readonly counts = new Map<string, number>()

  add(name: string, count = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + count)
  }

  /** Keeps the largest value. */
  max(name: string, value: number): void {
    this.counts.set(name, Math.max(this.counts.get(name) ?? 0, value))
  }

  get figures(): Figures {
    return Object.fromEntries([...this.counts].sort(([a], [b]) => a.localeCompare(b)))
  }
}
