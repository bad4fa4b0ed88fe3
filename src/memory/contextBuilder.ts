import { findSubject } from '../context/chooseByQuestion.ts'
import { composeContextInSteps, type LazyContext } from '../context/composeContext.ts'
import {
  addPassages,
  type ContextCandidates,
  gatherCandidates,
  isVisible,
  maxPassages,
  profileBeyond,
  profileForBudget,
  type SharedEntries,
  toPassages,
} from '../context/gatherCandidates.ts'
import type { Renderer, Unit } from '../context/render.ts'
import { type ContextQuery, type ReadRequest, type ReadResponse, SessionReader } from '../context/sessionReader.ts'
import type { OptionChecks } from '../domain/checkOptions.ts'
import { describeDegradations } from '../domain/degradation.ts'
import {
  type DerivedEntry,
  type Entry,
  isBlank,
  type Message,
  type Millis,
  type SequenceRange,
  type Tokens,
} from '../domain/entry.ts'
import { anyText, anyValue, checkOption } from '../domain/error.ts'
import { filesKey, type Key, personKey, scopeKey } from '../domain/key.ts'
import type { Degradation, Origin, Provider } from '../domain/ledger.ts'
import type { Clock, SearchIndex, Store } from '../domain/ports.ts'
import { type Framing, framings, type Profile } from '../domain/profile.ts'
import { countExisting, createEmptyHead, isExpired, type SessionHead } from '../domain/session.ts'
import { type Pause, runInSlices, runSync, type Work } from '../domain/work.ts'
import type { WorkSelection } from '../selection/workSelection.ts'
import type { FindPeriod, Period } from '../text/dates.ts'
import { isQuestion } from '../text/sentences.ts'
import type { QueryEmbedding } from './embedding.ts'
import type { SecretMasker } from './secretMasker.ts'

/** Options of `context` and `trace`. */
export type ContextOptions = {
  /**
   * The question to build the context for. Default: the newest stored user message, which is then part of the context.
   * A query that is not stored is not part of it.
   */
  readonly query?: string
  /** Token budget; default: the profile's. */
  readonly budget?: Tokens
  /** Framing of the system prompt; default: the profile's. */
  readonly framing?: Framing
  /** The person who speaks, for profiles that read a person's memory across sessions. */
  readonly person?: string
}

/** The values of a budget, a framing and a query are checked when the context is built. */
export const contextOptionChecks: OptionChecks<ContextOptions> = {
  query: anyValue,
  budget: anyValue,
  framing: anyValue,
  person: anyText,
}

/** Options of a context for a stored question. */
export type StoredQuestionOptions = {
  /** Sequence number of the newest message to show; other processes may have appended more. Default: the newest. */
  readonly until?: number | undefined
  /** Revision of the session that the caller has read, so that a cache may answer. Default: it is read again. */
  readonly revision?: number | undefined
}

/** Options of a context that completes a conversation which the client sends itself. */
export type AdditionOptions = Pick<ContextOptions, 'person'> &
  StoredQuestionOptions & {
    readonly budget: Tokens
    readonly query: string
    /** Stored messages that are part of the client's conversation, in order. */
    readonly sentByClient: readonly SequenceRange[]
  }

export type ContextBuilderDeps = {
  readonly profile: Profile
  readonly sessions: Store & SearchIndex
  readonly store: Store & SearchIndex
  readonly renderer: Renderer
  readonly masker: SecretMasker | undefined
  /** Parses date phrases of a question. */
  readonly parseDates?: FindPeriod | undefined
  /** Searches the scope's files. */
  readonly fileSearch?: FileSearch | undefined
  readonly work?: WorkSelection | undefined
  /** Embeds the question of a context or, with `traced`, of a trace; undefined without an embedder. */
  readonly embedQuery?: ((text: string, traced: boolean) => Promise<QueryEmbedding>) | undefined
  /** Restarts the idle time of a session that is read. */
  readonly refresh?: ((head: SessionHead) => Promise<void> | undefined) | undefined
  /** Lets other work run between two steps on long texts. */
  readonly pause?: Pause | undefined
  readonly clock: Clock
}

/** Candidates for a context, with the options they were gathered for. */
type GatheredContext = {
  readonly candidates: ContextCandidates
  readonly budget: Tokens
  readonly framing: Framing
  readonly query: string | undefined
  readonly shared: readonly SharedEntries[]
  readonly when: Period | undefined
  /** Steps that failed while the candidates were gathered. */
  readonly degraded: readonly Degradation[]
}

