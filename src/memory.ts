import { toAnthropic } from './context/anthropic.ts'
import type { Composed } from './context/compose.ts'
import { Renderer } from './context/render.ts'
import type { Trace } from './context/replay.ts'
import type { ExportOptions, Imported, ImportOptions } from './domain/bundle.ts'
import type { Incoming, Parsed } from './domain/chat.ts'
import type { About, Json, Knowledge, Message, Millis } from './domain/entry.ts'
import { check, MemoryError } from './domain/error.ts'
import { formatKey, type Key, parseKey, type Scope, scopeKey } from './domain/key.ts'
import type { AnthropicContext, Context, Provider } from './domain/ledger.ts'
import type { Index, Store, Tokenizer } from './domain/ports.ts'
import type { Profile } from './domain/profile.ts'
import { type Head, isExpired } from './domain/session.ts'
import type { Description } from './lifecycle/about.ts'
import { eraseOver } from './lifecycle/eraseOver.ts'
import type { Lifecycle } from './lifecycle/lifecycle.ts'
import { type Appended, type Appending, type AppendOptions, appended } from './memory/appending.ts'
import { type ContextOptions, Contexts } from './memory/contexts.ts'
import type { Embedding, EmbeddingProgress } from './memory/embedding.ts'
import { Forgetting, type Forgotten, type Rederive, type Target } from './memory/forgetting.ts'
import type { Parts } from './memory/parts.ts'
import { type Remembered, remember } from './memory/remembering.ts'
import type { Replayed, Replaying } from './memory/replaying.ts'
import { type SearchOptions, type SearchQuery, type SearchResult, searched } from './memory/searching.ts'
import type { UpkeepHealth } from './upkeep/keeper.ts'
import type { Upkeep } from './upkeep/upkeep.ts'

/** Internal access for the other parts of this package (server, MCP, handoff, CLI). The package does not export it. */
export type MemoryInternals = Parts & {
  /** Appends like `append`, returns the epoch too, and skips reading the session when `head` was read just now. */
  append(key: Key, messages: readonly Incoming[], options: AppendOptions, head?: Head): Promise<Appended>
  /** Appends without lifecycle limits, upkeep or vectors, for branches. */
  appendRaw(key: Key, messages: readonly Incoming[]): Promise<Appended>
  /** Builds a context like `context`, with its text rendered on demand. */
  buildContext(key: Key, options: ContextOptions, provider?: Provider): Promise<Composed>
}

let readInternals: (memory: Memory) => MemoryInternals

/** Returns the dependencies and internal operations of a memory. */
export const internalsOf = (memory: Memory): MemoryInternals => readInternals(memory)

export type TranscriptOptions = { readonly after?: number; readonly limit?: number; readonly newest?: boolean }

/** Keeps conversations and decides what a model is shown of them. */
export class Memory implements AsyncDisposable {
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  /** What it is made of, for what is built around it. */
  readonly parts: Parts
  private readonly appending: Appending
  private readonly contexts: Contexts
  private readonly embeddings: readonly Embedding[]
  private readonly keeping: Upkeep | undefined
  private readonly life: Lifecycle | undefined
  private closed = false
  readonly #internals: MemoryInternals

  static {
    readInternals = (memory) => memory.#internals
  }

