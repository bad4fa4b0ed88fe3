import type { SourcedChatMessage } from '../../context/entryText.ts'
import type { MessageInput, ParsedMessage, Payload } from '../../domain/chat.ts'
import type { Tokens } from '../../domain/entry.ts'
import type { ChatMessage } from '../../domain/ledger.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import type { ErrorResponse } from '../http/httpError.ts'

export type RequestBody = Readonly<Record<string, unknown>>

/** Names of the wire protocols clients use: OpenAI chat completions, OpenAI Responses, Anthropic Messages. */
export type ProtocolName = 'chat' | 'responses' | 'messages'

/** Conversation message and its index in the list the client sent. */
export type ClientMessage = ParsedMessage & { readonly index: number }

/** File inside a message. `bytes` is undefined when the client sent only a reference to it. */
export type FilePart = { readonly name: string; readonly mediaType: string; readonly bytes: Uint8Array | undefined }

/** Protocol-neutral view of a request. Client content is never shortened. */
export type ParsedRequest = {
  readonly body: RequestBody
  readonly model: string
  readonly isStreaming: boolean
  /** Conversation messages in order, without instructions. */
  readonly messages: readonly ClientMessage[]
  /** Index in the client's list at which the newest turn starts: its last run of user messages and everything after. */
  readonly turnStart: number
  /** Tokens used by instructions and tool definitions. */
  readonly promptOverheadTokens: Tokens
  /** Instructions as plain text. */
  readonly instructions: readonly string[]
  readonly hasTools: boolean
  readonly maxTokens: number | undefined
  readonly files: readonly FilePart[]
  /** Session named by the body; used when neither the path nor a header names one. */
  readonly sessionHint: string | undefined
  /** Id of the response this request continues (Responses only). */
  readonly previousResponseId?: string | undefined
  /** Id of the conversation this request belongs to (Responses only). */
  readonly conversationId?: string | undefined
  /** Ids of stored items that the request refers to; its messages are those after them (Responses only). */
  readonly references: readonly string[]
}

/** Token usage as reported by the upstream. */
export type Usage = { readonly prompt: Tokens; readonly completion: Tokens; readonly cached: Tokens }

/** Parsed model reply: the assistant message to store, the protocol's response id and the reported usage. */
export type ModelReply = {
  readonly message: MessageInput
  readonly id: string | undefined
  readonly usage: Usage | undefined
  /** True if the upstream stores the response under its id (Responses only). */
  readonly isStoredUpstream?: boolean
  /** False for a response that runs in the background and has no reply yet (Responses only). */
  readonly isFinished?: boolean
}

/** Incremental parser for a streamed reply. */
export interface ReplyParser {
  /** Parses complete lines of the stream. Throws a `MemoryError` for data that no model server sends. */
  push(lines: Uint8Array): void
  /** Parses the rest of the stream, which may lack the empty line after its last event. */
  end(rest: Uint8Array): void
  /** True once the model has finished its reply without an error. */
  readonly isComplete: boolean
  /** True once the stream has announced that no more events follow. */
  readonly hasEnded: boolean
  /** True once the upstream has reported an error inside the stream; the client has received that event. */
  readonly hasFailed: boolean
  /** Assembles the reply from the events parsed so far. */
  toReply(): ModelReply
}

/** Declared additions to a client's own conversation. */
export type RequestAdditions = {
  /** System messages of the session's template, after the client's leading instructions. */
  readonly preamble: readonly ChatMessage[]
  /** Text from memory, placed after the conversation, so that the provider's cache of the conversation stays valid. */
  readonly memory?: string | undefined
  /** Leaves out conversation messages before this index of the client's list; default 0. Instructions stay. */
  readonly from?: number | undefined
  /** True if the upstream holds the conversation to which the request refers by ids; default false. */
  readonly isHeldUpstream?: boolean | undefined
}

/** Wire protocol: parses requests and replies and builds the request sent upstream. */
export interface Protocol {
  readonly name: ProtocolName
  /** Path below the base URL of a model server. */
  readonly path: string
  /** Parses the fields memory needs and leaves the validation of all others to the model server. */
  parseRequest(body: RequestBody, tokenizer: Tokenizer): ParsedRequest
  /** Original form of a message of the request, to be stored beside it; undefined if the message says everything. */
  payloadOf(request: ParsedRequest, position: number): Payload | undefined
  /**
   * Builds the upstream request of a client that leaves its history to memory: the client's instructions, the history,
   * then the client's messages from index `from` on (default: the newest turn) unchanged. Messages of the history that
   * came by this protocol have their original form. Fields unknown to memory are passed through.
   */
  buildRequest(request: ParsedRequest, history: readonly SourcedChatMessage[], from?: number): RequestBody
  /** Builds the upstream request of a client that sends its own conversation, which stays as it is. */
  extendRequest(request: ParsedRequest, additions: RequestAdditions): RequestBody
  /** Creates a parser for a streamed reply; `address` names the model server in errors. */
  createReplyParser(address: string): ReplyParser
  /** Parses a complete, non-streamed reply. Throws a `MemoryError` if the text is not a reply of this protocol. */
  parseReply(text: string, address: string): ModelReply
  /** Formats an error body of this protocol. */
  formatError(error: ErrorResponse['error']): unknown
  /** Formats an error as an event for a stream that has already started. */
  formatErrorEvent(error: ErrorResponse['error']): string
}
