import { copyText } from '../domain/copyText.ts'
import { Column, uint16Array, uint32Array } from './column.ts'

/** Posting list of a term: passages in ascending order, and the term frequency in each. */
export type Posting = { readonly rows: Column<Uint32Array>; readonly counts: Column<Uint16Array> }

/** A map grows at once, which takes tens of milliseconds for a hundred thousand terms: further ones are in shards. */
const maxFirstTerms = 32_768
const shardCount = 1_024
const maxCount = 65_535

/**
 * Postings by term. Most terms of long or hostile texts occur in one passage only: these have no lists of their own,
 * which would take four times the memory.
 */
export class PostingTable {
  /** Number of each term, in the order of their first occurrence. */
  private readonly first = new Map<string, number>()
  private shards: readonly Map<string, number>[] | undefined
  private readonly terms: string[] = []
  /** Passage of each term and its frequency there, until it occurs in a second passage. */
  private readonly firstRows = new Column(uint32Array)
  private readonly firstCounts = new Column(uint16Array)
  private readonly lists: (Posting | undefined)[] = []
  /** Terms in more than one passage. */
  listCount = 0
  /** Characters of all terms. */
  characters = 0

  get size(): number {
    return this.terms.length
  }

  get(term: string): Posting | undefined {
    const number = this.numberOf(term)
    return number === undefined ? undefined : this.postingAt(number)
  }

  /** Terms with their postings, in the order of their first occurrence. */
  *[Symbol.iterator](): Generator<readonly [string, Posting]> {
    for (const [number, term] of this.terms.entries()) yield [term, this.postingAt(number)]
  }

  /** All terms, in the same order. */
  listTerms(): readonly string[] {
    return this.terms.slice()
  }

  /** Counts an occurrence of a term in a passage, which is the newest one of the index. */
  add(term: string, row: number): void {
    const number = this.numberOf(term)
    if (number === undefined) {
      this.addTerm(copyText(term))
      this.firstRows.push(row)
      this.firstCounts.push(1)
      return
    }
    const list = this.lists[number]
    if (list === undefined && this.firstRows.values[number] === row) increment(this.firstCounts, number)
    else addRow(list ?? this.createList(number), row)
  }

  /** Sets the postings of a new term. */
  restore(term: string, rows: Uint32Array, counts: Uint16Array): void {
    const number = this.addTerm(term)
    this.firstRows.push(rows[0] ?? 0)
    this.firstCounts.push(counts[0] ?? 0)
    if (rows.length === 1) return
    this.lists[number] = { rows: Column.from(uint32Array, rows), counts: Column.from(uint16Array, counts) }
    this.listCount++
  }

  private numberOf(term: string): number | undefined {
    const number = this.first.get(term)
    return number !== undefined || this.shards === undefined ? number : this.shards[shardOf(term)]?.get(term)
  }

  private addTerm(term: string): number {
    const number = this.terms.length
    if (number < maxFirstTerms) this.first.set(term, number)
    else {
      this.shards ??= Array.from({ length: shardCount }, () => new Map<string, number>())
      this.shards[shardOf(term)]?.set(term, number)
    }
    this.terms.push(term)
    this.lists.push(undefined)
    this.characters += term.length
    return number
  }

  private createList(number: number): Posting {
    const list = { rows: new Column(uint32Array), counts: new Column(uint16Array) }
    list.rows.push(this.firstRows.values[number] as number)
    list.counts.push(this.firstCounts.values[number] as number)
    this.lists[number] = list
    this.listCount++
    return list
  }

  private postingAt(number: number): Posting {
    const list = this.lists[number]
    if (list !== undefined) return list
    // A question has thousands of related words, and creating a view takes longer than creating an array.
    const [rows, counts] = [new Uint32Array(1), new Uint16Array(1)]
    rows[0] = this.firstRows.values[number] as number
    counts[0] = this.firstCounts.values[number] as number
    return { rows: Column.from(uint32Array, rows), counts: Column.from(uint16Array, counts) }
  }
}

/** The first, middle and last letter differ enough between the words of any script. */
function shardOf(term: string): number {
  const middle = term.charCodeAt(term.length >> 1)
  const hash = term.length + 7 * term.charCodeAt(0) + 31 * middle + 113 * term.charCodeAt(term.length - 1)
  return hash & (shardCount - 1)
}

function addRow({ rows, counts }: Posting, row: number): void {
  const last = rows.length - 1
  if (rows.values[last] === row) increment(counts, last)
  else {
    rows.push(row)
    counts.push(1)
  }
}

const increment = ({ values }: Column<Uint16Array>, at: number): void => {
  values[at] = Math.min(maxCount, (values[at] as number) + 1)
}
