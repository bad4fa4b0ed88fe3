import type { Entry, Json, Message, Millis, Tokens } from './entry.ts'
import type { FileMaintenance } from './fileMaintenance.ts'
import type { Key, Scope } from './key.ts'
import type { ChatMessage } from './ledger.ts'
import type { MetadataFilter, SessionChange, SessionHead, SessionListItem } from './session.ts'

/** Page of the transcript: messages with `after < sequence < before`, the oldest ones first unless `newest` is set. */
export type PageOptions = {
  readonly after?: number
  readonly before?: number
  readonly limit: number
  /** Takes the newest messages of the range instead of the oldest; they are still returned in order. */
  readonly newest?: boolean
  /** The caller has just read the session at this revision: the store may answer from a cache that has seen it. */
  readonly revision?: number
}

/** Restricts the sessions that `Store.list` returns. */
export type SessionFilter = {
  readonly scope?: Scope
  /** Only sessions that have expired at this time. */
  readonly expiredBy?: Millis
  /** Only sessions whose metadata is an object with these top-level fields. */
  readonly metadata?: MetadataFilter
  /** Starts after the session with this key. */
  readonly after?: string
  readonly limit: number
}

/** Restricts what `Store.erase` deletes. */
export type EraseFilter =
  | { readonly entries: readonly string[] }
  /** Erases the session only if it has expired at this time. */
  | { readonly expiredBy: Millis }
  /** Erases data of the whole scope that is stored beside entries: damaged rows that were set aside, and indexes. */
  | { readonly remains: true }
  /** Erases only the auxiliary records of the session. */
  | { readonly records: true }

/**
 * A record stored beside a session, such as a receipt. It is erased and moved with its session, and is not part of its
 * transcript, of session lists and counts, or of search.
 */
export type AuxiliaryRecord = {
  /** Unique within the session. */
  readonly id: string
  readonly at: Millis
  /** JSON. */
  readonly body: string
}
/** A stored record; numbers ascend within a session and may have gaps. */
export type StoredRecord = AuxiliaryRecord & { readonly number: number }
/** Page of auxiliary records, newest first. */
export type RecordRange = { readonly before?: number; readonly limit: number }

/**
 * A key that opens an encrypted store. Its id is the beginning of its SHA-256 and is stored beside every key it wraps.
 */
export type MasterKey = { readonly id: string; readonly bytes: Uint8Array }
/** `current` encrypts new sessions; `others` only decrypt sessions that were encrypted with them. */
export type Keyring = { readonly current: MasterKey; readonly others: readonly MasterKey[] }

/** Erases data that was derived from a store's entries and is stored elsewhere. */
export type EraseListener = {
  /** Called after a session was erased, or only these entries of it. */
  onErase(key: Key, entries?: readonly string[]): Promise<void>
  /**
   * Erases data that contains one of the texts, or without texts the whole scope. Resolves to opaque names of the
   * erased data.
   */
  forget(scope: Scope, texts?: readonly string[]): Promise<readonly string[]>
}

/** A memory limit that the store does not enforce by itself: the caller ends the sessions it proposes. */
export type MemoryLimit = {
  /** While sessions use more memory than allowed: the least recently used one, but never the one used last. */
  evictionCandidate(): Key | undefined
  /** Compresses sessions that have not been used for a while. */
  compressIdle(now: Millis): void
  /** Estimated memory used by sessions, and the limit. */
  readonly memoryUsage: { readonly usedBytes: number; readonly maxBytes?: number }
}

/** Counts the sessions of a scope, or of all, in constant time, including expired ones that are not erased yet. */
export type SessionCounter = { countSessions(scope?: Scope): number | Promise<number> }

/** The file of a store. */
export type StoreFile = {
  readonly path: string
  /** The file was opened with keys and accepts only encrypted content. */
  readonly isEncrypted: boolean
  /** Throws `closed`, or `file-changed` if the file was deleted or replaced; takes microseconds. */
  check(): void
  /**
   * Overwrites copies of erased content in unused parts of the file. Resolves when nothing that was erased before the
   * call is in the file or its log.
   */
  wipe(): Promise<void>
  /** Does the same if something was erased since the last time, but not too often, because it reads the whole file. */
  wipeIfDue(): Promise<void>
  /** Forgets all keys of the file but this one, after all sessions were wrapped with it. */
  retireKeys(current: string): void
}

/** Of a store that other processes use at the same time and that outlives this one. */
export type SharedTime = {
  /** Returns a clock that all these processes agree on; it advances as `local` does. */
  correctClock(local: Clock): Clock
}