/** Reads of one context: the session's key, its masker if values are restored, and the embedding of its question. */
type ReadState = {
  readonly key: Key
  readonly person: string | undefined
  /** Revisions of the heads that were read for the context, of the session and by origin. */
  readonly revisions: Readonly<Partial<Record<Origin | 'session', number>>>
  readonly masker: SecretMasker | undefined
  readonly embedQuestion: () => Promise<QueryEmbedding | undefined>
  embedding?: Promise<QueryEmbedding | undefined>
  /** Messages with the values of their secrets. */
  readonly restored: Map<Message, Message>
}

/** Newest messages read with the session's head; bands that need more read pages. */
const recentMessages = 48
/** Passages returned by `recall`. */
const maxRecalled = 1_000
const framingNames = `one of ${framings.join(', ')}`

/** Builds the context of a session. Writes nothing but the session's time of expiry. */
export class ContextBuilder {
  readonly deps: ContextBuilderDeps

  constructor(deps: ContextBuilderDeps) {
    this.deps = deps
  }

  build(
    key: Key,
    options: ContextOptions & StoredQuestionOptions,
    provider: Provider = 'openai',
  ): Promise<LazyContext> {
    const { profile, renderer } = this.deps
    return this.gather(key, options, ({ candidates, budget, framing, degraded }) => {
      const composeOptions = { budget, framing, provider }
      return this.#run(
        composeContextInSteps(candidates, profileForBudget(profile, budget), renderer, composeOptions),
        degraded,
      )
    })
  }

  /**
   * Builds what the session, its scope and its files know beyond the messages that the client sends itself. Its
   * messages are memory blocks only; none when there is nothing to add.
   */
  buildAdditions(key: Key, options: AdditionOptions): Promise<LazyContext> {
    const profile = profileBeyond(this.deps.profile)
    const composeOptions = { budget: options.budget, framing: 'sections', provider: 'openai' } as const
    return this.gather(key, options, ({ candidates, degraded }) =>
      this.#run(composeContextInSteps(candidates, profile, this.deps.renderer, composeOptions), degraded),
    )
  }

  /** Composes a context, with pauses if its messages are long. */
  async #run(work: Work<LazyContext>, degraded: readonly Degradation[]): Promise<LazyContext> {
    const context = await this.#runWithPauses(work)
    // Memory blocks hold entries of other sessions, whose secrets stay masked.
    const isMasked = this.deps.masker?.lacksValues(context.messages.filter(({ role }) => role !== 'system')) === true
    return withDegraded(context, isMasked ? [...degraded, { step: 'secrets', why: 'unknown here' }] : degraded)
  }

  #runWithPauses<T>(work: Work<T>): T | Promise<T> {
    const { pause } = this.deps
    return pause === undefined ? runSync(work) : runInSlices(work, pause)
  }

  /**
   * Finds the messages of a session, or passages of them, that matter to a question for a text of `budget` tokens, best
   * first. Secrets stay masked.
   */
  async recall(key: Key, question: string, budget: Tokens): Promise<readonly Unit[]> {
    const head = await this.deps.sessions.readHead(key, 0)
    const reader = new SessionReader(head)
    const findPeriod = () => this.#parsePeriod(question)
    const recalled = reader.recall(question, { limit: maxRecalled, findPeriod, budget })
    const embedQuestion = () => this.#embedQuestion(key, question)
    const revisions = { session: head.revision }
    const reads = { key, person: undefined, revisions, masker: undefined, embedQuestion, restored: new Map() }
    return this.#finishQuery(recalled, recalled.next(), reads)
  }

  /** Returns the validated budget. */
  budgetOf({ budget = this.deps.profile.budget }: ContextOptions): Tokens {
    checkOption('budget', budget, Number.isInteger(budget) && budget >= 1, 'a whole number of tokens, 1 or more')
    return budget
  }

  /**
   * Gathers candidates and passes them to `make`. With `traced`, gathers whatever another profile might need and keeps
   * secrets masked, because the result may be stored.
   */
  async gather<T>(
    key: Key,
    options: ContextOptions &
      StoredQuestionOptions & { readonly traced?: boolean } & Partial<Pick<AdditionOptions, 'sentByClient'>>,
    make: (found: GatheredContext) => T | Promise<T>,
  ): Promise<T> {
    const { renderer, fileSearch, store } = this.deps
    const { person, sentByClient } = options
    const budget = this.budgetOf(options)
    const profile =
      sentByClient === undefined ? profileForBudget(this.deps.profile, budget) : profileBeyond(this.deps.profile)
    const masker = options.traced !== true && this.deps.masker?.hasValues(key) === true ? this.deps.masker : undefined
    const { framing = profile.framing } = options
    checkOption('framing', framing, framings.includes(framing), framingNames)
    checkOption('query', options.query, options.query === undefined || typeof options.query === 'string', 'text')
    const { origins, heads } = await this.#readHeads(key, options)
    const session = await this.#readAsOf(heads[0] as SessionHead, options.until)
    const refreshed = options.traced === true ? undefined : this.deps.refresh?.(session)
    const stored = isExpired(session, this.deps.clock()) ? createEmptyHead(key, session.epoch) : session
    const known = origins.map((from, index) => shareKnowledge(from, heads[index + 1] as SessionHead))
    const head = masker === undefined ? stored : await this.#runWithPauses(masker.restoreHead(stored))
    const isStored = [undefined, head.lastUserMessage?.content, stored.lastUserMessage?.content].includes(options.query)
    const query = isStored && sentByClient === undefined ? undefined : options.query
    const question = query ?? head.lastUserMessage?.content ?? ''
    const period = () => this.#parsePeriod(question, query === undefined ? head.lastUserMessage?.at : undefined)
    // A trace may be replayed under a profile that recalls.
    const when = options.traced === true ? period() : undefined
    const contextQuery = gatherCandidates(head, profile, {
      budget,
      query,
      sharedEntries: known,
      period,
      tokenCostOf: (entry) => renderer.tokenCostOf(entry),
      sentByClient,
      work: this.deps.work,
    })
    const step = contextQuery.next()
    const files = fileSearch?.filesKeyFor(profile, key)
    const search = files && fileSearch?.findPassages(store, files, question)
    const embedQuestion = () => this.#embedQuestion(key, query ?? stored.lastUserMessage?.content ?? '', options.traced)
    const revisions = Object.fromEntries(['session', ...origins].map((from, at) => [from, heads[at]?.revision]))
    const reads: ReadState = { key, person, revisions, masker, embedQuestion, restored: new Map() }
    const [found, passages = []] =
      step.done === true && search === undefined
        ? [step.value]
        : await Promise.all([this.#finishQuery(contextQuery, step, reads), search])
    await refreshed
    if (this.deps.pause !== undefined && isLong(head)) await this.deps.pause()
    const shared = passages.length === 0 ? known : [...known, { from: 'files' as const, entries: passages }]
    return make({
      candidates: fileSearch?.addPassages(found, passages, budget) ?? found,
      budget,
      framing,
      query,
      shared,
      when,
      degraded: (await reads.embedding)?.degraded ?? [],
    })
  }

  async #finishQuery<T>(
    contextQuery: ContextQuery<T>,
    first: IteratorResult<ReadRequest, T>,
    reads: ReadState,
  ): Promise<T> {
    let step = first
    while (step.done !== true) step = contextQuery.next(await this.#read(step.value, reads))
    return step.value
  }

  /** Embeds the question without secrets; a stored question has none. */
  async #embedQuestion(key: Key, question: string, traced = false): Promise<QueryEmbedding | undefined> {
    const { masker, embedQuery } = this.deps
    return embedQuery?.((await masker?.maskText(key, question)) ?? question, traced)
  }

  /** The period a question names, relative to the time it was asked. */
  #parsePeriod(question: string, at: Millis = this.deps.clock()): Period | undefined {
    return isQuestion(question) ? this.deps.parseDates?.(question, at) : undefined
  }

  /** Reads the heads of the session and, where the profile allows, of its scope and of the person. */
  async #readHeads(
    key: Key,
    { person, revision: seen }: Pick<ContextOptions, 'person'> & StoredQuestionOptions,
  ): Promise<{ readonly origins: readonly Origin[]; readonly heads: readonly SessionHead[] }> {
    const { profile, sessions, store } = this.deps
    const reads = [sessions.readHead(key, recentMessages, seen)]
    const origins: Origin[] = []
    // The scope's own session already contains the scope's knowledge.
    if (isVisible(profile, 'scope') && (key.id !== '' || sessions !== store))
      reads[origins.push('scope')] = store.readHead(scopeKey(key), 0)
    if (person !== undefined && isVisible(profile, 'person'))
      reads[origins.push('person')] = store.readHead(personKey(key.scope, person), 0)
    return { origins, heads: await Promise.all(reads) }
  }

  /** Returns the head of a session without the messages after `until`. */
  async #readAsOf(head: SessionHead, until = head.lastSequence): Promise<SessionHead> {
    if (head.lastSequence <= until) return head
    const range = { before: until + 1, limit: recentMessages, newest: true }
    const recent = await this.deps.sessions.readMessages(head.key, range)
    return {
      ...head,
      recent,
      lastUserMessage: recent.findLast(({ role, content }) => role === 'user' && !isBlank(content)),
      lastSequence: until,
      messages: head.messages - countExisting(head.gaps, until + 1, head.lastSequence),
      gaps: head.gaps.flatMap(([first, last]) => (first > until ? [] : [[first, Math.min(last, until)] as const])),
    }
  }

  async #read(request: ReadRequest, reads: ReadState): Promise<ReadResponse> {
    const { key, revisions } = reads
    if ('pause' in request) {
      await this.deps.pause?.()
      return { messages: [], hits: [] }
    }
    if ('page' in request) {
      const page = { ...request.page, ...revisionOf(revisions.session) }
      const messages = await this.deps.sessions.readMessages(key, page)
      await this.#restoreMessages(messages, reads)
      return { messages: messages.map((message) => reads.restored.get(message) ?? message), hits: [] }
    }
    reads.embedding ??= reads.embedQuestion()
    const vector = (await reads.embedding)?.vector
    const { sessions, store } = this.deps
    const [index, target] = request.in === undefined ? [sessions, key] : [store, sharedKey(request.in, reads)]
    const hits = await index.search(target, {
      ...request.search,
      ...(vector && { vector }),
      ...revisionOf(revisions[request.in ?? 'session']),
    })
    const found = hits.flatMap(({ entry }) => (entry.kind === 'message' ? [entry] : []))
    await this.#restoreMessages(found, reads)
    const restore = (entry: Entry): Entry => (entry.kind === 'message' ? (reads.restored.get(entry) ?? entry) : entry)
    return { messages: [], hits: hits.map((hit) => ({ ...hit, entry: restore(hit.entry) })) }
  }

  /** Restores the secrets of messages. Several passages of a message have the same message. */
  async #restoreMessages(messages: readonly Message[], { key, masker, restored }: ReadState): Promise<void> {
    if (masker === undefined) return
    for (const message of messages)
      if (!restored.has(message))
        restored.set(message, await this.#runWithPauses(masker.restoreMessageInSteps(key, message)))
  }
}

