import { MemoryError } from '../domain/error.ts'

/** The most a line or an event may hold: what is longer comes from no model server. */
const longest = 4_194_304
const tooLong = (what: string): MemoryError =>
  new MemoryError('upstream', `The upstream sent ${what} of more than ${longest} bytes, which is no reply of a model.`)
const [lineFeed, carriageReturn] = [0x0a, 0x0d]

/** Cuts a stream of bytes where lines end, so that whatever is passed on can be followed by an event of one's own. */
export class WholeLines {
  private held: Uint8Array[] = []
  private size = 0

  /** The whole lines that can be given out now, as they came. */
  push(bytes: Uint8Array): Buffer {
    const end = Math.max(bytes.lastIndexOf(lineFeed), bytes.lastIndexOf(carriageReturn)) + 1
    const lines = end === 0 ? Buffer.alloc(0) : Buffer.concat([...this.held.splice(0), bytes.subarray(0, end)])
    if (end < bytes.length) this.held.push(bytes.subarray(end))
    this.size = end === 0 ? this.size + bytes.length : bytes.length - end
    if (this.size > longest) throw tooLong('a line')
    return lines
  }

  /** What came after the last line end. */
  rest(): Buffer {
    return Buffer.concat(this.held.splice(0))
  }
}

/** Reads server-sent events from text that comes in whole lines; gives out the data of each event. */
export class EventReader {
  private data: string[] = []
  private size = 0
  private afterReturn = false

  push(lines: string): string[] {
    // The two halves of one line end may come apart.
    const text = this.afterReturn && lines.startsWith('\n') ? lines.slice(1) : lines
    this.afterReturn = lines.endsWith('\r')
    const found: string[] = []
    for (const line of text.split(/\r\n|\r|\n/).slice(0, -1)) {
      if (line.startsWith('data:')) this.add(line.slice(line[5] === ' ' ? 6 : 5))
      else if (line === '') found.push(...this.take())
    }
    return found
  }

  /** The data of an event that no empty line has ended yet. */
  take(): string[] {
    const data = this.data.splice(0)
    this.size = 0
    return data.length === 0 ? [] : [data.join('\n')]
  }

  private add(data: string): void {
    this.data.push(data)
    this.size += data.length
    if (this.size > longest) throw tooLong('an event')
  }
}