/** Token buckets that all processes on a store share. They follow the clock of the store. */
export interface TokenBuckets {
  /**
   * Takes a token from a bucket, which is full at first, holds `perMinute` tokens and refills evenly within a minute.
   * Resolves to 0, or to the time until there is a token.
   */
  take(bucket: string, perMinute: number): Promise<Millis>
}

/** Statements on a database server, in a transaction that has entered a scope. Rows are arrays of columns. */
export type SqlSession = {
  /** Runs one statement. `bigint` columns are numbers, `json` columns text. */
  query(
    sql: string,
    values?: readonly (null | boolean | number | string | Uint8Array)[],
  ): Promise<readonly (readonly unknown[])[]>
  /** Runs several statements without values. */
  run(sql: string): Promise<void>
}

/** Database of a store on a server. */
export type StoreDatabase = {
  /** Address for messages, without password. */
  readonly name: string
  readonly schema: string
  /**
   * Runs statements in one transaction that sees only rows of the scope. It is repeated after a fault that may pass if
   * nothing was applied, or with `always` in any case.
   */
  transaction<T>(
    scope: Scope,
    work: (session: SqlSession) => Promise<T>,
    options?: { readonly repeat?: 'always' | 'if-not-applied'; readonly readOnly?: boolean },
  ): Promise<T>
}

/** Storage of the graphs of a store's scopes: in the database of the store, so that they are erased with it. */
export type GraphStorage = {
  /** Returns a copy of the keys of an encrypted store, which the caller wipes after use. */
  readonly copyKeyring?: () => Keyring
} & (
  | ({ readonly kind: 'sqlite'; readonly path: string } & FileMaintenance)
  | { readonly kind: 'postgres'; readonly database: StoreDatabase }
)

/** Optional abilities, declared by the store that has them. A store that wraps another one forwards them. */
export type StoreCapabilities = {
  readonly file?: StoreFile
  readonly graph?: GraphStorage
  /** Listeners to be called after each erasure. */
  readonly eraseListeners?: Set<EraseListener>
  readonly memoryLimit?: MemoryLimit
  readonly sessionCounter?: SessionCounter
  /** Rate limits across processes. Default: each process limits on its own. */
  readonly tokenBuckets?: TokenBuckets
  readonly shared?: SharedTime
  /** The word table that searches use; undefined if there is none. */
  readonly wordTable?: () => WordTable | undefined
  /** The languages that searches know. Default: English. */
  readonly languages?: () => Languages
  /** Messages indexed for searches since the store was opened; grows while an index is built. */
  readonly indexedMessages?: () => number
}

/**
 * Name of a row: a namespace of up to 16 parts, each of 1 to 256 characters without U+0000, and a key of 1 to 512
 * characters.
 */
export type TableKey = { readonly namespace: readonly string[]; readonly key: string }
/**
 * A value stored verbatim beside sessions, for programs that bring their own data model: never masked, aged, searched
 * or shown to a model.
 */
export type TableRow = TableKey & {
  readonly value: Json | Uint8Array
  readonly createdAt: Millis
  readonly updatedAt: Millis
  /** 1 for a new row; grows by one with every write. A row that was deleted and written again is a new one. */
  readonly revision: number
}
/** Change of one row. */
export type TableWrite = TableKey & {
  /** `undefined` deletes the row. */
  readonly value: Json | Uint8Array | undefined
  /** Revision that the row must have, 0 if it must not exist; otherwise all writes are rejected with `conflict`. */
  readonly expected?: number
  /** Time of creation of a row that is copied from elsewhere. Default: that of the existing row, or now. */
  readonly createdAt?: Millis
}
/** Rows whose namespace begins with `prefix`, after the row `after`. */
export type RowRange = { readonly prefix: readonly string[]; readonly after?: TableKey; readonly limit: number }

/**
 * Rows by scope, namespace and key. Rows are ordered by namespace, part by part, then by key; texts are ordered by
 * UTF-16 code units, and a namespace comes before its extensions.
 */
export interface StoreTable {
  /** Reads rows in the order of the keys; undefined for rows that do not exist. */
  readRows(scope: Scope, keys: readonly TableKey[]): Promise<readonly (TableRow | undefined)[]>
  /** Writes all rows or none; each row at most once. Durable when the promise resolves. */
  writeRows(scope: Scope, at: Millis, writes: readonly TableWrite[]): Promise<void>
  listRows(scope: Scope, range: RowRange): Promise<readonly TableRow[]>
  /** Lists the scopes that have rows, in order of UTF-16 code units, after the scope `after`. */
  listScopes(after: Scope, limit: number): Promise<readonly Scope[]>
  /** Deletes all rows of a scope permanently. Resolves to their number. */
  eraseRows(scope: Scope): Promise<number>
}

