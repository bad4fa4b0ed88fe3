import { RecordList } from './recordList.ts'

/** Code units of a full chunk of text. */
const chunkCharacters = 65_536
/** Longer terms are cut: a chunk holds a whole term after its length. Those of texts have at most a few thousand. */
const maxTermCharacters = chunkCharacters - 1
const firstCharacters = 1_024
/** A shard of more terms would take milliseconds to grow: texts can be made of words of one shard. */
const maxShardTerms = 32_768
const shardBits = 10
const firstSlots = 64
/** Slots that are tried for a term: texts can be made of words whose hashes are equal. */
const maxProbes = 32
/** Memory of a term without a slot: its text and its place in a map. */
const overflowTermBytes = 128

/** Fields of the record of a term. */
const positionField = 0
const hashField = 1

/**
 * Numbers of terms, in the order of their first occurrence. The terms of a large scope are millions: a `Map` of them
 * takes three times the memory, and collecting garbage among its strings takes hundreds of milliseconds at once.
 */
export class TermTable {
  /** Position of the text of each term, and its hash. */
  private readonly records = new RecordList(2)
  /** Texts of the terms, each after its length. A term does not cross chunks. */
  private readonly chunks: Uint16Array[] = []
  private usedCharacters = 0
  /** Hash tables with open addressing: number of a term plus one, or 0. */
  private shards: Uint32Array[] = [new Uint32Array(firstSlots)]
  private shardSizes = new Uint32Array(1)
  /** Terms without a slot of their own, because too many others have similar hashes. */
  private readonly overflow = new Map<string, number>()
  /** Characters of all terms. */
  characters = 0
  private slotCount = firstSlots

  get size(): number {
    return this.records.length
  }

  /** Estimated memory. */
  get bytes(): number {
    const texts = Uint16Array.BYTES_PER_ELEMENT * (this.characters + this.size)
    const slots = this.slotCount * Uint32Array.BYTES_PER_ELEMENT
    return this.records.bytes + texts + slots + this.overflow.size * overflowTermBytes
  }

  find(term: string): number | undefined {
    const stored = cutTerm(term)
    return this.findHashed(stored, hashOf(stored))
  }

  /** Returns the number of a term, which is the former `size` for a new one. */
  findOrAdd(term: string): number {
    const stored = cutTerm(term)
    const hash = hashOf(stored)
    return this.findHashed(stored, hash) ?? this.add(stored, hash)
  }

  termAt(number: number): string {
    const at = this.records.get(number, positionField)
    const chunk = this.chunks[at >>> 16] as Uint16Array
    const start = (at & 0xffff) + 1
    return String.fromCharCode(...chunk.subarray(start, start + (chunk[start - 1] as number)))
  }

  private findHashed(term: string, hash: number): number | undefined {
    const slots = this.shards[this.shardOf(hash)] as Uint32Array
    const mask = slots.length - 1
    for (let probe = 0; probe < maxProbes; probe++) {
      const slot = slots[(hash + probe) & mask] as number
      if (slot === 0) break
      if (this.records.get(slot - 1, hashField) === hash && this.isTermAt(slot - 1, term)) return slot - 1
    }
    // A slot may have become free when the shard grew.
    return this.overflow.size === 0 ? undefined : this.overflow.get(term)
  }

  private isTermAt(number: number, term: string): boolean {
    const at = this.records.get(number, positionField)
    const chunk = this.chunks[at >>> 16] as Uint16Array
    const start = (at & 0xffff) + 1
    if (chunk[start - 1] !== term.length) return false
    for (let index = 0; index < term.length; index++) if (chunk[start + index] !== term.charCodeAt(index)) return false
    return true
  }

  private add(term: string, hash: number): number {
    const number = this.records.push()
    this.records.set(number, positionField, this.storeText(term))
    this.records.set(number, hashField, hash)
    if (this.shards.length === 1 && this.size > maxShardTerms) this.split()
    else this.place(number, hash)
    return number
  }

  private shardOf(hash: number): number {
    return this.shards.length === 1 ? 0 : hash >>> (32 - shardBits)
  }

  /** Puts a term into a slot of its shard, which grows when it is half full, up to a limit. */
  private place(number: number, hash: number): void {
    const shard = this.shardOf(hash)
    const size = (this.shardSizes[shard] as number) + 1
    this.shardSizes[shard] = size
    const slots = this.shards[shard] as Uint32Array
    if (2 * size > slots.length && size <= maxShardTerms) this.grow(shard, slots)
    this.insert(this.shards[shard] as Uint32Array, number, hash)
  }

  private insert(slots: Uint32Array, number: number, hash: number): void {
    const mask = slots.length - 1
    for (let probe = 0; probe < maxProbes; probe++) {
      const at = (hash + probe) & mask
      if (slots[at] !== 0) continue
      slots[at] = number + 1
      return
    }
    this.overflow.set(this.termAt(number), number)
  }

  private grow(shard: number, slots: Uint32Array): void {
    const larger = new Uint32Array(slots.length * 2)
    this.slotCount += slots.length
    for (const slot of slots) if (slot !== 0) this.insert(larger, slot - 1, this.records.get(slot - 1, hashField))
    this.shards[shard] = larger
  }

  /** Distributes the terms of the first shard over many. */
  private split(): void {
    this.overflow.clear()
    this.shards = Array.from({ length: 1 << shardBits }, () => new Uint32Array(firstSlots))
    this.shardSizes = new Uint32Array(this.shards.length)
    this.slotCount = this.shards.length * firstSlots
    for (let number = 0; number < this.size; number++) this.place(number, this.records.get(number, hashField))
  }

  /** Copies a term into the last chunk and returns its position. */
  private storeText(term: string): number {
    const needed = this.usedCharacters + term.length + 1
    let chunk = this.chunks.at(-1)
    if (chunk === undefined || needed > chunkCharacters) {
      chunk = new Uint16Array(this.chunks.length === 0 ? Math.max(firstCharacters, term.length + 1) : chunkCharacters)
      this.chunks.push(chunk)
      this.usedCharacters = 0
    } else if (needed > chunk.length) {
      const larger = new Uint16Array(Math.min(chunkCharacters, Math.max(needed, chunk.length * 2)))
      larger.set(chunk)
      this.chunks[this.chunks.length - 1] = larger
      chunk = larger
    }
    const start = this.usedCharacters
    chunk[start] = term.length
    for (let index = 0; index < term.length; index++) chunk[start + 1 + index] = term.charCodeAt(index)
    this.usedCharacters = start + 1 + term.length
    this.characters += term.length
    return (this.chunks.length - 1) * chunkCharacters + start
  }
}

const cutTerm = (term: string): string => (term.length > maxTermCharacters ? term.slice(0, maxTermCharacters) : term)

/** FNV-1a hash whose bits are mixed once more, so that the low and the high ones are independent. */
function hashOf(term: string): number {
  let hash = 2_166_136_261
  for (let at = 0; at < term.length; at++) hash = Math.imul(hash ^ term.charCodeAt(at), 16_777_619)
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}
