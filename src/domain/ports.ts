import type { Derived, Entry, Message, Millis, Tokens } from './entry.ts'
import type { Key, Scope } from './key.ts'
import type { ChatMessage } from './ledger.ts'
import type { Change, Head, Listed } from './session.ts'

/** A piece of the transcript: messages with `after < sequence < before`, the oldest first, or the newest when `newest`. */
export type Range = {
  readonly after?: number
  readonly before?: number
  readonly limit: number
  readonly newest?: boolean
}

/** What is forgotten of a session, and on which condition; everything, at once, when left out. */
export type Erasure =
  | { readonly entries: readonly string[] }
  | { readonly expiredBy: Millis }
  /** Of the whole scope, what a store keeps beside entries: remains of damaged ones, indexes. */
  | { readonly remains: true }

/** Where sessions are kept. Every method is complete: an adapter implements all of them or is not one. */
export interface Store {
  /** `ram` stores never write a byte anywhere else. */
  readonly durability: 'ram' | 'durable'
  /** The state of a session with its `recent` newest messages; for a session nobody has written to, an empty head. */
  head(key: Key, recent: number): Promise<Head>
  /** Messages in order of their sequence numbers. */
  page(key: Key, range: Range): Promise<readonly Message[]>
  /**
   * Atomic, and durable before it resolves. The same change twice is once, with the same answer; a stale `base` is a
   * `conflict`, a stale `epoch` is `erased`. Resolves to the messages appended.
   */
  commit(change: Change): Promise<readonly Message[]>
  /** Sessions in order of scope and id, of one scope or of all, after the one with this key; or only those that are over at a given time. */
  list(filter: {
    readonly scope?: Scope
    readonly expiredBy?: Millis
    readonly after?: string
    readonly limit: number
  }): Promise<readonly Listed[]>
  /**
   * Forgets the session, or these entries of it, for good. Writers that read the session before are refused: with the
   * whole session gone by its epoch, with entries by its revision, also if none of them was there. With `expiredBy` nothing happens unless the
   * session is still over then: somebody may have begun it anew. Resolves to the ids that went.
   */
  erase(key: Key, only?: Erasure): Promise<readonly string[]>
  close(): Promise<void>
}

/** Where to look: one session, or without an `id` a whole scope, its own memory and all its sessions. */
export type Where = { readonly scope: Scope; readonly id?: string }

/** A text as numbers, by the embedder of this name. Vectors of different embedders are never compared. */
export type Vector = { readonly model: string; readonly values: Float32Array }

/**
 * What to look for: a text, a vector, or both, mixed. `before` leaves out messages from that sequence number on and
 * counts only within one session.
 */
export type Query = {
  readonly text?: string
  readonly vector?: Vector
  readonly kinds?: readonly Entry['kind'][]
  readonly from?: Millis
  readonly to?: Millis
  readonly before?: number
  readonly limit: number
}
export type Hit = {
  readonly key: Key
  readonly entry: Entry
  readonly score: number
  readonly why: Readonly<Record<string, number>>
}

/** What has changed since a stamp. `lineage` differs once anything was forgotten; `sessions` are those that were written to. */
export type Changes = { readonly stamp: number; readonly lineage: string; readonly sessions: readonly Key[] }

/** Entries that have no vector of a model yet, and where to go on. */
export type Unembedded = {
  readonly entries: readonly { readonly key: Key; readonly id: string; readonly epoch: number; readonly text: string }[]
  readonly next: string | undefined
}
/** A vector, with the text it was made of: an entry that says something else by now does not get it. */
export type Embedded = Unembedded['entries'][number] & { readonly values: Float32Array }

/** Finds entries by what they say or mean. Ranks by the statistics of what it searches: another scope's data never changes a result. */
export interface Index {
  /** Best first. */
  search(where: Where, query: Query): Promise<readonly Hit[]>
  /** For whoever keeps something of its own in front of the store: what to read again. */
  changes(where: Where, since: number): Promise<Changes>
  /** Entries without a vector of this model, in a fixed order, from the start with `''`; what is written meanwhile may be left out. */
  unembedded(model: string, after: string, limit: number): Promise<Unembedded>
  /** Keeps vectors in place of older ones; for entries that are gone or changed by now, nothing. Resolves to how many were kept. */
  embed(model: string, vectors: readonly Embedded[]): Promise<number>
  /** How many entries have a vector of this model, of how many. */
  embedded(model: string): Promise<{ readonly done: number; readonly total: number }>
}

/** Counts tokens the way a model does. */
export interface Tokenizer {
  readonly name: string
  /** Whether `count` is exact, never too small, or a guess. */
  readonly kind: 'exact' | 'bound' | 'estimate'
  count(text: string): Tokens
  /** False for text that an exact tokenizer bounded from above instead of counting it. */
  isExact(text: string): boolean
  /** What a provider adds: for each message, for a name, for each tool call, and before the reply. */
  readonly overhead: { readonly message: Tokens; readonly name: Tokens; readonly call: Tokens; readonly reply: Tokens }
}

export type Ask = {
  readonly messages: readonly ChatMessage[]
  readonly model?: string
  readonly maxTokens?: number
  readonly temperature?: number
}

/** A language model that answers a conversation piece by piece. */
export interface Model {
  readonly name: string
  reply(ask: Ask, signal?: AbortSignal): AsyncIterable<string>
}

/** Turns texts into vectors of one length; `name` changes whenever the vectors would. */
export interface Embedder {
  readonly name: string
  embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]>
}

export type Clock = () => Millis
export type { Derived }
