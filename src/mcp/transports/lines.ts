/** Line of input, or only the start and end of a line that is too long. */
export type InputLine = { readonly text: string } | OversizedLine
export type OversizedLine = { readonly start: string; readonly end: string }

/** Bytes kept of each end of an oversized line: enough to find the id of the message. */
const keptBytes = 1_024
const newline = 0x0a

/** Splits input into lines of at most `maxBytes`. A longer line is read to its end without buffering it. */
export async function* readLines(input: AsyncIterable<Uint8Array>, maxBytes: number): AsyncIterable<InputLine> {
  let line = new LineBuffer(maxBytes)
  for await (const chunk of input) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      line.add(chunk.subarray(start, end))
      yield line.toLine()
      line = new LineBuffer(maxBytes)
      start = end + 1
    }
    line.add(chunk.subarray(start))
  }
  // The last line may lack its newline.
  if (line.size > 0) yield line.toLine()
}

class LineBuffer {
  size = 0
  private readonly maxBytes: number
  private chunks: Uint8Array[] = []

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  add(chunk: Uint8Array): void {
    this.size += chunk.length
    this.chunks.push(chunk)
    if (this.size > this.maxBytes) this.shrink()
  }

  toLine(): InputLine {
    const bytes = Buffer.concat(this.chunks)
    if (this.size <= this.maxBytes) return { text: bytes.toString('utf8') }
    return { start: bytes.subarray(0, keptBytes).toString('utf8'), end: bytes.subarray(-keptBytes).toString('utf8') }
  }

  private shrink(): void {
    const bytes = Buffer.concat(this.chunks)
    this.chunks =
      bytes.length <= 2 * keptBytes
        ? [bytes]
        : [Buffer.concat([bytes.subarray(0, keptBytes), bytes.subarray(-keptBytes)])]
  }
}
