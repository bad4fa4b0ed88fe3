import type { Key } from './key.ts'

/** Milliseconds: a point in time counts from 1970-01-01 UTC. */
export type Millis = number
/** A number of tokens. */
export type Tokens = number
/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Range of sequence numbers, both ends included. */
export type SequenceRange = readonly [first: number, last: number]

type EntryBase<K extends string> = { readonly kind: K; readonly id: string; readonly at: Millis }

/**
 * Origin of a derived entry. Erasing a message follows its sources, and a fact is accepted only with a span. `session`
 * names another session of the same scope; without it, the message belongs to the entry's own session. What a caller
 * has set in the record of a session has no message; it cites `update` with a number.
 */
export type Source = {
  readonly message: string
  readonly session?: string
  /** Start and end offset in the message's content; the end is exclusive. */
  readonly span?: readonly [from: number, to: number]
}
/** Role of a message. */
export type Role = 'system' | 'user' | 'assistant' | 'tool'
/** Call of a tool by the assistant; `arguments` is JSON. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string }

/** Message to append; the store adds `id`, `sequence` and `offset`. */
export type NewMessage = {
  readonly at: Millis
  readonly role: Role
  readonly name?: string
  readonly content: string
  /** Tool calls requested by an assistant message. */
  readonly toolCalls?: readonly ToolCall[]
  /** Id of the tool call that a tool message answers. */
  readonly toolCallId?: string
  /** Id given by the caller, unique within its session: 1 to 256 characters of well-formed text without U+0000. */
  readonly externalId?: string
  /** Original form of the message, packed by `packPayload`; absent when the other fields say everything. */
  readonly packedPayload?: string
  /** First sequence number of its conversation, when a session holds several and this is not the first. */
  readonly branch?: number
  /** Cost as a message of its own, counted by `tokenizer`. */
  readonly tokens: Tokens
  /** Cost as one line of a text block, counted by `tokenizer`. */
  readonly lineTokens: Tokens
  readonly tokenizer: string
  /** Tokens counted towards the next compaction: `tokens`, limited to the profile's `maxMessageTokens`. */
  readonly weight: Tokens
}

/**
 * Message of the transcript. `id` is unique within its session and never reused; `sequence` grows by one with each
 * appended message; `offset` is the sum of the weights of all earlier messages at the time of writing, so a position in
 * the history is found without reading the messages before it. A message that was stored later in a reserved slot
 * starts at the end of its predecessor, or where its successor starts if that is earlier, and does not move its
 * successors. A replaced message keeps its offset. Offsets never decrease from one message to the next, but
 * neighbouring messages may overlap.
 */
export type Message = EntryBase<'message'> & NewMessage & { readonly sequence: number; readonly offset: Tokens }

/** Summary of a range of messages. */
export type Summary = EntryBase<'summary'> & {
  readonly tier: 'progressive' | 'hour' | 'session' | 'batch'
  readonly text: string
  /** Sequence numbers of the messages it replaces. */
  readonly covers: SequenceRange
  /** Sum of the weights of all messages up to the last covered one. */
  readonly endOffset: Tokens
  readonly version: number
  /** `builtin`, `caller`, or the name of the model that wrote it. */
  readonly by: string
  readonly sources: readonly Source[]
  /** Messages with a name, number or constraint that the text does not repeat. */
  readonly lossyRanges: readonly SequenceRange[]
}
/** Statement of a user, with the message and span it comes from. */
export type Fact = EntryBase<'fact'> & {
  readonly field: string
  readonly key: string
  readonly value: Json
  readonly importance: number
  readonly sources: readonly Source[]
  /** Id of the fact that this one replaces. */
  readonly supersedes?: string
  /** Time at which a newer fact replaced this one. */
  readonly until?: Millis
}
/** Knowledge that all sessions of a scope share, or about one person. */
export type Knowledge = EntryBase<'knowledge'> & {
  readonly category: string
  readonly key: string
  readonly value: Json
  readonly confidence: number
  readonly usedAt: Millis
  /** Time up to which confidence has been reduced for lack of use. */
  readonly agedAt?: Millis
  /** Sessions that stated it; each session counts once. */
  readonly statedBy?: readonly string[]
  /** Sessions that used it; each session counts once. */
  readonly usedBy?: readonly string[]
  /** Waiting for approval; shown to no model until approved. */
  readonly pending?: true
  /** Stated by the operator, or learned from a session or a model. Entries of earlier versions have none. */
  readonly origin?: KnowledgeOrigin
  /** Learned and unused for so long that it is neither shown nor found any more. */
  readonly archived?: true
  readonly sources: readonly Source[]
}
/** Stated by the operator, or learned from a session. */
export type KnowledgeOrigin = 'operator' | 'learned'
/** Part of a saved chat: code, a file, data, a concept or a task. */
export type Item = EntryBase<'item'> & {
  readonly category: 'code' | 'file' | 'data' | 'concept' | 'task'
  readonly content: string
  readonly importance: number
  /** Marked by the user. */
  readonly marked: boolean
  readonly sources: readonly Source[]
}
/** Encrypted derived entry; only the fields that erasing needs are in clear text. */
export type EncryptedEntry = EntryBase<'encrypted'> & {
  readonly ciphertext: string
  readonly sources: readonly Source[]
}