/** Characters of recent messages that take a noticeable part of the time in which other requests may wait. */
const longCharacters = 65_536

const isLong = ({ recent }: SessionHead): boolean =>
  recent.reduce((sum, { content }) => sum + content.length, 0) > longCharacters

/** Adds steps that failed to the ledger of a context. */
export const withDegraded = (context: LazyContext, degraded: readonly Degradation[]): LazyContext =>
  degraded.length === 0
    ? context
    : {
        ...context,
        ledger: { ...context.ledger, degraded: [...context.ledger.degraded, ...describeDegradations(degraded)] },
      }

/** Key of a memory that a session reads from. */
const sharedKey = (from: Origin, { key, person }: ReadState): Key =>
  from === 'person' && person !== undefined ? personKey(key.scope, person) : scopeKey(key)

const shareKnowledge = (from: Origin, { derived }: SessionHead): SharedEntries => ({
  from,
  entries: derived.filter(isKnowledge),
})
const isKnowledge = ({ kind }: DerivedEntry): boolean => kind === 'knowledge'

/** Searches the files of a scope for passages on a question. */
export type FileSearch = {
  /** The session that holds the scope's files, when the profile reads them. */
  filesKeyFor(profile: Profile, key: Key): Key | undefined
  /** Passages on a question; empty when the scope has no files. */
  findPassages(store: Store & SearchIndex, files: Key, question: string): Promise<readonly DerivedEntry[]>
  /** Adds passages to the candidates of a context. */
  addPassages(candidates: ContextCandidates, passages: readonly DerivedEntry[], budget: Tokens): ContextCandidates
}

/** The file search of Node. Browsers have none. */
export const fileSearch: FileSearch = {
  filesKeyFor: (profile, { scope }) => (isVisible(profile, 'files') ? filesKey(scope) : undefined),
  findPassages: async (store, files, question) => {
    const text = findSubject(question)
    // Most scopes have no files, and reading one message is cheaper than a search.
    if (isBlank(text) || (await store.readMessages(files, { limit: 1 })).length === 0) return []
    return toPassages(await store.search(files, { text, kinds: ['message'], limit: maxPassages }))
  },
  addPassages,
}

const revisionOf = (revision: number | undefined): { readonly revision?: number } =>
  revision === undefined ? {} : { revision }
