import type { WordTable } from '../domain/ports.ts'

/**
 * Stems of a word table that occur in an index, one bit each. A long question has tens of thousands of related stems,
 * of which an index has few. Looking up the bits first halves the time of a search in an index of 130,000 terms.
 */
export class KnownStems {
  private readonly table: WordTable
  private bits = new Uint8Array(256)

  constructor(table: WordTable) {
    this.table = table
  }

  add(row: number): void {
    const at = row >> 3
    if (at >= this.bits.length) {
      const larger = new Uint8Array(2 * at)
      larger.set(this.bits)
      this.bits = larger
    }
    this.bits[at] = (this.bits[at] as number) | (1 << (row & 7))
  }

  has(row: number): boolean {
    return (((this.bits[row >> 3] ?? 0) >> (row & 7)) & 1) === 1
  }

  /** Adds the rows of terms and returns the sum of their vectors. */
  addTerms(terms: readonly string[]): Float32Array {
    const sum = new Float32Array(this.table.dimensions)
    for (const term of terms) {
      const row = this.table.rowOf(term)
      if (row === undefined) continue
      this.add(row)
      this.table.addTo(sum, row)
    }
    return sum
  }
}
