import { type Composed, compose } from '../context/composeContext.ts'
import {
  type Answer,
  type Gathered,
  gather,
  isSeen,
  type Need,
  type Shared,
  type Walk,
} from '../context/gatherCandidates.ts'
import type { Renderer } from '../context/render.ts'
import type { Derived, Message, Millis, Tokens } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import { type Key, personKey, scopeKey } from '../domain/key.ts'
import type { Origin, Provider } from '../domain/ledger.ts'
import type { Clock, Index, Store } from '../domain/ports.ts'
import { type Band, type Framing, framings, type Profile } from '../domain/profile.ts'
import { emptyHead, type Head, isExpired } from '../domain/session.ts'
import type { Period, WhenIn } from '../text/dates.ts'
import { isQuestion } from '../text/sentences.ts'
import type { Library } from './fileSearch.ts'
import type { Barrier } from './secretMasker.ts'

export type ContextOptions = {
  /**
   * The question to build the context for. Default: the newest stored user message, which is then part of the context. A
   * query that is not stored is not part of it.
   */
  readonly query?: string
  /** Token budget; default: the profile's. */
  readonly budget?: Tokens
  /** Framing of the system prompt; default: the profile's. */
  readonly framing?: Framing
  /** The person who speaks, for profiles that read a person's memory across sessions. */
  readonly person?: string
}

export type ContextBuilderDeps = {
  readonly profile: Profile
  readonly sessions: Store & Index
  readonly store: Store & Index
  readonly renderer: Renderer
  readonly barrier: Barrier | undefined
  /** Parses date phrases of a question. */
  readonly dates?: WhenIn | undefined
  /** Searches the scope's files. */
  readonly library?: Library | undefined
  readonly clock: Clock
}

/** Candidates for a context, with the options they were gathered for. */
type GatheredContext = {
  readonly gathered: Gathered
  readonly budget: Tokens
  readonly framing: Framing
  readonly query: string | undefined
  readonly shared: readonly Shared[]
  readonly when: Period | undefined
}

/** Newest messages read with the session's head; bands that need more read pages. */
const recentMessages = 48
const framingNames = `one of ${framings.join(', ')}`

/** Builds the context of a session. Writes nothing. */
export class Contexts {
  readonly means: ContextBuilderDeps

  constructor(means: ContextBuilderDeps) {
    this.means = means
  }

  composed(key: Key, options: ContextOptions, provider: Provider = 'openai'): Promise<Composed> {
    const { profile, renderer } = this.means
    return this.gathered(key, options, ({ gathered, budget, framing }) =>
      compose(gathered, profile, renderer, { budget, framing, provider }),
    )
  }

  /** Returns the validated budget. */
  budgetOf({ budget = this.means.profile.budget }: ContextOptions): Tokens {
    check('budget', budget, Number.isInteger(budget) && budget >= 1, 'a whole number of tokens, 1 or more')
    return budget
  }

  /**
   * Gathers candidates and passes them to `make`. With `traced`, gathers whatever another profile might need and keeps
   * secrets masked, because the result may be stored.
   */
  async gathered<T>(
    key: Key,
    options: ContextOptions & { readonly traced?: boolean },
    make: (found: GatheredContext) => T,
  ): Promise<T> {
    const { profile, renderer, library, store } = this.means
    const masker = options.traced !== true && this.means.barrier?.knows(key) === true ? this.means.barrier : undefined
    const budget = this.budgetOf(options)
    const { framing = profile.framing } = options
    check('framing', framing, framings.includes(framing), framingNames)
    check('query', options.query, options.query === undefined || typeof options.query === 'string', 'text')
    const { origins, heads } = await this.#readHeads(key, options.person)
    const session = heads[0] as Head
    const stored = isExpired(session, this.means.clock()) ? emptyHead(key, session.epoch) : session
    const known = origins.map(
      (from, index): Shared => ({ from, entries: (heads[index + 1] as Head).derived.filter(isKnowledge) }),
    )
    const head = masker?.shownHead(stored) ?? stored
    const isStoredQuestion =
      options.query === undefined || options.query === head.asked?.content || options.query === stored.asked?.content
    const query = isStoredQuestion ? undefined : options.query
    const question = query ?? head.asked?.content ?? ''
    // Only recall filters by time; a trace may be replayed under a profile that recalls.
    const needsPeriod = options.traced === true || profile.bands.some(isRecallBand)
    const when = needsPeriod ? this.#parsePeriod(question, query === undefined ? head.asked?.at : undefined) : undefined
    const walk = gather(head, profile, { budget, query, shared: known, when, price: (entry) => renderer.price(entry) })
    const step = walk.next()
    const files = library?.files(profile, key)
    const search = files && library?.passages(store, files, question)
    const [found, passages = []] =
      step.done === true && search === undefined
        ? [step.value]
        : await Promise.all([this.#finishWalk(key, walk, step, masker), search])
    const shared = passages.length === 0 ? known : [...known, { from: 'files' as const, entries: passages }]
    return make({ gathered: library?.shown(found, passages, budget) ?? found, budget, framing, query, shared, when })
  }

  async #finishWalk(
    key: Key,
    walk: Walk<Gathered>,
    first: IteratorResult<Need, Gathered>,
    masker: Barrier | undefined,
  ): Promise<Gathered> {
    let step = first
    while (step.done !== true) step = walk.next(await this.#read(key, step.value, masker))
    return step.value
  }

  /** The period a question names, relative to the time it was asked. */
  #parsePeriod(question: string, at: Millis = this.means.clock()): Period | undefined {
    return isQuestion(question) ? this.means.dates?.(question, at) : undefined
  }

  /** Reads the heads of the session and, where the profile allows, of its scope and of the person. */
  async #readHeads(
    key: Key,
    person: string | undefined,
  ): Promise<{ readonly origins: readonly Origin[]; readonly heads: readonly Head[] }> {
    const { profile, sessions, store } = this.means
    const reads = [sessions.head(key, recentMessages)]
    const origins: Origin[] = []
    // The scope's own session already contains the scope's knowledge.
    if (isSeen(profile, 'scope') && (key.id !== '' || sessions !== store))
      reads[origins.push('scope')] = store.head(scopeKey(key), 0)
    if (person !== undefined && isSeen(profile, 'person'))
      reads[origins.push('person')] = store.head(personKey(key.scope, person), 0)
    return { origins, heads: await Promise.all(reads) }
  }

  async #read(key: Key, request: Need, masker: Barrier | undefined): Promise<Answer> {
    const unmask = (message: Message): Message => masker?.shown(key, message) ?? message
    if ('page' in request)
      return { messages: (await this.means.sessions.page(key, request.page)).map(unmask), hits: [] }
    const hits = await this.means.sessions.search(key, request.search)
    return {
      messages: [],
      hits: hits.map((hit) => (hit.entry.kind === 'message' ? { ...hit, entry: unmask(hit.entry) } : hit)),
    }
  }
}

const isRecallBand = ({ claim }: Band): boolean => 'recalled' in claim
const isKnowledge = ({ kind }: Derived): boolean => kind === 'knowledge'
