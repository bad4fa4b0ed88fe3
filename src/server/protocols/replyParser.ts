import { maxMessageCharacters } from '../../domain/chat.ts'
import { isObject, type MemoryError } from '../../domain/error.ts'
import { estimateSize } from '../../domain/stringify.ts'
import { findReportedError, invalidReplyError } from '../../providers/errors.ts'
import { findJsonFault, replyLimits } from '../../providers/jsonStructure.ts'
import { parseJson } from '../../text/json.ts'
import { EventReader } from '../http/sse.ts'
import type { ModelReply, ReplyParser } from './protocol.ts'

const utf8 = new TextDecoder()

/** Base class of the reply parsers: reads a stream of JSON events; subclasses interpret them. */
export abstract class JsonReplyParser implements ReplyParser {
  private readonly events = new EventReader({
    onData: (data) => this.parseEvent(data),
    skip: (text, start) => this.consumeTemplateEvents(text, start),
  })
  protected readonly address: string
  private characters = 0
  private failed = false

  constructor(address: string) {
    this.address = address
  }

  abstract readonly isComplete: boolean
  abstract readonly hasEnded: boolean
  abstract toReply(): ModelReply

  /** Handles one event; `text` is its JSON source. */
  protected abstract handleEvent(event: Readonly<Record<string, unknown>>, text: string): void

  get hasFailed(): boolean {
    return this.failed
  }

  push(lines: Uint8Array): void {
    this.events.push(utf8.decode(lines))
  }

  end(rest: Uint8Array): void {
    if (rest.length > 0) this.events.push(`${utf8.decode(rest)}\n`)
    this.events.end()
  }

  /** Handles `[DONE]`. Only chat completions need it; other protocols have an event of their own. */
  protected handleDone(): void {}

  /** Handles an event that matches a cached template; returns false if it matches none. */
  protected handleTemplateEvent(_text: string): boolean {
    return false
  }

  /** Handles consecutive events that match a cached template; returns the position after the last one. */
  protected consumeTemplateEvents(_text: string, start: number): number {
    return start
  }

  /** Marks the reply as failed. */
  protected fail(): void {
    this.failed = true
  }

  /** Returns the text unchanged, or throws once the reply exceeds `maxMessageCharacters`. */
  protected limitSize(text: string): string {
    this.addSize(text.length)
    return text
  }

  /** Counts characters of the reply; throws once it exceeds `maxMessageCharacters`. */
  protected addSize(characters: number): void {
    this.characters += characters
    if (this.characters > maxMessageCharacters) throw longReplyError(this.address)
  }

  private parseEvent(data: string): void {
    if (this.handleTemplateEvent(data)) return
    const text = data.trim()
    if (text === '') return
    // Servers derived from chat completions send this in every protocol.
    if (text === '[DONE]') {
      this.handleDone()
      return
    }
    checkStructure(text, this.address)
    const event = parseJson(text)
    if (!isObject(event)) throw invalidReplyError(this.address, 'an event that is not JSON')
    if (event.type === 'error' || (event.error !== undefined && findReportedError(this.address, event) !== undefined))
      this.fail()
    this.handleEvent(event, text)
  }
}

/** Returns the text or calls of a complete reply unchanged, or throws if they are longer than a message may be. */
export function limitReply<T>(value: T, address: string): T {
  if (estimateSize(value, maxMessageCharacters + 1) <= maxMessageCharacters) return value
  throw longReplyError(address)
}

const longReplyError = (address: string): MemoryError =>
  invalidReplyError(address, `more than ${maxMessageCharacters} characters`)

/** Throws for JSON that would block the event loop or run out of stack while it is parsed and stored. */
function checkStructure(text: string, address: string): void {
  if (findJsonFault(text, replyLimits) !== undefined)
    throw invalidReplyError(address, 'JSON that is nested too deeply or has too many values')
}

/** Parses a complete JSON reply. Throws if the text is not JSON, or if the model server reports an error in it. */
export function parseJsonReply(text: string, address: string): unknown {
  checkStructure(text, address)
  const json = parseJson(text)
  if (json === undefined) throw invalidReplyError(address, 'something that is not JSON')
  const failure = findReportedError(address, json)
  if (failure !== undefined) throw failure
  return json
}
