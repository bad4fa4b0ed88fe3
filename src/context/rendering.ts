import type { Message, Tokens } from '../domain/entry.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { formatLine, toChatMessage, withSource } from './entryText.ts'

/**
 * A rendered entry with its token count. `text` ends with its separator and starts with a character before which every
 * tokenizer splits, so that the count of joined texts is the sum of their counts.
 */
export type Rendering = {
  readonly text: string
  /** As chat messages, mostly one. */
  readonly chat: ChatMessage | readonly ChatMessage[]
  readonly tokens: Tokens
  readonly shortened: boolean
  readonly exact: boolean
}

/** A message sent verbatim at its stored cost. Builds text and chat message on demand: the text is rarely needed. */
export class VerbatimRendering implements Rendering {
  readonly #message: Message
  readonly #tokenizer: Tokenizer

  constructor(message: Message, tokenizer: Tokenizer) {
    this.#message = message
    this.#tokenizer = tokenizer
  }

  get exact(): boolean {
    return this.#tokenizer.isExact(this.#message.content)
  }

  get text(): string {
    return `${formatLine(this.#message)}\n\n`
  }

  get chat(): ChatMessage {
    const { role, content, name, packedPayload } = this.#message
    // The content has no memory tag, so most messages need no conversion.
    if (role !== 'tool' && name === undefined && packedPayload === undefined) return { role, content }
    return withSource(toChatMessage(this.#message), this.#message)
  }

  get tokens(): Tokens {
    return this.#message.tokens
  }

  get shortened(): boolean {
    return false
  }
}