/** Storage of sessions. An adapter implements every method. */
export interface Store {
  readonly capabilities: StoreCapabilities
  /** `ram` stores never write anywhere else. */
  readonly durability: 'ram' | 'durable'
  /**
   * Reads the state of a session with its `recent` newest messages; an unknown session has an empty head. With
   * `revision`, which the caller has read before, a store may answer from a cache that has seen that revision and all
   * writes of this process.
   */
  readHead(key: Key, recent: number, revision?: number): Promise<SessionHead>
  /** Reads messages in order of their sequence numbers. */
  readMessages(key: Key, range: PageOptions): Promise<readonly Message[]>
  /** Reads the messages with these external ids, in order of their sequence numbers. */
  findMessages(key: Key, externalIds: readonly string[]): Promise<readonly Message[]>
  /**
   * Applies a change atomically; it is durable when the promise resolves. Committing the same change again has no
   * effect and gives the same result. Resolves to the appended messages.
   *
   * @throws MemoryError `conflict` for an outdated `base`, a message to replace that does not exist, or an external id
   * that another message has; `erased` for an outdated `epoch`.
   */
  commit(change: SessionChange): Promise<readonly Message[]>
  /** Lists sessions ordered by scope and id. */
  list(filter: SessionFilter): Promise<readonly SessionListItem[]>
  /**
   * Erases the session, or only some entries of it, permanently. Writers that read the session before are rejected:
   * by its epoch when the whole session was erased, by its revision when entries were, even if none of them existed.
   * With `expiredBy`, does nothing if the session was started again in the meantime. Resolves to the erased ids. A
   * store in a file may keep unreachable copies until `capabilities.file.wipe`.
   */
  erase(key: Key, only?: EraseFilter): Promise<readonly string[]>
  /**
   * Appends a record beside a session and drops the oldest records beyond `keep`. Resolves to false, storing nothing,
   * if the session does not exist.
   */
  appendRecord(key: Key, record: AuxiliaryRecord, keep: number): Promise<boolean>
  /** Reads records, newest first, that are older than the one with the number `before`. */
  records(key: Key, range: RecordRange): Promise<readonly StoredRecord[]>
  readonly table: StoreTable
  close(): Promise<void>
}

/** Search target: one session, or without `id` a whole scope with its own memory and all its sessions. */
export type SearchTarget = { readonly scope: Scope; readonly id?: string }

/** Embedding of a text by the embedder named `model`. Vectors of different embedders are never compared. */
export type Vector = {
  readonly model: string
  readonly values: Float32Array
  /** Share of the vector in a ranking by text and vector; see `Embedder.weight`. */
  readonly weight?: number
}

/** Search by text, by vector, or by both combined. */
export type IndexQuery = {
  readonly text?: string
  readonly vector?: Vector
  readonly kinds?: readonly Entry['kind'][]
  readonly from?: Millis
  readonly to?: Millis
  /** Excludes messages from this sequence number on; applies only to a search within one session. */
  readonly before?: number
  /**
   * Ranks for a context of this many tokens: by score per token, with every passage of a long message as a hit of its
   * own, also with passages that merely fit the topic. Returns no more than could fit.
   */
  readonly budget?: Tokens
  /** Also returns texts that match only by a word of somewhat related meaning. */
  readonly broad?: boolean
  /**
   * The caller has just read the searched session at this revision: the index need not ask the store for newer changes
   * if it has seen this one. Applies only to a search within one session.
   */
  readonly revision?: number
  readonly limit: number
}
/** Entry that an index found, with its score. */
export type IndexHit = {
  readonly key: Key
  readonly entry: Entry
  /** The passage of the entry's text that matches best: [start, end). */
  readonly passage?: readonly [start: number, end: number]
  readonly score: number
  /** Components of the score by name. */
  readonly why: Readonly<Record<string, number>>
}

/** Stem with a related meaning, its number in the table and its cosine. */
export type RelatedStem = { readonly row: number; readonly stem: string; readonly similarity: number }

/** Vectors of English word stems, of similar direction for stems of related meaning. */
export interface WordTable {
  readonly dimensions: number
  /** Number of a stem in the table. */
  rowOf(stem: string): number | undefined
  /** Adds the vector of a stem, times `factor`, to the vector of a text. */
  addTo(sum: Float32Array, row: number, factor?: number): void
  /** Stems with a related meaning whose number `isKnown` accepts, without the stem itself. */
  relatedStems(stem: string, isKnown: (row: number) => boolean): Iterable<RelatedStem>
  /** Creates an empty list of vectors of this length. */
  createVectors(): VectorList
}

/** Vectors that are compared with a query by their cosine. */
export interface VectorList {
  /** Adds a vector and returns its position. */
  add(values: Float32Array): number
  /** Returns the cosine of each vector with the query. The result is valid until the next call. */
  scores(query: Float32Array): Float32Array
}

