import type { LazyContext } from './context/composeContext.ts'
import { Renderer } from './context/render.ts'
import type { Trace } from './context/replay.ts'
import type { ExportOptions, ImportOptions, ImportResult } from './domain/bundle.ts'
import type { MessageInput, ParsedMessage } from './domain/chat.ts'
import { checkOptions } from './domain/checkOptions.ts'
import type { Json, Knowledge, Message, Millis, SessionMetadata } from './domain/entry.ts'
import { anyValue, checkOption, isObject, MemoryError, trueOrFalse } from './domain/error.ts'
import { formatKey, type Key, knowledgeKey, parseKey, parseScope, type Scope } from './domain/key.ts'
import { KeyedMutex } from './domain/keyed.ts'
import type { AiSdkContext, AnthropicContext, Context, OpenAIContext, Provider } from './domain/ledger.ts'
import { parseProfile } from './domain/parseProfile.ts'
import type { Store, Tokenizer } from './domain/ports.ts'
import type { Profile } from './domain/profile.ts'
import type { SessionHead } from './domain/session.ts'
import { formatMessages, isProvider } from './formats/formatMessages.ts'
import type { Lifecycle } from './lifecycle/lifecycle.ts'
import type { SessionMetadataUpdate } from './lifecycle/metadata.ts'
import { sweepSessions } from './lifecycle/sweep.ts'
import { type AppendDeps, type AppendOptions, appendOptionChecks, appendToSession } from './memory/append.ts'
import {
  ContextBuilder,
  type ContextOptions,
  contextOptionChecks,
  type StoredQuestionOptions,
} from './memory/contextBuilder.ts'
import { type EmbeddingProgress, type EmbeddingQueue, sumProgress } from './memory/embedding.ts'
import { ForgetOperation, type ForgetOptions, type ForgetResult, type Rederive, wipeStores } from './memory/forget.ts'
import { checkTarget, type ForgetTarget } from './memory/forgetTarget.ts'
import type { MemoryInternals } from './memory/internals.ts'
import { checkKnowledgeFields, type KnowledgeInput, remember } from './memory/knowledge.ts'
import { listSessions, type SessionSummary, type SessionsOptions } from './memory/listSessions.ts'
import { createEmbeddingQueues, listStores, type MemoryDeps, requirePortableStore } from './memory/memoryDeps.ts'
import { type ReplaceOptions, replaceMessage, replaceOptionChecks, replaceSuffix } from './memory/replace.ts'
import type { Replayer, ReplayResult } from './memory/replay.ts'
import { checkSearch, type SearchOptions, type SearchQuery, type SearchResult, searchStores } from './memory/search.ts'
import { MemoryTable } from './memory/table.ts'
import { readTranscript, type TranscriptOptions } from './memory/transcript.ts'
import type { UpkeepHealth } from './upkeep/scheduler.ts'
import type { Upkeep } from './upkeep/upkeep.ts'

let readInternals: (memory: Memory) => MemoryInternals

/** Returns the dependencies and internal operations of a memory. */
export const internalsOf = (memory: Memory): MemoryInternals => readInternals(memory)

/**
 * Stores conversations and builds what a model is shown of them. Open one with `openMemory`.
 *
 * Every method throws a `MemoryError`: `bad-key` for a malformed key, `bad-option` for a wrong option, `closed` after
 * `close`, and the codes named below.
 */
export class Memory implements AsyncDisposable {
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  readonly #internals: MemoryInternals
  readonly #appendDeps: AppendDeps
  readonly #contexts: ContextBuilder
  readonly #embeddings: readonly EmbeddingQueue[]
  readonly #upkeep: Upkeep | undefined
  readonly #lifecycle: Lifecycle | undefined
  #closed = false

  static {
    readInternals = (memory) => memory.#internals
  }

