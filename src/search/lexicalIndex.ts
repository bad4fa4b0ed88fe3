import type { Millis, Tokens } from '../domain/entry.ts'
import { getOrCompute } from '../domain/keyed.ts'
import type { Work } from '../domain/work.ts'
import { splitWords, stem } from '../text/words.ts'
import { Column, float64Array, uint16Array, uint32Array } from './column.ts'
import type { IndexedPassage } from './passageTerms.ts'
import { PostingTable } from './postingTable.ts'
import { dateTerms } from './terms.ts'

/** A message to index. `owner` is the number of its session within the index, `name` its speaker. */
export type IndexedText = {
  readonly owner: number
  readonly sequence: number
  readonly at: Millis
  readonly name: string | undefined
  /** Cost of the whole message as a line of a context. */
  readonly tokens: Tokens
  readonly passages: readonly IndexedPassage[]
}

/**
 * Snapshot of an index as plain columns, of messages, of passages and of terms. `termLengths` and `termTexts` hold the
 * terms. Their postings are concatenated in the same order; `sizes` holds the posting length of each term, `places`
 * the passages and `counts` the term frequencies.
 */
export type LexicalIndexSnapshot = {
  readonly names: readonly string[]
  readonly termLengths: Uint16Array
  readonly termTexts: Uint16Array
  readonly owners: Uint32Array
  readonly sequences: Float64Array
  readonly times: Float64Array
  readonly speakers: Uint32Array
  readonly passageCounts: Uint32Array
  readonly lengths: Uint32Array
  readonly costs: Uint32Array
  readonly markers: Uint16Array
  readonly fingerprints: Uint32Array
  readonly sizes: Uint32Array
  readonly places: Uint32Array
  readonly counts: Uint16Array
}

/** Measured memory of an index: without content, and of its parts. */
const indexBytes = 20_000
const bytesPer = { occurrence: 9, message: 100, passage: 80 } as const

/** A longer pause between two messages of a session starts a new burst. */
const maxBurstGapMs: Millis = 3_600_000

/** Columns of messages. */
class MessageColumns {
  readonly owners = new Column(uint32Array)
  readonly sequences = new Column(float64Array)
  readonly times = new Column(float64Array)
  readonly speakers = new Column(uint32Array)
  readonly bursts = new Column(uint32Array)
  /** Number of the neighbour in the same burst plus one, or 0. */
  readonly previous = new Column(uint32Array)
  readonly next = new Column(uint32Array)
  /** First passage of each message. */
  readonly firstRows = new Column(uint32Array)
}

/** Columns of passages. */
class PassageColumns {
  /** Number of the message. */
  readonly messages = new Column(uint32Array)
  /** Number of terms; 0 for a passage that was removed. */
  readonly lengths = new Column(uint32Array)
  /** Estimated tokens as a line of a context. */
  readonly costs = new Column(uint32Array)
  readonly markers = new Column(uint16Array)
  /** Hash of the terms: equal for texts that differ in nothing but letter case, spaces and punctuation. */
  readonly fingerprints = new Column(uint32Array)
}

/**
 * Inverted index of messages, stored as columns. A message is split into passages, which are the rows of the postings.
 * Messages of several sessions may be added in any order; neighbours are determined within a session. A burst is a run
 * of messages of one session without a pause of over an hour.
 */
export class LexicalIndex {
  readonly postings = new PostingTable()
  readonly messages = new MessageColumns()
  readonly passages = new PassageColumns()
  /** Stemmed first names of the speakers, with their numbers. */
  readonly names = new Map<string, number>([['', 0]])
  totalTerms = 0
  burstCount = 0
  /** Newest message plus one, by owner. */
  private readonly newestMessages: number[] = []

  /** Number of passages. */
  get rowCount(): number {
    return this.passages.lengths.length
  }

  get messageCount(): number {
    return this.messages.owners.length
  }

  get sessions(): number {
    return this.newestMessages.length
  }

  /** Estimated memory. */
  get bytes(): number {
    return (
      indexBytes +
      this.postings.bytes +
      this.totalTerms * bytesPer.occurrence +
      this.messageCount * bytesPer.message +
      this.rowCount * bytesPer.passage
    )
  }

  /** First passage after those of a message. */
  endRowOf(message: number): number {
    return message + 1 < this.messageCount ? (this.messages.firstRows.values[message + 1] as number) : this.rowCount
  }

  /** Adds a message and returns its number; the message is complete when the work is done. */
  *addInSteps({ owner, sequence, at, name, tokens, passages }: IndexedText): Work<number> {
    const message = this.addMessage(owner, sequence, at, this.speakerNumber(name))
    const dates = dateTerms(at)
    const characters = passages.reduce((sum, passage) => sum + passage.characters, 0)
    for (const passage of passages) {
      const { terms } = passage
      const cost = Math.ceil((tokens * passage.characters) / characters)
      const row = this.addPassage(message, terms.length, cost, passage.markers, fingerprintOf(terms))
      for (const term of terms) this.postings.add(term, row)
      for (const term of dates) this.postings.add(term, row)
      yield Math.max(passage.characters, terms.length * newTermWork)
    }
    return message
  }

  /** Removes a message from results and from the length statistics. Its postings stay. */
  clear(message: number): void {
    const lengths = this.passages.lengths.values
    for (let row = this.messages.firstRows.values[message] as number; row < this.endRowOf(message); row++) {
      this.totalTerms -= lengths[row] as number
      lengths[row] = 0
    }
  }

