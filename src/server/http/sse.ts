import { MemoryError } from '../../domain/error.ts'
import { asBuffer } from './body.ts'

/** Longer events do not come from a model server. */
const maxEventBytes = 16_777_216
const eventTooLong = (): MemoryError =>
  new MemoryError(
    'upstream',
    `The upstream sent an event of more than ${maxEventBytes} bytes, which is not a model reply.`,
  )

/** An empty line ends an event, with any kind of line end. */
const eventEnds = ['\n\n', '\r\n\r\n', '\r\r'].map((end) => Buffer.from(end))
const maxEventEndLength = 4
const lineFeed = 0x0a
const emptyBuffer = Buffer.alloc(0)

/** Splits a byte stream at event ends, so that an event of our own can follow whatever was relayed. */
export class EventSplitter {
  private pending: Uint8Array[] = []
  private pendingBytes = 0

  /** Adds a chunk and returns the complete events so far, unchanged. */
  push(bytes: Uint8Array): Buffer {
    // Most servers send whole events per chunk.
    if (this.pending.length === 0 && bytes.at(-1) === lineFeed && bytes.at(-2) === lineFeed) return asBuffer(bytes)
    this.pending.push(bytes)
    this.pendingBytes += bytes.length
    // An event end may start in the previous chunk; earlier bytes were searched before.
    const searched = takeLastBytes(this.pending, bytes.length + maxEventEndLength - 1)
    const end = Math.max(...eventEnds.map((mark) => endOfLast(searched, mark)))
    if (end === 0) {
      if (this.pendingBytes > maxEventBytes) throw eventTooLong()
      return emptyBuffer
    }
    const all = Buffer.concat(this.pending)
    const complete = all.length - (searched.length - end)
    this.pending = complete === all.length ? [] : [all.subarray(complete)]
    this.pendingBytes = all.length - complete
    return all.subarray(0, complete)
  }

  /** Bytes after the last complete event. */
  rest(): Buffer {
    return this.pending.length === 0 ? emptyBuffer : Buffer.concat(this.pending.splice(0))
  }
}

/** At least the last `count` bytes of the chunks, if there are that many. */
function takeLastBytes(chunks: readonly Uint8Array[], count: number): Buffer {
  const taken: Uint8Array[] = []
  for (let index = chunks.length - 1, size = 0; index >= 0 && size < count; index--) {
    const chunk = chunks[index] as Uint8Array
    taken.unshift(size === 0 ? chunk : chunk.subarray(Math.max(0, chunk.length - (count - size))))
    size += chunk.length
  }
  return taken.length === 1 ? asBuffer(taken[0] as Uint8Array) : Buffer.concat(taken)
}

/** End of the last occurrence of `mark`; 0 when there is none. */
function endOfLast(bytes: Buffer, mark: Buffer): number {
  const found = bytes.lastIndexOf(mark)
  return found < 0 ? 0 : found + mark.length
}

/** Consumer of events. */
export type EventConsumer = {
  /** Receives the data of one event. */
  readonly onData: (data: string) => void
  /** May consume events directly from the text at `start`; returns the index where it stopped. */
  readonly skip: (text: string, start: number) => number
}

/**
 * Reads server-sent events from text in whole lines, while the bytes are relayed unchanged. Searches from line end to
 * line end: a list of lines would cost as much as the rest of the relay.
 */
export class EventReader {
  private readonly consumer: EventConsumer
  private data: string | undefined
  private size = 0
  private endedWithReturn = false

  constructor(consumer: EventConsumer) {
    this.consumer = consumer
  }

  push(chunk: string): void {
    // A chunk may end between the two characters of a line end.
    const text = this.endedWithReturn && chunk.startsWith('\n') ? chunk.slice(1) : chunk
    this.endedWithReturn = chunk.endsWith('\r')
    this.read(text.includes('\r') ? text.replace(/\r\n?/g, '\n') : text)
  }

  /** Emits an event that was not ended by an empty line. */
  end(): void {
    this.emit()
  }

  private read(text: string): void {
    for (let start = this.skip(text, 0), end = text.indexOf('\n', start); end >= 0; end = text.indexOf('\n', start)) {
      if (end === start) this.emit()
      else if (text.startsWith('data:', start)) this.add(text.slice(start + (text[start + 5] === ' ' ? 6 : 5), end))
      start = this.skip(text, end + 1)
    }
  }

  private skip(text: string, start: number): number {
    return this.data === undefined ? this.consumer.skip(text, start) : start
  }

  private emit(): void {
    const { data } = this
    if (data === undefined) return
    this.data = undefined
    this.size = 0
    this.consumer.onData(data)
  }

  private add(data: string): void {
    this.data = this.data === undefined ? data : `${this.data}\n${data}`
    this.size += data.length
    if (this.size > maxEventBytes) throw eventTooLong()
  }
}