/** Converts text of one language to the terms of a search index. */
export type TermExtractor = {
  /** ISO 639-1 code. */
  readonly language: string
  /** Returns the terms of a text in order, with repetitions. */
  extract(text: string): string[]
  /** Returns the terms of a word of a query with their weights, which add up to 1 or less; none for a stopword. */
  weighWord(word: string): readonly WeightedTerm[]
}
/** Search term and its weight. */
export type WeightedTerm = readonly [term: string, weight: number]

/** Returns the ISO 639-1 code of a sample's language, or undefined if it is too short or uncertain. */
export type LanguageDetector = (sample: string) => string | undefined

/** Languages that search knows beside English. */
export type Languages = {
  readonly detect: LanguageDetector
  /** Returns the extractor of an ISO 639-1 code; the English one if it is undefined. */
  extractorFor(language: string | undefined): TermExtractor
}

/**
 * Changes since a stamp. `lineage` differs once anything has been erased, replaced, or stored before the newest
 * message; `sessions` are those written to.
 */
export type IndexChanges = { readonly stamp: number; readonly lineage: string; readonly sessions: readonly Key[] }

/** Page of entries without a vector of a model; `next` is the cursor of the next page. */
export type UnembeddedPage = {
  readonly entries: readonly { readonly key: Key; readonly id: string; readonly epoch: number; readonly text: string }[]
  readonly next: string | undefined
}
/** Vector of an entry with the text it was computed from; rejected if the entry's text has changed since. */
export type EntryVector = UnembeddedPage['entries'][number] & { readonly values: Float32Array }
/** Vector of an entry, and the name of the embedder that computed it. */
export type StoredVector = Pick<Vector, 'model' | 'values'>

/**
 * Search over entries by words and by vectors. Ranking uses statistics of the searched scope only, so data of another
 * scope never changes a result.
 */
export interface SearchIndex {
  /** Finds entries, best first. */
  search(where: SearchTarget, query: IndexQuery): Promise<readonly IndexHit[]>
  /** Returns the sessions changed since a stamp, so that a cache in front of the store knows what to read again. */
  changesSince(where: SearchTarget, since: number): Promise<IndexChanges>
  /**
   * Lists entries without a vector of this model in a fixed order, starting with the cursor `''`; may miss entries
   * written meanwhile.
   */
  listUnembedded(model: string, after: string, limit: number): Promise<UnembeddedPage>
  /**
   * Stores vectors and replaces older ones; skips entries that were erased or changed. Resolves to the number stored.
   */
  storeVectors(model: string, vectors: readonly EntryVector[]): Promise<number>
  /** Returns the vectors of entries of a session, undefined for an entry without one. */
  readVectors(key: Key, ids: readonly string[]): Promise<readonly (StoredVector | undefined)[]>
  /** Counts entries with a vector of this model (`done`) and all entries (`total`). */
  countVectors(model: string): Promise<{ readonly done: number; readonly total: number }>
}

/** Counts tokens as a model does. */
export interface Tokenizer {
  readonly name: string
  /** Precision of `count`: exact, an upper bound, or an estimate. */
  readonly kind: 'exact' | 'bound' | 'estimate'
  count(text: string): Tokens
  /** False for text that an exact tokenizer bounds from above instead of counting. */
  isExact(text: string): boolean
  /** Tokens a provider adds per message, per name, per tool call, and once for the reply. */
  readonly overhead: { readonly message: Tokens; readonly name: Tokens; readonly call: Tokens; readonly reply: Tokens }
}

/** Request to a language model. */
export type ModelRequest = {
  readonly messages: readonly ChatMessage[]
  readonly model?: string
  readonly maxTokens?: number
  readonly temperature?: number
  /** Receives the token counts that the provider reports, if it does. */
  readonly onUsage?: (usage: ModelUsage) => void
}

/** Token counts of a model call as the provider reports them; `prompt` includes the cached tokens. */
export type ModelUsage = { readonly prompt: Tokens; readonly completion: Tokens; readonly cached: Tokens }

/** Language model for summaries and extraction. */
export interface Model {
  readonly name: string
  /** Streams the reply as pieces of text. */
  reply(request: ModelRequest, signal?: AbortSignal): AsyncIterable<string>
}

/** Computes vectors of one fixed length. `name` must change whenever the vectors would. */
export interface Embedder {
  readonly name: string
  /** Share of the embedder in a ranking by words and meaning, from 0 (words only) to 1 (meaning only); default 0.2. */
  readonly weight?: number
  embed(texts: readonly string[], signal?: AbortSignal): Promise<readonly Float32Array[]>
}

/** Returns the current time. */
export type Clock = () => Millis