  /** Copies the index to plain columns, as interruptible work. It must not change meanwhile. */
  *snapshotInSteps(): Work<LexicalIndexSnapshot> {
    const places = new Column(uint32Array)
    const counts = new Column(uint16Array)
    const sizes = new Column(uint32Array)
    const termLengths = new Column(uint16Array)
    // Allocated once: a column that grows copies all it has, up to a hundred megabytes of texts.
    const termTexts = new Uint16Array(this.postings.characters)
    let textAt = 0
    for (const [term, posting] of this.postings) {
      termLengths.push(term.length)
      for (let at = 0; at < term.length; at++) termTexts[textAt++] = term.charCodeAt(at)
      const { length } = posting.rows
      for (let at = 0; at < length; at++) {
        places.push(posting.rows.values[at] as number)
        counts.push(posting.counts.values[at] as number)
      }
      sizes.push(length)
      yield copiedTermWork + (length >> 4)
    }
    // Encoding a large copy takes a turn of its own.
    yield Number.POSITIVE_INFINITY
    const { owners, sequences, times, speakers, firstRows } = this.messages
    const { lengths, costs, markers, fingerprints } = this.passages
    return {
      names: [...this.names.keys()],
      termLengths: termLengths.used,
      termTexts,
      owners: owners.used,
      sequences: sequences.used,
      times: times.used,
      speakers: speakers.used,
      passageCounts: firstRows.used.map((first, message) => this.endRowOf(message) - first),
      lengths: lengths.used,
      costs: costs.used,
      markers: markers.used,
      fingerprints: fingerprints.used,
      sizes: sizes.used,
      places: places.used,
      counts: counts.used,
    }
  }

  /** Fills an empty index from a snapshot, in steps after which other work may run. */
  *restore(snapshot: LexicalIndexSnapshot): Generator<void> {
    for (const [number, name] of snapshot.names.entries()) this.names.set(name, number)
    yield* this.restoreMessages(snapshot)
    const { termLengths, termTexts, sizes, places, counts } = snapshot
    let [from, textFrom] = [0, 0]
    for (const [at, length] of termLengths.entries()) {
      const [to, textTo] = [from + (sizes[at] as number), textFrom + length]
      const term = String.fromCharCode(...termTexts.subarray(textFrom, textTo))
      this.postings.restore(term, places.subarray(from, to), counts.subarray(from, to))
      from = to
      textFrom = textTo
      if (at % rowsPerStep === rowsPerStep - 1) yield
    }
  }

  private *restoreMessages({
    owners,
    sequences,
    times,
    speakers,
    passageCounts,
    lengths,
    costs,
    markers,
    fingerprints,
  }: LexicalIndexSnapshot): Generator<void> {
    let row = 0
    for (let message = 0; message < owners.length; message++) {
      const [owner, sequence, at, speaker] = [owners, sequences, times, speakers].map((column) => column[message])
      this.addMessage(owner as number, sequence as number, at as number, speaker as number)
      for (const end = row + (passageCounts[message] as number); row < end; row++)
        this.addPassage(
          message,
          lengths[row] as number,
          costs[row] as number,
          markers[row] as number,
          fingerprints[row] as number,
        )
      if (message % rowsPerStep === rowsPerStep - 1) yield
    }
  }

  private addMessage(owner: number, sequence: number, at: Millis, speaker: number): number {
    const { messages } = this
    const message = this.messageCount
    const before = (this.newestMessages[owner] ?? 0) - 1
    const continuesBurst = before >= 0 && Math.abs(at - (messages.times.values[before] as number)) <= maxBurstGapMs
    messages.owners.push(owner)
    messages.sequences.push(sequence)
    messages.times.push(at)
    messages.speakers.push(speaker)
    messages.bursts.push(continuesBurst ? (messages.bursts.values[before] as number) : this.burstCount++)
    messages.previous.push(continuesBurst ? before + 1 : 0)
    messages.next.push(0)
    messages.firstRows.push(this.rowCount)
    if (continuesBurst) messages.next.values[before] = message + 1
    this.newestMessages[owner] = message + 1
    return message
  }

  private addPassage(message: number, length: number, cost: Tokens, markers: number, fingerprint: number): number {
    const { passages } = this
    passages.messages.push(message)
    passages.lengths.push(length)
    passages.costs.push(cost)
    passages.markers.push(markers)
    passages.fingerprints.push(fingerprint)
    this.totalTerms += length
    return this.rowCount - 1
  }

  private speakerNumber(name: string | undefined): number {
    const firstName = name === undefined ? '' : stem(splitWords(name)[0] ?? '')
    return getOrCompute(this.names, firstName, () => this.names.size)
  }
}

/** Cost of copying a term with its postings, in characters. */
const copiedTermWork = 4
/** Cost of a term that is new to the index, in characters: unbroken scripts have more terms than characters. */
const newTermWork = 2
/** Messages or terms restored between two pauses: a few milliseconds of work. */
const rowsPerStep = 2_048

/** FNV-1a hash of terms in their order. */
function fingerprintOf(terms: readonly string[]): number {
  let hash = 2_166_136_261
  for (const term of terms) {
    for (let at = 0; at < term.length; at++) hash = Math.imul(hash ^ term.charCodeAt(at), 16_777_619)
    hash = Math.imul(hash ^ 32, 16_777_619)
  }
  return hash >>> 0
}