  constructor(parts: Parts) {
    this.parts = parts
    this.profile = parts.profile
    this.tokenizer = parts.tokenizer
    const renderer = new Renderer(parts.tokenizer)
    this.contexts = new Contexts({ ...parts, renderer })
    const { embedder, embedding } = parts
    this.embeddings =
      embedder === undefined || embedding === undefined ? [] : this.stores().map((store) => embedding(store, embedder))
    for (const embedding of this.embeddings) embedding.catchUp()
    this.life = parts.lifecycle?.(parts)
    this.keeping = parts.upkeep?.({
      ...parts,
      price: (entry) => renderer.price(entry),
      onPut: (key, epoch, entries) => this.embeddings[0]?.heard(key, epoch, entries),
    })
    this.appending = { ...parts, life: this.life, vectors: this.embeddings[0], keeping: this.keeping }
    this.#internals = {
      ...parts,
      append: (key, messages, options, head) => this.take(key, messages, options, head),
      appendRaw: (key, messages) => appended(parts, key, messages, {}),
      buildContext: (key, options, provider) => this.recall(key, options, provider),
    }
  }

  /** Who does upkeep, how much is under way, and what last went wrong. */
  health(): UpkeepHealth {
    return this.keeping?.health() ?? { by: 'nobody', running: 0, done: 0, degraded: [] }
  }

  /** What is old and how it is kept small: summaries, facts, the optimizer. */
  get upkeep(): Upkeep {
    return (
      this.keeping ??
      missing(
        'upkeep',
        'This memory has no upkeep. Leave out upkeep: false. In a browser pass upkeep from threadkeep/upkeep.',
      )
    )
  }

  /**
   * Stores messages at the end of a session. With the same `operationId` again, they are stored once; with the `epoch`
   * in which they were asked for, they are refused as `erased` if the session has been forgotten since.
   */
  async append(
    key: string | Key,
    messages: readonly Incoming[],
    options: AppendOptions = {},
  ): Promise<readonly Message[]> {
    return (await this.take(key, messages, options)).stored
  }

  /** Appends, for what is built around memory: tells in which epoch that was, and need not read a session that was `read` just now. */
  take(key: string | Key, messages: readonly Incoming[], options: AppendOptions, read?: Head): Promise<Appended> {
    return appended(this.appending, this.open(key), messages, options, read)
  }

  /** What a model is shown now, inside the budget, with the receipt. Writes nothing. */
  async context(
    key: string | Key,
    options: ContextOptions & { readonly provider: 'anthropic' },
  ): Promise<AnthropicContext>
  async context(key: string | Key, options?: ContextOptions & { readonly provider?: 'openai' }): Promise<Context>
  async context(
    key: string | Key,
    options: ContextOptions & { readonly provider?: Provider } = {},
  ): Promise<Context | AnthropicContext> {
    check(
      'provider',
      options.provider,
      [undefined, 'openai', 'anthropic'].includes(options.provider),
      'openai or anthropic',
    )
    const { messages, text, ledger } = await this.recall(key, options, options.provider)
    const context: Context = {
      messages,
      get text() {
        return text()
      },
      ledger,
    }
    return options.provider === 'anthropic' ? { ...context, ...toAnthropic(messages) } : context
  }

  /** A context for what is built around memory. */
  recall(key: string | Key, options: ContextOptions, provider?: Provider): Promise<Composed> {
    const parsed = this.open(key)
    const upkeep = this.keeping?.ready(parsed, this.contexts.budgetOf(options))
    const composed = () => this.contexts.composed(parsed, options, provider)
    return upkeep === undefined ? composed() : upkeep.then(composed)
  }

  /** The messages of a session, whole and in order: the first ones after a sequence number, or the newest ones. */
  async transcript(
    key: string | Key,
    { after = 0, limit = Number.MAX_SAFE_INTEGER, newest = false }: TranscriptOptions = {},
  ): Promise<readonly Message[]> {
    const parsed = this.open(key)
    const { sessions, clock } = this.parts
    const isTail = newest && after === 0
    const head = await sessions.head(parsed, isTail ? limit : 0)
    if (isExpired(head, clock())) return []
    return isTail ? head.recent : sessions.page(parsed, { after, limit, newest })
  }

  /**
   * Finds what a scope holds on a question, in all its sessions and its own memory, best first: by words, and with an
   * embedder by meaning too.
   *
   * @example
   * await memory.search('acme', 'what is my cat called?', { limit: 5, kinds: ['message', 'fact'] })
   */
  async search(scope: Scope, query: SearchQuery, options: SearchOptions = {}): Promise<readonly SearchResult[]> {
    const where = this.open(options.session ? `${scope}:${options.session}` : scope)
    const asked = typeof query === 'string' ? await this.masked(where, query) : query
    return searched(
      { ...this.parts, stores: this.stores(), embedding: this.embeddings[0], lifetime: this.profile.lifetime },
      where,
      asked,
      options,
    )
  }

  /** Keeps something in the scope's own memory; told again, it is believed a little more. The profile says who may tell. */
  async remember(scope: Scope, knowledge: Remembered): Promise<Knowledge> {
    const key = scopeKey(this.open(scope))
    const { entry, epoch } = await remember(this.parts, key, knowledge)
    this.embeddings.at(-1)?.heard(key, epoch, [entry])
    return entry
  }

  /** How far the vectors have come; undefined without an embedder. `settled` waits until there is nothing left to do. */
  async embedded(options: { readonly settled?: boolean } = {}): Promise<EmbeddingProgress | undefined> {
    if (options.settled) await Promise.all(this.embeddings.map((embedding) => embedding.settled()))
    const [first, second] = await Promise.all(this.embeddings.map((embedding) => embedding.progress()))
    // There are at most two: of sessions, and of the memory of scopes.
    return first && second ? { ...first, done: first.done + second.done, total: first.total + second.total } : first
  }

  /** Changes when the session is forgotten: what was asked for in an earlier epoch must not bring it back. */
  async epoch(key: string | Key): Promise<number> {
    return (await this.parts.sessions.head(this.open(key), 0)).epoch
  }

  /** Forgets for good, with everything derived from it; what began to be written before is refused. */
  async forget(target: Target): Promise<Forgotten> {
    const { scope } = this.open('scope' in target ? target.scope : target.key)
    for (const embedding of this.embeddings) embedding.drop(scope)
    const forgotten = await new Forgetting({ ...this.parts, life: this.life }, this.rederive()).forget(
      target,
      this.parts.clock(),
    )
    this.keeping?.forgot(scope)
    // What was written meanwhile may be gone too; what is still there, or was made anew, wants its vector.
    for (const embedding of this.embeddings) {
      embedding.drop(scope)
      embedding.catchUp()
    }
    return this.parts.beside?.(this.stores(), target, forgotten) ?? forgotten
  }

  /**
   * Everything that is kept, as the bytes of a portable bundle. What a profile keeps in RAM only is not exported.
   *
   * @example
   * await pipeline(memory.export({ scope: 'acme' }), createWriteStream('acme.jsonl'))
   */
  export(options: ExportOptions = {}): AsyncIterable<Uint8Array> {
    return this.parts.portable.exportBundle(this.portableStore(), options)
  }

  /** Takes in a portable bundle, which is opened twice: to prove that it is whole, then to write it. */
  import(open: () => AsyncIterable<Uint8Array>, options: ImportOptions = {}): Promise<Imported> {
    return this.parts.portable.importBundle(this.portableStore(), open, options)
  }

  /** Ends sessions that are over, and the oldest ones when there are too many. The host decides how often. */
  async sweep(now: Millis = this.parts.clock()): Promise<{ readonly ended: readonly string[] }> {
    const ended = await (this.life?.sweep(now) ?? eraseOver(this.parts, now))
    await this.keeping?.tick(now)
    return { ended: ended.map(formatKey) }
  }

  /** What sees to limits, ends and transfers of sessions. */
  get lifecycle(): Lifecycle {
    return (
      this.life ??
      missing('lifecycle', 'This memory has no lifecycle. In a browser pass lifecycle from threadkeep/lifecycle.')
    )
  }

  /** Ends a session now; false if there is none. */
  end(key: string | Key): Promise<boolean> {
    return this.lifecycle.end(this.open(key), 'ended')
  }

  /** Lets a session go on under another key of its scope, with everything that was said in it; the old one refuses writers as `moved`. */
  async transfer(from: string | Key, to: string | Key): Promise<void> {
    const key = this.open(from)
    await this.lifecycle.transfer(key, this.open(to))
    this.keeping?.forgot(key.scope)
    for (const embedding of this.embeddings) embedding.catchUp()
  }

  /** What was said about a session: its own lifetime, who speaks, whatever its host wants to know. */
  about(key: string | Key): Promise<About | undefined> {
    return this.lifecycle.about(this.open(key))
  }

  /** Says something about a session, which begins with it if need be. */
  describe(key: string | Key, about: Description): Promise<About> {
    return this.lifecycle.describe(this.open(key), about)
  }

  /** Whether the secrets behind all marks in a text of a session are at hand: then the same secret has the same mark again. */
  knowsSecrets(key: string | Key, text: string): boolean {
    return this.parts.barrier?.knowsAll(this.open(key), text) ?? true
  }

  /** A message as it would be kept: with marks in the place of secrets. */
  async asKept(key: string | Key, said: Parsed): Promise<Parsed> {
    return (await this.parts.barrier?.masked(this.open(key), said)) ?? said
  }

  /** Text or data as it may be kept, sent or logged: with marks in the place of secrets. */
  async masked<T extends Json>(key: string | Key, value: T): Promise<T> {
    return ((await this.parts.barrier?.json(this.open(key), value)) ?? value) as T
  }

  /** A context with everything it was made from, to be replayed under another profile. */
  async trace(key: string | Key, options: ContextOptions = {}): Promise<Trace> {
    const query = options.query === undefined ? {} : { query: await this.masked(key, options.query) }
    return this.replaying().trace(this.contexts, this.open(key), { ...options, ...query }, await this.transcript(key))
  }

  /** What another profile would have shown, and which messages would have fared differently. */
  replay(trace: Trace, profile: Profile): Replayed {
    return this.replaying().replay(this.contexts, trace, profile)
  }

  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    await this.keeping?.stop()
    await this.life?.stop()
    await Promise.all(this.embeddings.map((embedding) => embedding.stop()))
    for (const store of this.stores()) await store.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private replaying(): Replaying {
    return this.parts.replaying ?? missing('replaying', 'In a browser, pass replaying from threadkeep/replaying.')
  }

  private rederive(): Rederive {
    return this.parts.rederive ?? (async (entry, from) => this.keeping?.rederive(entry, from))
  }

  private portableStore(): Store {
    this.open('any')
    const { sessions, store } = this.parts
    if (sessions !== store || this.profile.durability === 'durable') return store
    return missing(
      'profile',
      `Profile ${this.profile.name} lives in RAM only: it is not exported, and nothing is imported into it.`,
    )
  }

  /** Where sessions are kept, then where the memory of scopes is, if that is elsewhere. */
  private stores(): readonly (Store & Index)[] {
    return [...new Set([this.parts.sessions, this.parts.store])]
  }

  private open(key: string | Key): Key {
    if (this.closed) throw new MemoryError('closed', 'This memory is closed; open it again.')
    return parseKey(key)
  }
}

/** What a memory was opened without, or with what does not do. */
function missing(param: string, why: string): never {
  throw new MemoryError('bad-option', why, { param })
}
