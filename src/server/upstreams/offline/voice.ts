import type { Tokens } from '../../../domain/entry.ts'
import type { Body } from '../../protocols/dialect.ts'

/** A reply of the built-in model, on its way. */
export type Reply = {
  /** Nobody else's; each protocol puts its own word before it. */
  readonly id: string
  /** When it was asked for, in seconds, as the protocols tell the time. */
  readonly created: number
  readonly model: string
  /** The request it answers. */
  readonly body: Body
  readonly words: AsyncIterable<string>
  readonly prompt: Tokens
  count(text: string): Tokens
}

/** How a protocol tells a reply: in one, or as the events of a stream. */
export type Voice = {
  whole(reply: Reply, text: string): unknown
  events(reply: Reply): AsyncIterable<string>
}

/** An event whose name stands before it as well as in it. */
export const namedEvent = (type: string, fields: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
