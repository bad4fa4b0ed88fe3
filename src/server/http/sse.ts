import { MemoryError } from '../../domain/error.ts'

/** The most an event may hold: what is longer comes from no model server. */
const longest = 16_777_216
const tooLong = (): MemoryError =>
  new MemoryError('upstream', `The upstream sent an event of more than ${longest} bytes, which is no reply of a model.`)

/** Empty lines end events, whatever lines end with. */
const ends = ['\n\n', '\r\n\r\n', '\r\r'].map((end) => Buffer.from(end))
const longestEnd = 4
const lineFeed = 0x0a
const nothing = Buffer.alloc(0)

/** Cuts a stream of bytes where events end, so that whatever is passed on can be followed by an event of one's own. */
export class WholeEvents {
  private held: Uint8Array[] = []
  private size = 0

  /** The whole events that can be given out now, as they came. */
  push(bytes: Uint8Array): Buffer {
    // Most servers send whole events.
    if (this.held.length === 0 && bytes.at(-1) === lineFeed && bytes.at(-2) === lineFeed) return asBuffer(bytes)
    this.held.push(bytes)
    this.size += bytes.length
    // An end may have begun in what came before; what is further back holds none.
    const left = lastOf(this.held, bytes.length + longestEnd - 1)
    const end = Math.max(...ends.map((mark) => endOf(left, mark)))
    if (end === 0) {
      if (this.size > longest) throw tooLong()
      return nothing
    }
    const all = Buffer.concat(this.held)
    const whole = all.length - (left.length - end)
    this.held = whole === all.length ? [] : [all.subarray(whole)]
    this.size = all.length - whole
    return all.subarray(0, whole)
  }

  /** What came after the last whole event. */
  rest(): Buffer {
    return this.held.length === 0 ? nothing : Buffer.concat(this.held.splice(0))
  }
}

/** The last bytes of some pieces: at least as many as are asked for, if there are so many. */
function lastOf(pieces: readonly Uint8Array[], many: number): Buffer {
  const taken: Uint8Array[] = []
  for (let at = pieces.length - 1, size = 0; at >= 0 && size < many; at--) {
    const piece = pieces[at] as Uint8Array
    taken.unshift(size === 0 ? piece : piece.subarray(Math.max(0, piece.length - (many - size))))
    size += piece.length
  }
  return taken.length === 1 ? asBuffer(taken[0] as Uint8Array) : Buffer.concat(taken)
}

/** Where the last of these marks ends; 0 if there is none. */
function endOf(bytes: Buffer, mark: Buffer): number {
  const found = bytes.lastIndexOf(mark)
  return found < 0 ? 0 : found + mark.length
}

/** The same bytes, not copied. */
export const asBuffer = (bytes: Uint8Array): Buffer =>
  Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)

/** Whoever events are read for. */
export type Taker = {
  /** Takes in the data of an event. */
  readonly take: (data: string) => void
  /** May take in, as they stand there, events that begin at a place of the text; tells where it left off. */
  readonly skip: (text: string, start: number) => number
}

/** Reads server-sent events from text that comes in whole lines; hands out the data of each event. */
export class EventReader {
  private readonly taker: Taker
  private data: string | undefined
  private size = 0
  private afterReturn = false

  constructor(taker: Taker) {
    this.taker = taker
  }

  push(piece: string): void {
    // The two halves of one line end may come apart.
    const text = this.afterReturn && piece.startsWith('\n') ? piece.slice(1) : piece
    this.afterReturn = piece.endsWith('\r')
    this.read(text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text)
  }

  /** Hands out the data of an event that no empty line has ended yet. */
  end(): void {
    this.close()
  }

  /** Finds its way from line end to line end: a list of all lines would cost as much as the rest. */
  private read(text: string): void {
    for (
      let start = this.skipped(text, 0), end = text.indexOf('\n', start);
      end >= 0;
      end = text.indexOf('\n', start)
    ) {
      if (end === start) this.close()
      else if (text.startsWith('data:', start)) this.add(text.slice(start + (text[start + 5] === ' ' ? 6 : 5), end))
      start = this.skipped(text, end + 1)
    }
  }

  private skipped(text: string, start: number): number {
    return this.data === undefined ? this.taker.skip(text, start) : start
  }

  private close(): void {
    const { data } = this
    if (data === undefined) return
    this.data = undefined
    this.size = 0
    this.taker.take(data)
  }

  private add(data: string): void {
    this.data = this.data === undefined ? data : `${this.data}\n${data}`
    this.size += data.length
    if (this.size > longest) throw tooLong()
  }
}