  constructor(deps: MemoryDeps) {
    this.profile = deps.profile
    this.tokenizer = deps.tokenizer
    this.#embeddings = createEmbeddingQueues(deps)
    this.#internals = {
      ...deps,
      embeddings: this.#embeddings,
      append: (key, messages, options, head) =>
        appendToSession(this.#appendDeps, this.#parseKey(key), messages, options, head),
      appendRaw: (key, messages, options = {}) => appendToSession(deps, key, messages, options),
      buildContext: (key, options, provider) => this.#buildContext(this.#parseKey(key), options, provider),
      buildAdditions: (key, options) => this.#contexts.buildAdditions(this.#parseKey(key), options),
      recall: (key, question, budget) => this.#contexts.recall(key, question, budget),
    }
    const renderer = new Renderer(deps.tokenizer)
    const [embedding] = this.#embeddings
    const embedQuery = embedding && ((text: string, traced: boolean) => embedding.embedQuery(text, traced))
    this.#lifecycle = deps.createLifecycle?.(deps)
    const refresh = (head: SessionHead) => this.#lifecycle?.refresh(head)
    this.#contexts = new ContextBuilder({ ...deps, renderer, embedQuery, refresh })
    for (const queue of this.#embeddings) queue.catchUp()
    this.#upkeep = deps.createUpkeep?.({
      ...deps,
      tokenCost: (entry) => renderer.tokenCostOf(entry),
      onPut: (key, epoch, entries) => embedding?.enqueue(key, epoch, entries),
      remember: (scope, knowledge) => this.remember(scope, knowledge),
    })
    const [lifecycle, upkeep] = [this.#lifecycle, this.#upkeep]
    this.#appendDeps = { ...deps, lifecycle, embedding, upkeep, longAppends: new KeyedMutex() }
  }

  /** State of upkeep: its model, running and finished runs, and the latest faults. */
  health(): UpkeepHealth {
    return this.#upkeep?.health() ?? { by: 'nobody', running: 0, done: 0, degraded: [], recent: [] }
  }

  /** Summaries, facts and the optimizer. Throws `bad-option` when the memory was opened without upkeep. */
  get upkeep(): Upkeep {
    return (
      this.#upkeep ??
      missing(
        'upkeep',
        'This memory has no upkeep. Omit upkeep: false. In a browser, pass upkeep from threadkeep/upkeep.',
      )
    )
  }