/** Internal state of upkeep for a session: numbers and step names, never message text. */
export type UpkeepNotes = EntryBase<'notes'> & {
  /** Prevents two processes from doing the same upkeep; ignored once it has expired. */
  readonly lease?: { readonly holder: string; readonly until: Millis }
  /** Failures of the last upkeep run. */
  readonly faults?: readonly { readonly step: string; readonly why: string }[]
  /** Expected number of facts; a damaged fact that was set aside is detected by the difference. */
  readonly facts?: number
  /** Messages to shorten, leave out or show as long-term memory when the budget is under pressure. */
  readonly triage?: {
    readonly compressed: readonly SequenceRange[]
    readonly dropped: readonly SequenceRange[]
    readonly promoted: readonly SequenceRange[]
  }
  readonly tuning?: TuningState
  /** Sequence number of the last message that knowledge was learnt from. */
  readonly learned?: number
  /** Always empty: no message is a source of these notes. */
  readonly sources: readonly Source[]
}

/** Parameters that the optimizer adjusts. */
export type TuningParameters = {
  /** Share of the budget at which the history starts to be shortened. */
  readonly trigger: number
  /** Number of newest messages that are never shortened. */
  readonly window: number
  readonly minRelevance: number
}

/** Result of one optimizer run. */
export type TuningRun = TuningParameters & {
  readonly at: Millis
  readonly tokensBefore: Tokens
  readonly tokensAfter: Tokens
  readonly compressed: number
  readonly dropped: number
  readonly promoted: number
}

/** State of the optimizer for a session. */
export type TuningState = {
  readonly parameters: TuningParameters
  readonly runs: number
  readonly saved: Tokens
  /** The newest runs, in order. */
  readonly snapshots: readonly TuningRun[]
}

/** Id of the metadata of a session. */
export const metadataId = 'about'

/** Settings and description of a session; never shown to a model and never found by search. */
export type SessionMetadata = EntryBase<'about'> & {
  /** Name of the template the session was created from. */
  readonly template?: string
  /** Maximum time without use; overrides the profile's `lifetime.idle`. */
  readonly idle?: Millis
  /** Maximum age; overrides the profile's `lifetime.age`. */
  readonly age?: Millis
  /** Id of the person who speaks in the session, if known across sessions. */
  readonly person?: string
  readonly metadata?: Json
  /** Session of the same scope that continues this one; this one accepts no more messages. */
  readonly movedTo?: string
  /** Session that this one continues; set until all of its messages have been copied. */
  readonly movedFrom?: string
  /** Session that this one branched from, and the last sequence number they share. */
  readonly branchOf?: { readonly session: string; readonly after: number }
  /** Always empty: no message is a source of metadata. */
  readonly sources: readonly Source[]
}
/** Everything a session or scope stores besides messages. */
export type DerivedEntry = Summary | Fact | Knowledge | Item | UpkeepNotes | SessionMetadata | EncryptedEntry
/** Everything a session or scope stores. */
export type Entry = Message | DerivedEntry

/** Shared by all sessions, so that the most frequent ids are stored once per process. */
const commonIds = Array.from({ length: 1_000 }, (_, sequence) => `m${sequence}`)

/** Returns the id of the message with this sequence number. */
export const formatMessageId = (sequence: number): string => commonIds[sequence] ?? `m${sequence}`

/** Returns the id of the long-term entry made from a message. */
export const formatPromotedId = (message: string): string => `i${message}`

/** Highest sequence number that an import accepts; it leaves room for more messages than a session can ever hold. */
export const maxImportedSequence = 2 ** 40

/** Returns the sequence number of a message id, or undefined for any other id. */
export function parseMessageId(id: string): number | undefined {
  return /^m[1-9][0-9]{0,14}$/.test(id) ? Number(id.slice(1)) : undefined
}

/** Tells whether a value can be the external id of a message. */
export const isExternalId = (value: unknown): value is string =>
  typeof value === 'string' && /^[^\0]{1,256}$/.test(value) && value.isWellFormed()

/** Tells whether a text has nothing to show. Providers reject blank content, so it is stored but never sent. */
export const isBlank = (text: string): boolean => text.trim() === ''

/** Kinds of entries for internal use: never shown, searched or embedded. */
export const internalKinds = ['encrypted', 'notes', 'about'] as const
export type InternalEntry = Extract<Entry, { kind: (typeof internalKinds)[number] }>

export const isInternal = (entry: Entry): entry is InternalEntry => internalKinds.some((kind) => kind === entry.kind)

/** Finds the metadata of a session among its derived entries. */
export const findMetadata = (derived: readonly DerivedEntry[]): SessionMetadata | undefined =>
  derived.find((entry) => entry.kind === 'about')

/** Returns the text by which an entry is searched and embedded. */
export function getEntryText(entry: Entry): string {
  if (entry.kind === 'message' || entry.kind === 'item') return entry.content
  if (entry.kind === 'summary') return entry.text
  if (isInternal(entry)) return ''
  return `${entry.key} ${typeof entry.value === 'string' ? entry.value : JSON.stringify(entry.value)}`.trim()
}

/** Address of an entry. */
export type EntryAddress = { readonly key: Key; readonly id: string }

const encoder = new TextEncoder()
/** Target of `encodeInto`, which is several times faster than looking at each character. */
const scratch = new Uint8Array(8_192)

/** Returns the length of a text in UTF-8 bytes. */
export function utf8Length(text: string): number {
  if (text === '') return 0
  const { read, written } = encoder.encodeInto(text, scratch)
  return read === text.length ? written : encoder.encode(text).length
}

/** Returns the size of a message's content, name, tool calls and payload in UTF-8 bytes. */
export function countMessageBytes(
  message: Pick<NewMessage, 'content' | 'name' | 'toolCallId' | 'toolCalls' | 'packedPayload'>,
): number {
  let bytes = utf8Length(message.content) + utf8Length(message.name ?? '') + utf8Length(message.toolCallId ?? '')
  for (const call of message.toolCalls ?? [])
    bytes += utf8Length(call.id) + utf8Length(call.name) + utf8Length(call.arguments)
  return message.packedPayload === undefined ? bytes : bytes + utf8Length(message.packedPayload)
}
