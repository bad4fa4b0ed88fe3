import { type Entry, type Millis, sequenceOf } from '../domain/entry.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { Column, counts, floats } from './column.ts'
import { Matrix } from './matrix.ts'
import type { Limits } from './score.ts'
import { Top } from './top.ts'

/** A vector with the entry it stands for. */
export type Pointed = {
  readonly key: Key
  readonly id: string
  readonly kind: Entry['kind']
  readonly at: Millis
  readonly values: Float32Array
}

const kinds: readonly Entry['kind'][] = ['message', 'summary', 'fact', 'knowledge', 'item', 'sealed', 'notes', 'about']

/** The vectors of one embedder, compared one by one: exact, and fast because they lie side by side. */
export class Meaning {
  readonly model: string
  /** Where to go on reading. */
  cursor = 0
  private matrix: Matrix | undefined
  private readonly rows = new Map<string, number>()
  private readonly entries: { readonly key: Key; readonly id: string }[] = []
  private readonly times = new Column(floats)
  private readonly sequences = new Column(floats)
  private readonly kinds = new Column(counts)
  private readonly gone = new Set<number>()

  constructor(model: string) {
    this.model = model
  }

  get size(): number {
    return this.entries.length
  }

  /** Takes a vector; a later one of the same entry takes its place. */
  add({ key, id, kind, at, values }: Pointed): void {
    this.matrix ??= new Matrix(values.length)
    if (values.length !== this.matrix.dimensions) return
    const name = `${formatKey(key)} ${id}`
    const before = this.rows.get(name)
    if (before !== undefined) this.gone.add(before)
    this.rows.set(name, this.matrix.add(values))
    this.entries.push({ key, id })
    this.times.push(at)
    this.sequences.push(sequenceOf(id) ?? 0)
    this.kinds.push(kinds.indexOf(kind))
  }

  /** No longer found: the entry has gone or says something else now. */
  remove(key: Key, id: string): void {
    const row = this.rows.get(`${formatKey(key)} ${id}`)
    if (row !== undefined) this.gone.add(row)
  }

  /** The entries nearest to a vector with their cosines, nearest first; all of those that are equally near at the end. */
  rank(
    values: Float32Array,
    wanted: readonly Entry['kind'][] | undefined,
    limits: Limits,
  ): { readonly key: Key; readonly id: string; readonly score: number }[] {
    if (this.matrix === undefined || values.length !== this.matrix.dimensions) return []
    const scores = this.matrix.scores(values)
    const isWanted = this.filter(wanted, limits)
    const top = new Top(Math.min(limits.most, this.size))
    for (let row = 0; row < scores.length; row++) {
      const score = scores[row] as number
      if (score >= top.bar && isWanted(row)) top.offer(row, score)
    }
    const chosen = top.best()
    if (chosen.length === limits.most) {
      const had = new Set(chosen.map(({ place }) => place))
      for (let row = 0; row < scores.length; row++)
        if (scores[row] === top.bar && !had.has(row) && isWanted(row)) chosen.push({ place: row, score: top.bar })
    }
    return chosen.map(({ place, score }) => ({ ...(this.entries[place] as { key: Key; id: string }), score }))
  }

  private filter(wanted: readonly Entry['kind'][] | undefined, { before, from, to }: Limits): (row: number) => boolean {
    const [times, sequences, numbers] = [this.times.values, this.sequences.values, this.kinds.values]
    const isWanted = kinds.map((kind) => wanted === undefined || wanted.includes(kind))
    return (row) => {
      const at = times[row] as number
      return (
        isWanted[numbers[row] as number] === true &&
        at >= from &&
        at <= to &&
        (sequences[row] as number) < before &&
        !this.gone.has(row)
      )
    }
  }
}
