import { type Entry, type Millis, parseMessageId } from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { Column, float64Array, uint16Array } from './column.ts'
import { Matrix } from './matrix.ts'
import type { RankLimits } from './ranking.ts'
import { TopK } from './topK.ts'

/** A vector with the entry it was computed from. */
export type IndexedVector = {
  readonly key: Key
  readonly id: string
  readonly kind: Entry['kind']
  readonly at: Millis
  readonly values: Float32Array
}

const kinds: readonly Entry['kind'][] = [
  'message',
  'summary',
  'fact',
  'knowledge',
  'item',
  'encrypted',
  'notes',
  'about',
]

/** Estimated memory of an entry besides its vector. */
const entryBytes = 400

/** Exact nearest-neighbour search over the vectors of one embedder. */
export class VectorIndex {
  readonly model: string
  /** Position in the store from which the next vectors are read. */
  cursor = 0
  private matrix: Matrix | undefined
  private readonly rows = new Map<string, number>()
  private readonly entries: { readonly key: Key; readonly id: string }[] = []
  private readonly times = new Column(float64Array)
  private readonly sequences = new Column(float64Array)
  private readonly kinds = new Column(uint16Array)
  private readonly removed = new Set<number>()

  constructor(model: string) {
    this.model = model
  }

  /** Estimated memory. */
  get bytes(): number {
    return this.entries.length * (entryBytes + 4 * (this.matrix?.dimensions ?? 0))
  }

  /** Adds a vector, replacing an earlier one of the same entry. Ignores a vector with other dimensions. */
  add({ key, id, kind, at, values }: IndexedVector): void {
    this.matrix ??= new Matrix(values.length)
    if (values.length !== this.matrix.dimensions) return
    const name = `${formatKey(key)} ${id}`
    const before = this.rows.get(name)
    if (before !== undefined) {
      this.matrix.replace(before, values)
      this.times.values[before] = at
      this.kinds.values[before] = kinds.indexOf(kind)
      this.removed.delete(before)
      return
    }
    this.rows.set(name, this.matrix.add(values))
    this.entries.push({ key, id })
    this.times.push(at)
    this.sequences.push(parseMessageId(id) ?? 0)
    this.kinds.push(kinds.indexOf(kind))
  }

  /** Excludes an entry that was erased or whose text changed. */
  remove(key: Key, id: string): void {
    const row = this.rows.get(`${formatKey(key)} ${id}`)
    if (row !== undefined) this.removed.add(row)
  }

  /** Returns the nearest entries with their cosines, nearest first. Includes all ties of the last one. */
  rank(
    values: Float32Array,
    wantedKinds: readonly Entry['kind'][] | undefined,
    limits: RankLimits,
  ): { readonly key: Key; readonly id: string; readonly score: number }[] {
    if (this.matrix === undefined || values.length !== this.matrix.dimensions) return []
    const scores = this.matrix.scores(values)
    const matches = this.createFilter(wantedKinds, limits)
    const top = new TopK(Math.min(limits.maxResults, this.entries.length))
    for (let row = 0; row < scores.length; row++) {
      const score = scores[row] as number
      if (score >= top.threshold && matches(row)) top.push(row, score)
    }
    const selected = top.sorted()
    if (selected.length === limits.maxResults) {
      const present = new Set(selected.map(({ row }) => row))
      for (let row = 0; row < scores.length; row++)
        if (scores[row] === top.threshold && !present.has(row) && matches(row))
          selected.push({ row, score: top.threshold })
    }
    return selected.map(({ row, score }) => ({ ...(this.entries[row] as { key: Key; id: string }), score }))
  }

  private createFilter(
    wantedKinds: readonly Entry['kind'][] | undefined,
    { before, from, to }: RankLimits,
  ): (row: number) => boolean {
    const [times, sequences, kindNumbers] = [this.times.values, this.sequences.values, this.kinds.values]
    const isWantedKind = kinds.map((kind) => wantedKinds === undefined || wantedKinds.includes(kind))
    return (row) => {
      const at = times[row] as number
      return (
        isWantedKind[kindNumbers[row] as number] === true &&
        at >= from &&
        at <= to &&
        (sequences[row] as number) < before &&
        !this.removed.has(row)
      )
    }
  }
}
