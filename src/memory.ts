import type { ExportOptions, Imported, ImportOptions } from './domain/bundle.ts'
import { type Incoming, parseMessage } from './domain/chat.ts'
import type { Derived, Knowledge, Message, Millis, Tokens } from './domain/entry.ts'
import { check, MemoryError } from './domain/error.ts'
import { formatKey, type Key, parseKey, type Scope, scopeKey } from './domain/key.ts'
import type { AnthropicContext, Context, Provider } from './domain/ledger.ts'
import type { Clock, Embedder, Index, Store, Tokenizer } from './domain/ports.ts'
import { type Framing, framings, type Profile } from './domain/profile.ts'
import { emptyHead, type Head, isExpired } from './domain/session.ts'
import { Embedding, type EmbeddingProgress } from './memory/embedding.ts'
import { Forgetting, type Forgotten, type Rederive, type Target } from './memory/forgetting.ts'
import { type Remembered, remember } from './memory/remembering.ts'
import { type SearchOptions, type SearchQuery, type SearchResult, searched } from './memory/searching.ts'
import { admit, crowded, isFull } from './recall/admit.ts'
import { compose } from './recall/compose.ts'
import { type Answer, type Gathered, gather, type Need } from './recall/gather.ts'
import { Renderer, weighed } from './recall/render.ts'
import { answersFrom, type Difference, differences, type Trace, walked } from './recall/replay.ts'

/** Everything a memory is made of. `openMemory` fills in what is left out. */
export type Parts = {
  readonly profile: Profile
  /** Where sessions of this profile live. */
  readonly sessions: Store & Index
  /** Where the memory of scopes lives. */
  readonly store: Store & Index
  readonly tokenizer: Tokenizer
  readonly embedder: Embedder | undefined
  readonly rederive: Rederive
  readonly portable: Portable
  readonly clock: Clock
}

/** Writes and reads portable bundles; not everywhere is there what it takes. */
export type Portable = {
  exportBundle(store: Store, options: ExportOptions): AsyncIterable<Uint8Array>
  importBundle(store: Store, open: () => AsyncIterable<Uint8Array>, options: ImportOptions): Promise<Imported>
}

export type AppendOptions = { readonly operationId?: string; readonly epoch?: number }

export type TranscriptOptions = { readonly after?: number; readonly limit?: number; readonly newest?: boolean }

export type ContextOptions = {
  /** What is being asked. Without it, the newest message of the user, which is then part of the context. */
  readonly query?: string
  readonly budget?: Tokens
  readonly framing?: Framing
}

const recent = 48

/** Keeps conversations and decides what a model is shown of them. */
export class Memory implements AsyncDisposable {
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  private readonly parts: Parts
  private readonly renderer: Renderer
  private readonly embeddings: readonly Embedding[]
  private closed = false

  constructor(parts: Parts) {
    this.parts = parts
    this.profile = parts.profile
    this.tokenizer = parts.tokenizer
    this.renderer = new Renderer(parts.tokenizer)
    const { embedder } = parts
    this.embeddings = embedder === undefined ? [] : this.stores().map((store) => new Embedding(store, embedder))
    for (const embedding of this.embeddings) embedding.catchUp()
  }

  /**
   * Stores messages at the end of a session. With the same `operationId` again, they are stored once; with the `epoch`
   * in which they were asked for, they are refused as `erased` if the session has been forgotten since.
   */
  async append(key: string | Key, messages: readonly Incoming[], options: AppendOptions = {}): Promise<readonly Message[]> {
    const parsed = this.open(key)
    if (!Array.isArray(messages))
      throw new MemoryError('bad-message', 'messages must be a list such as [{ role: "user", content: "Hello" }].', { param: 'messages' })
    const now = this.parts.clock()
    const append = messages.map((message, place) => weighed(this.tokenizer, parseMessage(message, place, now), this.profile.cap))
    if (append.length === 0) return []
    let head = await this.parts.sessions.head(parsed, 0)
    const before = isFull(head, append, this.profile.lifetime, now) ? await this.answered(head, options) : undefined
    if (before !== undefined) return before
    const { ended, drop, expiresAt } = admit(head, append, this.profile.lifetime, now)
    if (ended) {
      await this.parts.sessions.erase(parsed, { expiredBy: now })
      head = await this.parts.sessions.head(parsed, 0)
    }
    const epoch = options.epoch ?? head.epoch
    const operation = options.operationId === undefined ? {} : { id: options.operationId }
    const change = { ...operation, key: parsed, at: now, epoch, append, put: [], drop, expiresAt }
    const stored = await this.parts.sessions.commit(change)
    this.embeddings[0]?.heard(parsed, epoch, stored)
    return stored
  }

