import type { Key } from './key.ts'
import type { Tuning } from './tuning.ts'

export type Millis = number
export type Tokens = number
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** A run of sequence numbers, both ends included. */
export type Run = readonly [first: number, last: number]

type Base<K extends string> = { readonly kind: K; readonly id: string; readonly at: Millis }

/**
 * Where a derived entry came from; erasing follows these, and a fact is believed only with a span. `session` names
 * another session of the scope; without it the message is one of the entry's own session.
 */
export type Source = {
  readonly message: string
  readonly session?: string
  readonly span?: readonly [from: number, to: number]
}
export type Role = 'system' | 'user' | 'assistant' | 'tool'
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string }

/** What is said, as the writer gives it: the store adds its place in the session. */
export type Said = {
  readonly at: Millis
  readonly role: Role
  readonly name?: string
  readonly content: string
  /** Tools an assistant asked for. */
  readonly calls?: readonly ToolCall[]
  /** The call a tool's message answers. */
  readonly answers?: string
  /** What it costs as a message of its own and as a line of a block, by the tokenizer of this name. */
  readonly tokens: Tokens
  readonly lineTokens: Tokens
  readonly tokenizer: string
  /** What it counts towards the next compaction: `tokens`, but never more than the profile's cap. */
  readonly weight: Tokens
}

/**
 * A message of the transcript. `id` is unique within its session and never given twice; `sequence` grows by one with
 * each message; `offset` is the sum of the weights before it, so that a place in the history is found without reading it.
 */
export type Message = Base<'message'> & Said & { readonly sequence: number; readonly offset: Tokens }

export type Summary = Base<'summary'> & {
  readonly tier: 'progressive' | 'hour' | 'session' | 'batch'
  readonly text: string
  /** First and last sequence number it stands for, and the sum of the weights up to its end. */
  readonly covers: Run
  readonly reach: Tokens
  readonly version: number
  /** Who made it: `builtin`, or the name of a model. */
  readonly by: string
  readonly sources: readonly Source[]
  /** Messages that hold a name, number or constraint which the text does not: what was lost can be read there. */
  readonly lost: readonly Run[]
}
export type Fact = Base<'fact'> & {
  readonly field: string
  readonly key: string
  readonly value: Json
  readonly importance: number
  readonly sources: readonly Source[]
  readonly supersedes?: string
  readonly until?: Millis
}
export type Knowledge = Base<'knowledge'> & {
  readonly category: string
  readonly key: string
  readonly value: Json
  readonly confidence: number
  readonly usedAt: Millis
  /** Up to when its confidence has been taken back for not being used. */
  readonly agedAt?: Millis
  /** Sessions that have told it, and that have used it: a session counts once. */
  readonly told?: readonly string[]
  readonly used?: readonly string[]
  /** Waits for somebody's approval, and is shown to no model until then. */
  readonly pending?: true
  readonly sources: readonly Source[]
}
export type Item = Base<'item'> & {
  readonly category: 'code' | 'file' | 'data' | 'concept' | 'task'
  readonly content: string
  readonly importance: number
  readonly marked: boolean
  readonly sources: readonly Source[]
}
/** A derived entry that is kept under a key; only what erasing needs can be read without it. */
export type Sealed = Base<'sealed'> & { readonly box: string; readonly sources: readonly Source[] }
/** What upkeep notes about a session for itself: numbers and names of steps, never what was said. */
export type Notes = Base<'notes'> & {
  /** Who is at work on the session, so that nobody else begins the same; once it is over, it counts for nothing. */
  readonly lease?: { readonly holder: string; readonly until: Millis }
  /** What did not go as it should when upkeep was last done. */
  readonly faults?: readonly { readonly step: string; readonly why: string }[]
  /** How many facts there should be: one that was damaged, and put aside, is found again. */
  readonly facts?: number
  /** Messages that are shown shorter, not at all, or as long-term memory, once the budget is under pressure. */
  readonly triage?: {
    readonly compressed: readonly Run[]
    readonly dropped: readonly Run[]
    readonly promoted: readonly Run[]
  }
  readonly tuning?: Tuning
  /** Always empty: nothing here was said by anybody. */
  readonly sources: readonly Source[]
}
/** What a session is to whoever runs it: settings and descriptions, never shown to a model and never found by a search. */
export type About = Base<'about'> & {
  /** The name of the template it was begun from. */
  readonly template?: string
  /** Its own lifetime, in place of its profile's: how long without use, and how long at all. */
  readonly idle?: Millis
  readonly age?: Millis
  /** Who speaks in it, if that is somebody known in other sessions too. */
  readonly person?: string
  readonly metadata?: Json
  /** The session of the same scope that goes on in its place: here, nothing is said any more. */
  readonly movedTo?: string
  /** The session that it goes on for, until it has everything that was said there. */
  readonly movedFrom?: string
  /** The session it was cut off from, and after which message. */
  readonly branchOf?: { readonly session: string; readonly after: number }
  /** Always empty, as in notes. */
  readonly sources: readonly Source[]
}
export type Derived = Summary | Fact | Knowledge | Item | Notes | About | Sealed
export type Entry = Message | Derived

/** Every session has messages with these ids: it need not have the text of each to itself. */
const ids = Array.from({ length: 1_000 }, (_, sequence) => `m${sequence}`)

/** The id of the message with this sequence number. */
export const messageId = (sequence: number): string => ids[sequence] ?? `m${sequence}`

/** The id of the long-term entry of a message. */
export const promotedId = (message: string): string => `i${message}`

/** The sequence number behind a message id, or undefined for any other id. */
export function sequenceOf(id: string): number | undefined {
  return /^m[1-9][0-9]{0,14}$/.test(id) ? Number(id.slice(1)) : undefined
}

/** Text nobody can be shown: providers refuse it, so it is stored and never sent. */
export const isBlank = (text: string): boolean => text.trim() === ''

/** Kinds of entries that say nothing to a model: they are not shown, found or embedded. */
export const silent = ['sealed', 'notes', 'about'] as const
export type Silent = Extract<Entry, { kind: (typeof silent)[number] }>

/** Whether an entry says nothing to a model. */
export const isSilent = (entry: Entry): entry is Silent => silent.some((kind) => kind === entry.kind)

/** What a session is to whoever runs it, if anybody has said so. */
export const aboutIn = (derived: readonly Derived[]): About | undefined =>
  derived.find((entry) => entry.kind === 'about')

/** What an entry says, as plain text: what it is found and embedded by. */
export function textOf(entry: Entry): string {
  if (entry.kind === 'message' || entry.kind === 'item') return entry.content
  if (entry.kind === 'summary') return entry.text
  if (isSilent(entry)) return ''
  return `${entry.key} ${typeof entry.value === 'string' ? entry.value : JSON.stringify(entry.value)}`.trim()
}

/** Where an entry lives. */
export type Place = { readonly key: Key; readonly id: string }
