import type { Incoming, Parsed } from '../../domain/chat.ts'
import type { Tokens } from '../../domain/entry.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import type { Problem } from '../http/httpError.ts'

export type Body = Readonly<Record<string, unknown>>

/** A message of the conversation as memory reads it, and the place in the client's own list where it stands. */
export type Sent = Parsed & { readonly place: number }

/** A file that stands inside a message: its bytes, or nothing but a reference to where it is. */
export type FilePart = { readonly name: string; readonly type: string; readonly bytes: Uint8Array | undefined }

/** A request in whatever protocol, as far as memory is concerned. What the client sends is its own: none of it is ever shortened. */
export type Ask = {
  readonly body: Body
  readonly model: string
  readonly streams: boolean
  /** What of the conversation was sent, in order; instructions are not among it. */
  readonly said: readonly Sent[]
  /** Where the newest turn begins in the client's list: the last that the user said in a row, and all that follows it. */
  readonly turn: number
  /** What instructions and tools cost. */
  readonly owed: Tokens
  /** Instructions in plain text. */
  readonly instructions: readonly string[]
  readonly hasTools: boolean
  readonly maxTokens: number | undefined
  readonly files: readonly FilePart[]
  /** What may name the session where the address does not. */
  readonly session: string | undefined
  /** The answer this one continues, and the conversation it belongs to, where the protocol has such things. */
  readonly previous?: string | undefined
  readonly conversation?: string | undefined
}

/** What the upstream says a reply has cost. */
export type Usage = { readonly prompt: Tokens; readonly completion: Tokens; readonly cached: Tokens }

/** A reply as memory keeps it, the id its protocol gives it and its cost. */
export type Heard = { readonly reply: Incoming; readonly id: string | undefined; readonly usage: Usage | undefined }

/** Hears an answer that comes piece by piece. */
export interface Listener {
  /** Hears whole lines of the stream; throws for what is no event of a model server. */
  hear(lines: Uint8Array): void
  /** The stream has ended, perhaps without the empty line after its last event. */
  end(rest: Uint8Array): void
  /** Whether the model has said all it wanted to say. */
  readonly isComplete: boolean
  /** Whether nothing more follows. */
  readonly isOver: boolean
  /** Whether the upstream itself has reported an error, which the client has then seen. */
  readonly hasFailed: boolean
  heard(): Heard
}

/** One of the protocols clients speak: reads requests and replies, and writes what memory shows the way its models take it. */
export interface Dialect {
  readonly name: 'chat' | 'responses' | 'messages'
  /** Where it is asked for below a model server's base address. */
  readonly path: string
  /** Checks a request as far as memory is concerned; the rest is the model server's business. */
  read(body: Body, tokenizer: Tokenizer): Ask
  /**
   * The request for the model server: the client's instructions, what memory shows, then everything from place `from` on
   * (the newest turn, when left out) as it was sent. Fields that memory knows nothing of stay as they are.
   */
  write(ask: Ask, memory: readonly ChatMessage[], from?: number): Body
  listener(where: string): Listener
  /** Reads an answer that came in one; throws if it is no answer of a model server. */
  hear(text: string, where: string): Heard
  /** An error in the shape this protocol gives it. */
  problem(error: Problem['error']): unknown
  /** The same as an event of a stream that has begun. */
  failure(error: Problem['error']): string
}