  /** What a model is shown now, inside the budget, with the receipt. Writes nothing. */
  async context(key: string | Key, options: ContextOptions & { readonly provider: 'anthropic' }): Promise<AnthropicContext>
  async context(key: string | Key, options?: ContextOptions & { readonly provider?: 'openai' }): Promise<Context>
  async context(key: string | Key, options: ContextOptions & { readonly provider?: Provider } = {}): Promise<Context | AnthropicContext> {
    check('provider', options.provider, [undefined, 'openai', 'anthropic'].includes(options.provider), 'openai or anthropic')
    const { gathered, budget, framing } = await this.gathered(key, options)
    const { anthropic, ...context } = compose(gathered, this.profile, this.renderer, { budget, framing, provider: options.provider ?? 'openai' })
    return options.provider === 'anthropic' ? anthropic() : context
  }

  /** The messages of a session, whole and in order: the first ones after a sequence number, or the newest ones. */
  async transcript(key: string | Key, { after = 0, limit = Number.MAX_SAFE_INTEGER, newest = false }: TranscriptOptions = {}): Promise<readonly Message[]> {
    const parsed = this.open(key)
    const messages = await this.parts.sessions.page(parsed, { after, limit, newest })
    return isExpired(await this.parts.sessions.head(parsed, 0), this.parts.clock()) ? [] : messages
  }

  /**
   * Finds what a scope holds on a question, in all its sessions and its own memory, best first: by words, and with an
   * embedder by meaning too.
   *
   * @example
   * await memory.search('acme', 'what is my cat called?', { limit: 5, kinds: ['message', 'fact'] })
   */
  async search(scope: Scope, query: SearchQuery, options: SearchOptions = {}): Promise<readonly SearchResult[]> {
    const where = this.open(options.session === undefined || options.session === '' ? scope : `${scope}:${options.session}`)
    return searched({ ...this.parts, stores: this.stores(), embedding: this.embeddings[0], lifetime: this.profile.lifetime }, where, query, options)
  }

  /** Keeps something in the scope's own memory; told again, it is believed a little more. */
  async remember(scope: Scope, knowledge: Remembered): Promise<Knowledge> {
    const key = scopeKey(this.open(scope))
    const { entry, epoch } = await remember(this.parts, key, knowledge)
    this.embeddings.at(-1)?.heard(key, epoch, [entry])
    return entry
  }

  /** How far the vectors have come; undefined without an embedder. `settled` waits until there is nothing left to do. */
  async embedded(options: { readonly settled?: boolean } = {}): Promise<EmbeddingProgress | undefined> {
    if (options.settled === true) await Promise.all(this.embeddings.map((embedding) => embedding.settled()))
    const all = await Promise.all(this.embeddings.map((embedding) => embedding.progress()))
    const [first] = all
    return first && { ...first, done: all.reduce((sum, { done }) => sum + done, 0), total: all.reduce((sum, { total }) => sum + total, 0) }
  }

  /** Changes when the session is forgotten: what was asked for in an earlier epoch must not bring it back. */
  async epoch(key: string | Key): Promise<number> {
    return (await this.parts.sessions.head(this.open(key), 0)).epoch
  }

  /** Forgets for good, with everything derived from it; what began to be written before is refused. */
  async forget(target: Target): Promise<Forgotten> {
    const { scope } = this.open('scope' in target ? target.scope : target.key)
    for (const embedding of this.embeddings) embedding.drop(scope)
    const forgotten = await new Forgetting(this.parts, this.parts.rederive).forget(target, this.parts.clock())
    // What was written meanwhile may be gone too; what is still there, or was made anew, wants its vector.
    for (const embedding of this.embeddings) {
      embedding.drop(scope)
      embedding.catchUp()
    }
    return forgotten
  }

  /**
   * Everything that is kept, as the bytes of a portable bundle. What a profile keeps in RAM only is not exported.
   *
   * @example
   * await pipeline(memory.export({ scope: 'acme' }), createWriteStream('acme.jsonl'))
   */
  export(options: ExportOptions = {}): AsyncIterable<Uint8Array> {
    return this.parts.portable.exportBundle(this.keeping(), options)
  }

  /** Takes in a portable bundle, which is opened twice: to prove that it is whole, then to write it. */
  import(open: () => AsyncIterable<Uint8Array>, options: ImportOptions = {}): Promise<Imported> {
    return this.parts.portable.importBundle(this.keeping(), open, options)
  }

