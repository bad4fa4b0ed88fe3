import { Column, uint16Array, uint32Array } from './column.ts'
import { RecordList } from './recordList.ts'
import { TermTable } from './termTable.ts'

/** Posting list of a term: passages in ascending order, and the term frequency in each. */
export type Posting = { readonly rows: Column<Uint32Array>; readonly counts: Column<Uint16Array> }

const maxCount = 65_535
/** A term in more passages than this has a list of its own. */
const maxChainLength = 16
/** Measured memory of a list besides its occurrences. */
const listBytes = 500

/** Fields of the record of a term: number of its newest occurrence or, if the length is 0, of its list. */
const newestField = 0
const lengthField = 1

/** Fields of the record of an occurrence: passage, frequency of the term there, and the occurrence before it. */
const rowField = 0
const countField = 1
const previousField = 2

/**
 * Postings by term. Most terms of long texts occur in few passages only: these are chains of numbers, because a list of
 * each would take ten times the memory and fill V8's heap with objects.
 */
export class PostingTable {
  private readonly terms = new TermTable()
  private readonly records = new RecordList(2)
  private readonly occurrences = new RecordList(3)
  private readonly lists: Posting[] = []

  get size(): number {
    return this.terms.size
  }

  /** Characters of all terms. */
  get characters(): number {
    return this.terms.characters
  }

  /** Estimated memory, without the occurrences in lists. */
  get bytes(): number {
    return this.terms.bytes + this.records.bytes + this.occurrences.bytes + this.lists.length * listBytes
  }

  get(term: string): Posting | undefined {
    const number = this.terms.find(term)
    return number === undefined ? undefined : this.postingAt(number)
  }

  /** Terms with their postings, in the order of their first occurrence. */
  *[Symbol.iterator](): Generator<readonly [string, Posting]> {
    for (let number = 0; number < this.size; number++) yield [this.terms.termAt(number), this.postingAt(number)]
  }

  /** Counts an occurrence of a term in a passage, which is the newest one of the index. */
  add(term: string, passage: number): void {
    const number = this.terms.findOrAdd(term)
    if (number === this.records.length) {
      this.records.push()
      this.extendChain(number, passage, 1)
    } else if (this.records.get(number, lengthField) === 0) this.extendList(this.listOf(number), passage)
    else this.addToChain(number, passage)
  }

  /** Sets the postings of a new term. They are copied: a view of them would keep a whole snapshot in memory. */
  restore(term: string, rows: Uint32Array, counts: Uint16Array): void {
    const number = this.terms.findOrAdd(term)
    this.records.push()
    if (rows.length > maxChainLength)
      this.setList(number, {
        rows: Column.from(uint32Array, rows.slice()),
        counts: Column.from(uint16Array, counts.slice()),
      })
    else for (const [at, passage] of rows.entries()) this.extendChain(number, passage, counts[at] as number)
  }

  private addToChain(number: number, passage: number): void {
    const occurrence = this.records.get(number, newestField)
    if (this.occurrences.get(occurrence, rowField) === passage)
      this.occurrences.set(occurrence, countField, Math.min(maxCount, this.occurrences.get(occurrence, countField) + 1))
    else if (this.records.get(number, lengthField) < maxChainLength) this.extendChain(number, passage, 1)
    else {
      this.setList(number, this.collectChain(number))
      this.extendList(this.listOf(number), passage)
    }
  }

  private extendChain(number: number, passage: number, frequency: number): void {
    const occurrence = this.occurrences.push()
    this.occurrences.set(occurrence, rowField, passage)
    this.occurrences.set(occurrence, countField, frequency)
    this.occurrences.set(occurrence, previousField, this.records.get(number, newestField))
    this.records.set(number, newestField, occurrence)
    this.records.set(number, lengthField, this.records.get(number, lengthField) + 1)
  }

  /** Gives a term a list. Its chain stays, unused: that is less than the list. */
  private setList(number: number, list: Posting): void {
    this.records.set(number, newestField, this.lists.push(list) - 1)
    this.records.set(number, lengthField, 0)
  }

  private listOf(number: number): Posting {
    return this.lists[this.records.get(number, newestField)] as Posting
  }

  private postingAt(number: number): Posting {
    return this.records.get(number, lengthField) === 0 ? this.listOf(number) : this.collectChain(number)
  }

  private collectChain(number: number): Posting {
    const size = this.records.get(number, lengthField)
    const [rows, counts] = [new Uint32Array(size), new Uint16Array(size)]
    let occurrence = this.records.get(number, newestField)
    for (let at = size - 1; at >= 0; at--) {
      rows[at] = this.occurrences.get(occurrence, rowField)
      counts[at] = this.occurrences.get(occurrence, countField)
      occurrence = this.occurrences.get(occurrence, previousField)
    }
    return { rows: Column.from(uint32Array, rows), counts: Column.from(uint16Array, counts) }
  }

  private extendList({ rows, counts }: Posting, passage: number): void {
    const last = rows.length - 1
    if (rows.values[last] === passage) counts.values[last] = Math.min(maxCount, (counts.values[last] as number) + 1)
    else {
      rows.push(passage)
      counts.push(1)
    }
  }
}
