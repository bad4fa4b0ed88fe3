import type { Millis } from '../domain/entry.ts'
import { kept } from '../domain/getOrCompute.ts'
import { stem, wordsOf } from '../text/words.ts'
import { Column, counts, floats, integers } from './column.ts'
import { dateTerms } from './terms.ts'

/** A text that can be found: of which session it is, where and when it was said, by whom, and its terms. */
export type Spoken = {
  readonly owner: number
  readonly sequence: number
  readonly at: Millis
  readonly name: string | undefined
  readonly terms: readonly string[]
}

/** An index as plain columns, to be kept and taken up again. Postings lie end to end, in the order of the terms. */
export type IndexParts = {
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

/** Where a term occurs: places of messages in the index, and how often in each. */
export type Posting = { readonly places: Column<Uint32Array>; readonly counts: Column<Uint16Array> }

const noPosting = (): Posting => ({ places: new Column(integers), counts: new Column(counts) })

/** After a pause like this a new sitting begins. */
const pause: Millis = 3_600_000

/**
 * Texts that can be found, as columns: for each its place, and for each term the places where it occurs. Texts of
 * several sessions may come in any order; what stands next to what is told by their owner.
 */
export class Texts {
  readonly postings = new Map<string, Posting>()
  readonly owners = new Column(integers)
  readonly sequences = new Column(floats)
  readonly times = new Column(floats)
  readonly lengths = new Column(integers)
  readonly sittings = new Column(integers)
  readonly speakers = new Column(integers)
  /** The places of the texts before and after in the same sitting, plus one. */
  readonly previous = new Column(integers)
  readonly next = new Column(integers)
  /** The first names of those who spoke, with the numbers they have. */
  readonly names = new Map<string, number>([['', 0]])
  /** How many terms there are in all. */
  words = 0
  private readonly newest: number[] = []
  private sitting = 0

  get size(): number {
    return this.lengths.length
  }

  get sessions(): number {
    return this.newest.length
  }

  add({ owner, sequence, at, name, terms }: Spoken): number {
    const place = this.place(owner, sequence, at, terms.length, this.numberOf(name))
    for (const term of terms) this.post(term, place)
    for (const term of dateTerms(at)) this.post(term, place)
    return place
  }

  /** Takes the words of a text out of the count. */
  silence(place: number): void {
    this.words -= this.lengths.values[place] as number
    this.lengths.values[place] = 0
  }

  parts(): IndexParts {
    const postings = [...this.postings.values()]
    const total = postings.reduce((sum, { places }) => sum + places.length, 0)
    const [places, often] = [new Uint32Array(total), new Uint16Array(total)]
    let at = 0
    for (const posting of postings) {
      places.set(posting.places.filled, at)
      often.set(posting.counts.filled, at)
      at += posting.places.length
    }
    const [owners, sequences, times] = [this.owners.filled, this.sequences.filled, this.times.filled]
    const [lengths, speakers, sizes] = [
      this.lengths.filled,
      this.speakers.filled,
      Uint32Array.from(postings, (one) => one.places.length),
    ]
    return {
      names: [...this.names.keys()],
      terms: [...this.postings.keys()],
      owners,
      sequences,
      times,
      lengths,
      speakers,
      sizes,
      places,
      counts: often,
    }
  }

  static of({
    names,
    terms,
    sizes,
    places,
    counts: often,
    owners,
    sequences,
    times,
    lengths,
    speakers,
  }: IndexParts): Texts {
    const texts = new Texts()
    for (const [number, name] of names.entries()) texts.names.set(name, number)
    for (let at = 0; at < owners.length; at++)
      texts.place(
        owners[at] as number,
        sequences[at] as number,
        times[at] as number,
        lengths[at] as number,
        speakers[at] as number,
      )
    let from = 0
    terms.forEach((term, at) => {
      const to = from + (sizes[at] as number)
      texts.postings.set(term, {
        places: Column.over(integers, places.subarray(from, to)),
        counts: Column.over(counts, often.subarray(from, to)),
      })
      from = to
    })
    return texts
  }

  private place(owner: number, sequence: number, at: Millis, length: number, speaker: number): number {
    const place = this.size
    const before = (this.newest[owner] ?? 0) - 1
    const goesOn = before >= 0 && Math.abs(at - (this.times.values[before] as number)) <= pause
    this.owners.push(owner)
    this.sequences.push(sequence)
    this.times.push(at)
    this.lengths.push(length)
    this.sittings.push(goesOn ? (this.sittings.values[before] as number) : this.sitting++)
    this.speakers.push(speaker)
    this.previous.push(goesOn ? before + 1 : 0)
    this.next.push(0)
    if (goesOn) this.next.values[before] = place + 1
    this.newest[owner] = place + 1
    this.words += length
    return place
  }

  private post(term: string, place: number): void {
    const posting = kept(this.postings, term, noPosting)
    const last = posting.places.length - 1
    if (last >= 0 && posting.places.values[last] === place) {
      posting.counts.values[last] = Math.min(65_535, (posting.counts.values[last] as number) + 1)
    } else {
      posting.places.push(place)
      posting.counts.push(1)
    }
  }

  private numberOf(name: string | undefined): number {
    const first = name === undefined ? '' : stem(wordsOf(name)[0] ?? '')
    return kept(this.names, first, () => this.names.size)
  }
}
