/** A line of input; of one that is too long, only how it begins and ends. */
export type Line = { readonly text: string } | Glimpse
export type Glimpse = { readonly begins: string; readonly ends: string }

/** So much of the beginning and the end of a line that is too long is kept: enough to find its id. */
const glimpse = 1_024
const newline = 0x0a

/**
 * Input by lines, of at most `longest` bytes. What is longer is read to its end and not kept, so that whoever sent it can be
 * told, and the lines after it are answered.
 */
export async function* linesOf(input: AsyncIterable<Uint8Array>, longest: number): AsyncIterable<Line> {
  let line = new Piece(longest)
  for await (const chunk of input) {
    let from = 0
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      line.add(chunk.subarray(from, at))
      yield line.whole()
      line = new Piece(longest)
      from = at + 1
    }
    line.add(chunk.subarray(from))
  }
  // Input that was cut off behind its last line is meant all the same.
  if (line.size > 0) yield line.whole()
}

class Piece {
  size = 0
  private readonly longest: number
  private chunks: Uint8Array[] = []

  constructor(longest: number) {
    this.longest = longest
  }

  add(chunk: Uint8Array): void {
    this.size += chunk.length
    this.chunks.push(chunk)
    if (this.size > this.longest) this.shrink()
  }

  whole(): Line {
    const bytes = Buffer.concat(this.chunks)
    if (this.size <= this.longest) return { text: bytes.toString('utf8') }
    return { begins: bytes.subarray(0, glimpse).toString('utf8'), ends: bytes.subarray(-glimpse).toString('utf8') }
  }

  private shrink(): void {
    const bytes = Buffer.concat(this.chunks)
    this.chunks =
      bytes.length <= 2 * glimpse ? [bytes] : [Buffer.concat([bytes.subarray(0, glimpse), bytes.subarray(-glimpse)])]
  }
}
