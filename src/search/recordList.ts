/** Records of a full chunk. */
const chunkRecords = 65_536
const firstRecords = 64

/**
 * Growable list of records of 32-bit numbers. It grows by chunks outside V8's heap: copying one long array, or
 * collecting garbage among millions of objects, would hold the event loop.
 */
export class RecordList {
  length = 0
  private readonly fields: number
  private readonly chunks: Uint32Array[] = []

  constructor(fields: number) {
    this.fields = fields
  }

  /** Bytes of the used records. */
  get bytes(): number {
    return this.length * this.fields * Uint32Array.BYTES_PER_ELEMENT
  }

  /** Adds a record of zeros and returns its number. */
  push(): number {
    const at = this.length % chunkRecords
    const last = Math.floor(this.length / chunkRecords)
    const chunk = this.chunks[last]
    if (chunk === undefined) this.chunks.push(new Uint32Array((last === 0 ? firstRecords : chunkRecords) * this.fields))
    else if (at * this.fields === chunk.length) {
      const larger = new Uint32Array(chunk.length * 2)
      larger.set(chunk)
      this.chunks[last] = larger
    }
    return this.length++
  }

  get(record: number, field: number): number {
    const chunk = this.chunks[record >>> 16] as Uint32Array
    return chunk[(record & 0xffff) * this.fields + field] as number
  }

  set(record: number, field: number, value: number): void {
    const chunk = this.chunks[record >>> 16] as Uint32Array
    chunk[(record & 0xffff) * this.fields + field] = value
  }
}