  /**
   * Appends messages to a session and returns them with their ids and sequence numbers. An expired session begins anew.
   * Messages of the packages openai, @anthropic-ai/sdk and ai are taken as they are; each tool result is stored as one.
   *
   * @throws {MemoryError} `bad-message` for a malformed message, `full` when a limit of the profile refuses it,
   * `erased` when the session was forgotten since `epoch`, `moved` when it was transferred.
   */
  async append(
    key: string | Key,
    messages: readonly MessageInput[],
    options: AppendOptions = {},
  ): Promise<readonly Message[]> {
    const parsed = this.#parseKey(key)
    checkOptions<AppendOptions>('append', options, appendOptionChecks)
    return (await appendToSession(this.#appendDeps, parsed, messages, options)).stored
  }

  /**
   * Builds what a model is shown now, inside the budget, with a receipt for every decision. Writes nothing but
   * the session's time of expiry, which every use restarts. `provider` names the format: that of the package openai,
   * @anthropic-ai/sdk or ai, with the original form of messages that came in it. Default: text in OpenAI's format.
   *
   * @throws {MemoryError} `budget-too-small` when not even the shortened question fits; the message names the minimum.
   */
  async context(
    key: string | Key,
    options: ContextOptions & { readonly provider: 'anthropic' },
  ): Promise<AnthropicContext>
  async context(key: string | Key, options: ContextOptions & { readonly provider: 'ai-sdk' }): Promise<AiSdkContext>
  async context(key: string | Key, options: ContextOptions & { readonly provider: 'openai' }): Promise<OpenAIContext>
  async context(key: string | Key, options?: ContextOptions & { readonly provider?: undefined }): Promise<Context>
  async context(
    key: string | Key,
    options: ContextOptions & { readonly provider?: Provider | undefined } = {},
  ): Promise<Context | OpenAIContext | AnthropicContext | AiSdkContext> {
    checkOptions<ContextOptions & { provider?: Provider }>('context', options, {
      ...contextOptionChecks,
      provider: anyValue,
    })
    const { provider } = options
    checkOption('provider', provider, isProvider(provider), 'openai, anthropic or ai-sdk')
    const { messages, text, ledger } = await this.#buildContext(this.#parseKey(key), options, provider)
    return {
      ...formatMessages(messages, provider),
      get text() {
        return text()
      },
      ledger,
    }
  }

  /** Reads the messages of a session, whole and in order. */
  async transcript(key: string | Key, options: TranscriptOptions = {}): Promise<readonly Message[]> {
    return readTranscript(this.#internals, this.#lifecycle, this.#parseKey(key), options)
  }

  /**
   * Replaces a message, named by its id or the id that its caller gave it. It keeps its place and, unless they are
   * given, its time and id. Summaries and facts that came from it are derived again.
   *
   * @throws {MemoryError} `bad-option` when there is no such message, `conflict` when the session has changed since
   * `revision` or during the call.
   */
  replace(key: string | Key, id: string, message: MessageInput, options: ReplaceOptions = {}): Promise<Message> {
    const parsed = this.#parseKey(key)
    return this.#replace(parsed, options, (forgetting) =>
      replaceMessage(this.#appendDeps, forgetting, parsed, id, message, options),
    )
  }

  /**
   * Replaces a message and all messages after it by others, which get new ids. Throws as `replace` does.
   *
   * @example
   * await memory.replaceFrom('acme:ann', 'msg-7', [{ role: 'user', content: 'Rather a short answer, please.' }])
   */
  replaceFrom(
    key: string | Key,
    id: string,
    messages: readonly MessageInput[],
    options: ReplaceOptions = {},
  ): Promise<readonly Message[]> {
    const parsed = this.#parseKey(key)
    return this.#replace(parsed, options, (forgetting) =>
      replaceSuffix(this.#appendDeps, forgetting, parsed, id, messages, options),
    )
  }

  /**
   * Lists sessions in order of their keys. `after` continues with the last key of the previous list.
   *
   * @example
   * await memory.sessions({ scope: 'acme', metadata: { channel: 'web' }, limit: 50 })
   */
  async sessions(options: SessionsOptions = {}): Promise<readonly SessionSummary[]> {
    this.#checkOpen()
    return listSessions(this.#internals.sessions, options, this.#internals.clock())
  }

  /**
   * Rows of a scope, for programs that bring their own data model. They are stored verbatim: never masked, aged,
   * searched or shown to a model.
   *
   * @example
   * await memory.table('acme').put(['users', 'ann'], 'theme', { dark: true })
   */
  table(scope: Scope): MemoryTable {
    return new MemoryTable(this.#parseKey(scope), this.#internals, () => this.#checkOpen())
  }

  /**
   * Searches all sessions and the own memory of a scope, by words and, with an embedder, by meaning. Best results
   * first.
   *
   * @example
   * await memory.search('acme', 'what is my cat called?', { limit: 5, kinds: ['message', 'fact'] })
   */
  async search(scope: Scope, query: SearchQuery, options: SearchOptions = {}): Promise<readonly SearchResult[]> {
    checkSearch(query, options)
    const where = this.#parseKey(options.session ? `${scope}:${options.session}` : scope)
    const masked = typeof query === 'string' ? await this.mask(where, query) : query
    if (options.session) await this.#lifecycle?.refresh(await this.#internals.sessions.readHead(where, 0))
    const deps = {
      ...this.#internals,
      stores: listStores(this.#internals),
      embedding: this.#embeddings[0],
      lifetime: this.profile.lifetime,
    }
    return searchStores(deps, where, masked, options)
  }

  /**
   * Stores knowledge in the scope's own memory or, with `person`, in that person's. Storing the same value again raises
   * its confidence. Contexts show it when it matches the question.
   *
   * @throws {MemoryError} `bad-option` when the profile's knowledge policy does not allow the origin `by`.
   */
  async remember(scope: Scope, knowledge: KnowledgeInput): Promise<Knowledge> {
    const parsed = this.#parseKey(parseScope(scope))
    checkKnowledgeFields(knowledge)
    const key = knowledgeKey(parsed, knowledge.person)
    const { entry, epoch } = await remember(this.#internals, key, knowledge)
    this.#embeddings.at(-1)?.enqueue(key, epoch, [entry])
    return entry
  }

  /** Progress of embedding; undefined without an embedder. With `settled`, waits until nothing is left to embed. */
  async embeddingProgress(options: { readonly settled?: boolean } = {}): Promise<EmbeddingProgress | undefined> {
    checkOptions<{ settled?: boolean }>('embeddingProgress', options, { settled: trueOrFalse })
    if (options.settled) await Promise.all(this.#embeddings.map((embedding) => embedding.drain()))
    return sumProgress(await Promise.all(this.#embeddings.map((embedding) => embedding.progress())))
  }

  /** Epoch of a session; it changes when the session is forgotten. Pass it to `append` to refuse late replies. */
  async epoch(key: string | Key): Promise<number> {
    return (await this.#internals.sessions.readHead(this.#parseKey(key), 0)).epoch
  }

  /** Forgets a target for good, with everything derived from it, and returns a receipt. Late writers are refused. */
  async forget(target: ForgetTarget, options: ForgetOptions = {}): Promise<ForgetResult> {
    checkTarget(target)
    checkOptions<ForgetOptions>('forget', options, { deferWipe: trueOrFalse })
    this.#checkOpen()
    const scope = 'scope' in target ? parseScope(target.scope) : parseKey(target.key).scope
    for (const embedding of this.#embeddings) embedding.drop(scope)
    const placeholders =
      'text' in target ? (this.#internals.masker?.placeholdersOf(parseKey(scope), target.text) ?? []) : []
    const forgotten = await this.#createForgetting().forget(target, this.#internals.clock())
    this.#dropCaches(scope)
    const result = await this.#internals.forgetAuxiliary?.(listStores(this.#internals), target, forgotten, placeholders)
    if (options.deferWipe !== true) await wipeStores(listStores(this.#internals))
    return result ?? forgotten
  }

  /**
   * Exports everything stored as a portable bundle. Sessions of RAM-only profiles are not exported.
   *
   * @example
   * await pipeline(memory.export({ scope: 'acme' }), createWriteStream('acme.jsonl'))
   */
  export(options: ExportOptions = {}): AsyncIterable<Uint8Array> {
    return this.#internals.bundles.exportBundle(this.#portableStore(), options)
  }

  /**
   * Imports a portable bundle, with its secrets masked. `open` is called twice: to verify the bundle, then to write it.
   *
   * @throws {MemoryError} `corrupt` when the bundle is damaged; nothing is written.
   */
  import(open: () => AsyncIterable<Uint8Array>, options: ImportOptions = {}): Promise<ImportResult> {
    return this.#internals.bundles.importBundle(this.#portableStore(), open, options, this.#internals)
  }

  /** Ends expired sessions, and the oldest ones over the limit. The host decides how often to call it. */
  async sweep(now: Millis = this.#internals.clock()): Promise<{ readonly ended: readonly string[] }> {
    checkOption('now', now, Number.isFinite(now), 'a time in milliseconds')
    const ended = await (this.#lifecycle?.sweep(now) ?? sweepSessions(this.#internals, now))
    await this.#upkeep?.tick(now)
    for (const store of listStores(this.#internals)) await store.capabilities.file?.wipeIfDue()
    return { ended: ended.map(formatKey) }
  }

  /** Limits, end events and transfers of sessions. Throws `bad-option` when the memory was opened without them. */
  get lifecycle(): Lifecycle {
    return (
      this.#lifecycle ??
      missing('lifecycle', 'This memory has no lifecycle. In a browser, pass lifecycle from threadkeep/lifecycle.')
    )
  }

  /** Ends a session now; false when there is none. */
  end(key: string | Key): Promise<boolean> {
    return this.lifecycle.end(this.#parseKey(key), 'ended')
  }

  /**
   * Moves a session with all its messages to another key of its scope. Writers to the old key are refused as `moved`.
   */
  async transfer(from: string | Key, to: string | Key): Promise<void> {
    const key = this.#parseKey(from)
    await this.lifecycle.transfer(key, this.#parseKey(to))
    this.#upkeep?.invalidate(key.scope)
    for (const embedding of this.#embeddings) embedding.catchUp()
  }

  /** Reads the metadata of a session: its lifetime, person, template and the host's own data. */
  metadata(key: string | Key): Promise<SessionMetadata | undefined> {
    return this.lifecycle.metadata(this.#parseKey(key))
  }

  /** Sets metadata of a session, and begins the session if it does not exist. */
  setMetadata(key: string | Key, about: SessionMetadataUpdate): Promise<SessionMetadata> {
    return this.lifecycle.setMetadata(this.#parseKey(key), about)
  }

  /** True when the values of all placeholders in a text are known; equal secrets then have equal placeholders. */
  knowsSecrets(key: string | Key, text: string): boolean {
    return this.#internals.masker?.knowsAll(this.#parseKey(key), text) ?? true
  }

  /** Masks the secrets of a message as `append` does. */
  async maskMessage(key: string | Key, message: ParsedMessage): Promise<ParsedMessage> {
    return (await this.#internals.masker?.maskMessage(this.#parseKey(key), message)) ?? message
  }

  /** Masks the secrets of a text or JSON value. */
  async mask<T extends Json>(key: string | Key, value: T): Promise<T> {
    return ((await this.#internals.masker?.maskJson(this.#parseKey(key), value)) ?? value) as T
  }

  /** Records a context with its inputs, for `replay`. */
  async trace(key: string | Key, options: ContextOptions = {}): Promise<Trace> {
    checkOptions<ContextOptions>('trace', options, contextOptionChecks)
    const query = options.query === undefined ? {} : { query: await this.mask(key, options.query) }
    const transcript = await this.transcript(key)
    return this.#replaying().trace(this.#contexts, this.#parseKey(key), { ...options, ...query }, transcript)
  }

  /** Rebuilds a traced context under another profile and lists the messages whose verdict differs. */
  replay(trace: Trace, profile: Profile): ReplayResult {
    checkOption('trace', trace, isObject(trace) && isObject(trace.head), 'the result of trace')
    return this.#replaying().replay(this.#contexts, trace, parseProfile(profile))
  }

  /** Waits for running upkeep and closes the stores. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#upkeep?.stop()
    await this.#lifecycle?.stop()
    await Promise.all(this.#embeddings.map((embedding) => embedding.stop()))
    for (const store of listStores(this.#internals)) await store.close()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #buildContext(key: Key, options: ContextOptions & StoredQuestionOptions, provider?: Provider): Promise<LazyContext> {
    const upkeep = this.#upkeep?.whenReady(key, this.#contexts.budgetOf(options))
    const build = () => this.#contexts.build(key, options, provider)
    return upkeep === undefined ? build() : upkeep.then(build)
  }

  #replaying(): Replayer {
    return this.#internals.replayer ?? missing('replayer', 'In a browser, pass replayer from threadkeep/replay.')
  }

  #createForgetting(): ForgetOperation {
    const rederive: Rederive = this.#internals.rederive ?? (async (entry, from) => this.#upkeep?.rederive(entry, from))
    return new ForgetOperation({ ...this.#internals, lifecycle: this.#lifecycle }, rederive)
  }

  /** Replaces messages, and drops what is known of the old ones. */
  async #replace<T>(key: Key, options: ReplaceOptions, replace: (old: ForgetOperation) => Promise<T>): Promise<T> {
    checkOptions<ReplaceOptions>('replace', options, replaceOptionChecks)
    const replaced = await replace(this.#createForgetting())
    this.#dropCaches(key.scope)
    return replaced
  }

  /** Drops what is cached of a scope in which something was erased or replaced. */
  #dropCaches(scope: Scope): void {
    this.#upkeep?.invalidate(scope)
    this.#internals.work?.clear()
    // Entries written meanwhile may be gone too; the remaining and rebuilt ones need vectors.
    for (const embedding of this.#embeddings) {
      embedding.drop(scope)
      embedding.catchUp()
    }
  }

  #portableStore(): Store {
    this.#checkOpen()
    return requirePortableStore(this.#internals)
  }

  #parseKey(key: string | Key): Key {
    this.#checkOpen()
    return parseKey(key)
  }

  #checkOpen(): void {
    if (this.#closed) throw new MemoryError('closed', 'This memory is closed. Open it again with openMemory.')
  }
}

function missing(param: string, message: string): never {
  throw new MemoryError('bad-option', message, { param })
}