  /** Ends sessions that are over, and the oldest ones when there are too many. The host decides how often. */
  async sweep(now: Millis = this.parts.clock()): Promise<{ readonly ended: readonly string[] }> {
    const { sessions } = this.parts
    const limit = Number.MAX_SAFE_INTEGER
    const over = (await sessions.list({ expiredBy: now, limit })).map((session) => session.key)
    for (const key of over) await sessions.erase(key, { expiredBy: now })
    const { lifetime } = this.profile
    // The scope's own memory is no session: it does not crowd anybody out, and is not crowded out.
    const others =
      lifetime.sessions === undefined
        ? []
        : crowded(
            (await sessions.list({ limit })).filter(({ key }) => key.id !== ''),
            lifetime,
          )
    for (const key of others) await sessions.erase(key)
    return { ended: [...over, ...others].map(formatKey) }
  }

  /** A context with everything it was made from, to be replayed under another profile. */
  async trace(key: string | Key, options: ContextOptions = {}): Promise<Trace> {
    const { gathered, budget, framing, query, shared } = await this.gathered(key, options)
    const { ledger } = compose(gathered, this.profile, this.renderer, { budget, framing, provider: 'openai' })
    return { head: gathered.head, messages: await this.transcript(key), shared, query, budget, framing, ledger }
  }

  /** What another profile would have shown, and which messages would have fared differently. */
  replay(trace: Trace, profile: Profile): Context & { readonly differences: readonly Difference[] } {
    const { budget, framing, query } = trace
    const shared = profile.sees.includes('scope') ? trace.shared : []
    const gathered = walked(gather(trace.head, profile, { budget, query, shared }), answersFrom(trace.head.key, trace.messages))
    const { messages, text, ledger } = compose(gathered, profile, this.renderer, { budget, framing, provider: 'openai' })
    return { messages, text, ledger, differences: differences(trace.messages, trace.ledger, ledger) }
  }

  async close(): Promise<void> {
    if (this.closed) return
    this.closed = true
    await Promise.all(this.embeddings.map((embedding) => embedding.stop()))
    for (const store of this.stores()) await store.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  private async gathered(
    key: string | Key,
    options: ContextOptions,
  ): Promise<{ gathered: Gathered; budget: Tokens; framing: Framing; query: string | undefined; shared: readonly Derived[] }> {
    const parsed = this.open(key)
    const budget = options.budget ?? this.profile.budget
    check('budget', budget, Number.isInteger(budget) && budget >= 1, 'a whole number of tokens, 1 or more')
    check('framing', options.framing, options.framing === undefined || framings.includes(options.framing), `one of ${framings.join(', ')}`)
    check('query', options.query, options.query === undefined || typeof options.query === 'string', 'text')
    const [head, shared] = await Promise.all([this.head(parsed), this.shared(parsed)])
    const query = options.query === undefined || options.query === head.asked?.content ? undefined : options.query
    const walk = gather(head, this.profile, { budget, query, shared })
    let step = walk.next()
    while (step.done !== true) step = walk.next(await this.answer(parsed, step.value))
    return { gathered: step.value, budget, framing: options.framing ?? this.profile.framing, query, shared }
  }

  /** What an operation was answered when it was done, if it was: no base is ever below zero, so nothing new is done here. */
  private async answered({ key, epoch, expiresAt, touchedAt }: Head, { operationId: id }: AppendOptions): Promise<readonly Message[] | undefined> {
    if (id === undefined) return undefined
    try {
      return await this.parts.sessions.commit({ id, key, at: touchedAt, epoch, base: -1, append: [], put: [], drop: [], expiresAt })
    } catch (error) {
      if (error instanceof MemoryError && error.code === 'conflict') return undefined
      throw error
    }
  }

  private async head(key: Key): Promise<Head> {
    const head = await this.parts.sessions.head(key, recent)
    return isExpired(head, this.parts.clock()) ? emptyHead(key, head.epoch) : head
  }

  private async shared(key: Key): Promise<readonly Derived[]> {
    if (key.id === '' || !this.profile.sees.includes('scope')) return []
    return (await this.parts.store.head(scopeKey(key), 0)).derived.filter((entry) => entry.kind === 'knowledge')
  }

  private async answer(key: Key, need: Need): Promise<Answer> {
    if ('page' in need) return { messages: await this.parts.sessions.page(key, need.page), hits: [] }
    return { messages: [], hits: await this.parts.sessions.search(key, need.search) }
  }

  private keeping(): Store {
    this.open('any')
    const { sessions, store } = this.parts
    if (sessions !== store || this.profile.durability === 'durable') return store
    throw new MemoryError('bad-option', `Profile ${this.profile.name} lives in RAM only: it is not exported, and nothing is imported into it.`, {
      param: 'profile',
    })
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
