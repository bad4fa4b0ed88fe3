import { isObject } from '../../domain/checks.ts'
import { notAReply, reported } from '../../providers/failure.ts'
import { parseJson } from '../../providers/json.ts'
import { EventReader } from '../http/sse.ts'
import type { Heard, Listener } from './dialect.ts'

/** The most characters of a reply that are put together. */
const longest = 16_777_216
const utf8 = new TextDecoder()

/** Hears a stream whose events are JSON; what they mean is the protocol's own. */
export abstract class JsonListener implements Listener {
  private readonly events = new EventReader({
    take: (data) => this.read(data),
    skip: (text, start) => this.skipAlike(text, start),
  })
  protected readonly where: string
  private size = 0
  private failed = false

  constructor(where: string) {
    this.where = where
  }

  abstract readonly isComplete: boolean
  abstract readonly isOver: boolean
  abstract heard(): Heard

  /** Takes in one event; `text` is as it came. */
  protected abstract take(event: Readonly<Record<string, unknown>>, text: string): void

  get hasFailed(): boolean {
    return this.failed
  }

  hear(lines: Uint8Array): void {
    this.events.push(utf8.decode(lines))
  }

  end(rest: Uint8Array): void {
    if (rest.length > 0) this.events.push(`${utf8.decode(rest)}\n`)
    this.events.end()
  }

  /** The stream says that nothing more follows, in the way of chat completions. */
  protected over(): void {
    // Elsewhere an event has said so before.
  }

  /** Takes in an event that is like an earlier one; tells whether it is one. */
  protected takeAlike(_text: string): boolean {
    return false
  }

  /** Takes in events that follow each other in a text and are like an earlier one; tells where those end. */
  protected skipAlike(_text: string, start: number): number {
    return start
  }

  /** The upstream has said that it cannot go on. */
  protected fail(): void {
    this.failed = true
  }

  /** A piece of the reply, as long as there are not too many of them. */
  protected measured(piece: string): string {
    this.size += piece.length
    if (this.size > longest) throw notAReply(this.where, `more than ${longest} characters`)
    return piece
  }

  private read(data: string): void {
    if (this.takeAlike(data)) return
    const text = data.trim()
    if (text === '') return
    // Servers that grew out of chat completions end every stream with this.
    if (text === '[DONE]') {
      this.over()
      return
    }
    const event = parseJson(text)
    if (!isObject(event)) throw notAReply(this.where, 'an event that is not JSON')
    if (event.type === 'error' || (event.error !== undefined && reported(this.where, event) !== undefined)) this.fail()
    this.take(event, text)
  }
}
