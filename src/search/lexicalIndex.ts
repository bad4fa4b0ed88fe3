import type { Millis } from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { splitWords, stem } from '../text/words.ts'
import { Column, float64Array, uint16Array, uint32Array } from './column.ts'
import { dateTerms } from './terms.ts'

/** A text to index. `owner` is the number of its session within the index, `name` its speaker. */
export type IndexedText = {
  readonly owner: number
  readonly sequence: number
  readonly at: Millis
  readonly name: string | undefined
  readonly terms: readonly string[]
}

/**
 * Snapshot of an index as plain columns. The postings of all terms are concatenated in the order of `terms`; `sizes`
 * holds the posting length of each term, `places` the rows and `counts` the term frequencies.
 */
export type LexicalIndexSnapshot = {
  readonly names: readonly string[]
  readonly terms: readonly string[]
  readonly owners: Uint32Array
  readonly sequences: Float64Array
  readonly times: Float64Array
  readonly lengths: Uint32Array
  readonly speakers: Uint32Array
  readonly sizes: Uint32Array
  readonly places: Uint32Array
  readonly counts: Uint16Array
}

/** Posting list of a term: rows in ascending order, and the term frequency in each. */
export type Posting = { readonly rows: Column<Uint32Array>; readonly counts: Column<Uint16Array> }

const emptyPosting = (): Posting => ({ rows: new Column(uint32Array), counts: new Column(uint16Array) })

/** A longer pause between two messages of a session starts a new burst. */
const maxBurstGapMs: Millis = 3_600_000

/**
 * Inverted index of texts, stored as columns. Each text is a row. Texts of several sessions may be added in any order;
 * neighbours are determined within a session. A burst is a run of messages of one session without a pause of over an
 * hour.
 */
export class LexicalIndex {
  readonly postings = new Map<string, Posting>()
  readonly owners = new Column(uint32Array)
  readonly sequences = new Column(float64Array)
  readonly times = new Column(float64Array)
  /** Terms per text. */
  readonly lengths = new Column(uint32Array)
  readonly bursts = new Column(uint32Array)
  readonly speakers = new Column(uint32Array)
  /** Row of the neighbour in the same burst plus one, or 0. */
  readonly previous = new Column(uint32Array)
  readonly next = new Column(uint32Array)
  /** Stemmed first names of the speakers, with their numbers. */
  readonly names = new Map<string, number>([['', 0]])
  totalTerms = 0
  /** Newest row plus one, by owner. */
  private readonly newestRows: number[] = []
  private burstCount = 0

  get size(): number {
    return this.lengths.length
  }

  get sessions(): number {
    return this.newestRows.length
  }

  /** Adds a text and returns its row. */
  add({ owner, sequence, at, name, terms }: IndexedText): number {
    const row = this.addRow(owner, sequence, at, terms.length, this.speakerNumber(name))
    for (const term of terms) this.addTerm(term, row)
    for (const term of dateTerms(at)) this.addTerm(term, row)
    return row
  }

  /** Removes a text from the length statistics. Its postings stay. */
  clearLength(row: number): void {
    this.totalTerms -= this.lengths.values[row] as number
    this.lengths.values[row] = 0
  }

  snapshot(): LexicalIndexSnapshot {
    const postings = [...this.postings.values()]
    const total = postings.reduce((sum, { rows }) => sum + rows.length, 0)
    const [places, counts] = [new Uint32Array(total), new Uint16Array(total)]
    let at = 0
    for (const posting of postings) {
      places.set(posting.rows.used, at)
      counts.set(posting.counts.used, at)
      at += posting.rows.length
    }
    return {
      names: [...this.names.keys()],
      terms: [...this.postings.keys()],
      owners: this.owners.used,
      sequences: this.sequences.used,
      times: this.times.used,
      lengths: this.lengths.used,
      speakers: this.speakers.used,
      sizes: Uint32Array.from(postings, ({ rows }) => rows.length),
      places,
      counts,
    }
  }

  static fromSnapshot(snapshot: LexicalIndexSnapshot): LexicalIndex {
    const { names, terms, sizes, places, counts, owners, sequences, times, lengths, speakers } = snapshot
    const index = new LexicalIndex()
    for (const [number, name] of names.entries()) index.names.set(name, number)
    for (let row = 0; row < owners.length; row++)
      index.addRow(
        owners[row] as number,
        sequences[row] as number,
        times[row] as number,
        lengths[row] as number,
        speakers[row] as number,
      )
    let from = 0
    terms.forEach((term, at) => {
      const to = from + (sizes[at] as number)
      index.postings.set(term, {
        rows: Column.from(uint32Array, places.subarray(from, to)),
        counts: Column.from(uint16Array, counts.subarray(from, to)),
      })
      from = to
    })
    return index
  }

  private addRow(owner: number, sequence: number, at: Millis, length: number, speaker: number): number {
    const row = this.size
    const before = (this.newestRows[owner] ?? 0) - 1
    const continuesBurst = before >= 0 && Math.abs(at - (this.times.values[before] as number)) <= maxBurstGapMs
    this.owners.push(owner)
    this.sequences.push(sequence)
    this.times.push(at)
    this.lengths.push(length)
    this.bursts.push(continuesBurst ? (this.bursts.values[before] as number) : this.burstCount++)
    this.speakers.push(speaker)
    this.previous.push(continuesBurst ? before + 1 : 0)
    this.next.push(0)
    if (continuesBurst) this.next.values[before] = row + 1
    this.newestRows[owner] = row + 1
    this.totalTerms += length
    return row
  }

  private addTerm(term: string, row: number): void {
    const posting = getOrCompute(this.postings, term, emptyPosting)
    const last = posting.rows.length - 1
    if (last >= 0 && posting.rows.values[last] === row) {
      posting.counts.values[last] = Math.min(65_535, (posting.counts.values[last] as number) + 1)
    } else {
      posting.rows.push(row)
      posting.counts.push(1)
    }
  }

  private speakerNumber(name: string | undefined): number {
    const firstName = name === undefined ? '' : stem(splitWords(name)[0] ?? '')
    return getOrCompute(this.names, firstName, () => this.names.size)
  }
}
