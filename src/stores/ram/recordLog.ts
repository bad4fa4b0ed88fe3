import type { AuxiliaryRecord, StoredRecord } from '../../domain/ports.ts'
import { utf8Length } from '../../text/utf8.ts'
import { type Compressor, compressText, decompressText } from './compression.ts'

/** Records compressed together while a session is in use. Four similar receipts take about as much memory as one. */
const blockSize = 4
/** Records compressed together once the session is idle. */
const idleBlockSize = 64
/** Memory of a record besides its text: measured, rounded up. */
const recordOverheadBytes = 150

/** A block of consecutive records, as compressed JSON. */
type RecordBlock = { readonly last: number; readonly count: number; readonly compressed: string }

/** The auxiliary records of one session. With a compressor, all but the newest few are compressed in blocks. */
export class RecordLog {
  /** Estimated memory in bytes. */
  bytes = 0
  private lastNumber = 0
  private blocks: RecordBlock[] = []
  private recent: StoredRecord[] = []

  append(record: AuxiliaryRecord, keep: number, compressor: Compressor | undefined): void {
    const { id, at, body } = record
    this.recent.push({ id, at, body, number: ++this.lastNumber })
    if (compressor !== undefined && this.recent.length === blockSize) {
      this.blocks.push(toBlock(this.recent, compressor))
      this.recent = []
    }
    this.dropOldest(keep)
    this.bytes = this.measure()
  }

  /** Compresses all records in larger blocks, for an idle session. */
  compact(compressor: Compressor): void {
    const full = this.blocks.filter(({ count }) => count === idleBlockSize)
    const rest = this.blocks.slice(full.length).flatMap((block) => fromBlock(block, compressor))
    const loose = [...rest, ...this.recent]
    for (let from = 0; from < loose.length; from += idleBlockSize)
      full.push(toBlock(loose.slice(from, from + idleBlockSize), compressor))
    this.blocks = full
    this.recent = []
    this.bytes = this.measure()
  }

  /** Records older than the one with the number `before`, newest first. */
  list(before: number, limit: number, compressor: Compressor | undefined): readonly StoredRecord[] {
    const found = this.recent.filter(({ number }) => number < before).reverse()
    for (let index = this.blocks.length - 1; index >= 0 && found.length < limit; index--) {
      const block = this.blocks[index] as RecordBlock
      if (block.last - block.count + 1 >= before) continue
      const records = fromBlock(block, compressor as Compressor)
      found.push(...records.filter(({ number }) => number < before).reverse())
    }
    return found.slice(0, limit)
  }

  /** Drops whole blocks only, so that some more records than `keep` may remain. */
  private dropOldest(keep: number): void {
    const oldestKept = this.lastNumber - keep + 1
    if (this.blocks[0] !== undefined && this.blocks[0].last < oldestKept) this.blocks.shift()
    else if (this.blocks.length === 0 && this.recent.length > keep) this.recent.shift()
  }

  private measure(): number {
    let bytes = 0
    for (const { compressed } of this.blocks) bytes += recordOverheadBytes + compressed.length
    for (const { body } of this.recent) bytes += recordOverheadBytes + utf8Length(body)
    return bytes
  }
}

function toBlock(records: readonly StoredRecord[], compressor: Compressor): RecordBlock {
  return {
    last: records.at(-1)?.number ?? 0,
    count: records.length,
    compressed: compressText(JSON.stringify(records), compressor),
  }
}

const fromBlock = ({ compressed }: RecordBlock, compressor: Compressor): readonly StoredRecord[] =>
  JSON.parse(decompressText(compressed, compressor)) as StoredRecord[]
