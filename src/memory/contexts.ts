import { type Composed, compose } from '../context/compose.ts'
import { type Answer, type Gathered, gather, type Need, type Walk } from '../context/gather.ts'
import type { Renderer } from '../context/render.ts'
import { isSeen, type Shared } from '../context/shared.ts'
import type { Derived, Message, Millis, Tokens } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import { type Key, personKey, scopeKey } from '../domain/key.ts'
import type { Origin, Provider } from '../domain/ledger.ts'
import type { Clock, Index, Store } from '../domain/ports.ts'
import { type Band, type Framing, framings, type Profile } from '../domain/profile.ts'
import { emptyHead, type Head, isExpired } from '../domain/session.ts'
import { isQuestion } from '../text/question.ts'
import type { Period, WhenIn } from '../text/when.ts'
import type { Library } from './library.ts'
import type { Barrier } from './secrets.ts'

export type ContextOptions = {
  /** What is being asked. Without it, the newest message of the user, which is then part of the context. */
  readonly query?: string
  readonly budget?: Tokens
  readonly framing?: Framing
  /** Who speaks in the session, if that is somebody known in other sessions too; for profiles that see a person's memory. */
  readonly person?: string
}

/** What contexts are made from. */
export type Means = {
  readonly profile: Profile
  readonly sessions: Store & Index
  readonly store: Store & Index
  readonly renderer: Renderer
  readonly barrier: Barrier | undefined
  /** Finds the time a question names; without it, a question names none. */
  readonly dates?: WhenIn | undefined
  /** Finds what the scope's files say; without it, they say nothing. */
  readonly library?: Library | undefined
  readonly clock: Clock
}

type Question = { readonly budget: Tokens; readonly framing: Framing; readonly query: string | undefined }
type Found = Question & {
  readonly gathered: Gathered
  readonly shared: readonly Shared[]
  readonly when: Period | undefined
}

const recent = 48
const knownFramings = `one of ${framings.join(', ')}`

/** Builds what a model is shown of a session. Writes nothing. */
export class Contexts {
  readonly means: Means

  constructor(means: Means) {
    this.means = means
  }

  /** What is found, put together. */
  composed(key: Key, options: ContextOptions, provider: Provider = 'openai'): Promise<Composed> {
    const { profile, renderer } = this.means
    return this.gathered(key, options, ({ gathered, budget, framing }) =>
      compose(gathered, profile, renderer, { budget, framing, provider }),
    )
  }

  /** The budget a context is built for, checked. */
  budgetOf({ budget = this.means.profile.budget }: ContextOptions): Tokens {
    check('budget', budget, Number.isInteger(budget) && budget >= 1, 'a whole number of tokens, 1 or more')
    return budget
  }

  /** Makes something of what a context is put together from; with `traced`, of all that another profile might need, but for its secrets: it may be kept. */
  async gathered<T>(
    key: Key,
    options: ContextOptions & { readonly traced?: boolean },
    make: (found: Found) => T,
  ): Promise<T> {
    const { profile, renderer, library, store, barrier: secrets } = this.means
    const barrier = options.traced !== true && secrets?.knows(key) === true ? secrets : undefined
    const budget = this.budgetOf(options)
    check(
      'framing',
      options.framing,
      options.framing === undefined || framings.includes(options.framing),
      knownFramings,
    )
    const { framing = profile.framing } = options
    check('query', options.query, options.query === undefined || typeof options.query === 'string', 'text')
    const { origins, reads } = this.#read(key, options.person)
    const heads = await Promise.all(reads)
    const session = heads[0] as Head
    const stored = isExpired(session, this.means.clock()) ? emptyHead(key, session.epoch) : session
    const known = origins.map(
      (from, place): Shared => ({ from, entries: (heads[place + 1] as Head).derived.filter(isKnowledge) }),
    )
    const head = barrier?.shownHead(stored) ?? stored
    const isStored =
      options.query === undefined || options.query === head.asked?.content || options.query === stored.asked?.content
    const query = isStored ? undefined : options.query
    const asking = query ?? head.asked?.content ?? ''
    // Only what is recalled is chosen by time; but a trace may be replayed under a profile that recalls.
    const isTimely = options.traced === true || profile.bands.some(isRecalling)
    const when = isTimely ? this.#when(asking, query === undefined ? head.asked?.at : undefined) : undefined
    const walk = gather(head, profile, { budget, query, shared: known, when, price: (entry) => renderer.price(entry) })
    const step = walk.next()
    const files = library?.files(profile, key)
    const looked = files && library?.passages(store, files, asking)
    // nobody waits where everything is at hand
    const [found, passages = []] =
      step.done === true && looked === undefined
        ? [step.value]
        : await Promise.all([this.#walked(key, walk, step, barrier), looked])
    const shared = passages.length === 0 ? known : [...known, { from: 'files' as const, entries: passages }]
    return make({ gathered: library?.shown(found, passages, budget) ?? found, budget, framing, query, shared, when })
  }

  async #walked(
    key: Key,
    walk: Walk<Gathered>,
    first: IteratorResult<Need, Gathered>,
    barrier: Barrier | undefined,
  ): Promise<Gathered> {
    let step = first
    while (step.done !== true) step = walk.next(await this.#answer(key, step.value, barrier))
    return step.value
  }

  /** The time that a question names, seen from when it was asked. */
  #when(asking: string, at: Millis = this.means.clock()): Period | undefined {
    return isQuestion(asking) ? this.means.dates?.(asking, at) : undefined
  }

  /** Reads the session, then what its scope knows and what is known of the person, as far as they are seen. */
  #read(
    key: Key,
    person: string | undefined,
  ): { readonly origins: readonly Origin[]; readonly reads: readonly Promise<Head>[] } {
    const { profile, sessions, store } = this.means
    // where sessions live in the same store, the scope's own memory is a session that knows it itself
    const isScope = isSeen(profile, 'scope') && (key.id !== '' || sessions !== store)
    const reads = [sessions.head(key, recent)]
    const origins: Origin[] = []
    if (isScope) reads[origins.push('scope')] = store.head(scopeKey(key), 0)
    if (person !== undefined && isSeen(profile, 'person'))
      reads[origins.push('person')] = store.head(personKey(key.scope, person), 0)
    return { origins, reads }
  }

  async #answer(key: Key, need: Need, barrier: Barrier | undefined): Promise<Answer> {
    const shown = (message: Message): Message => barrier?.shown(key, message) ?? message
    if ('page' in need) return { messages: (await this.means.sessions.page(key, need.page)).map(shown), hits: [] }
    const hits = await this.means.sessions.search(key, need.search)
    return {
      messages: [],
      hits: hits.map((hit) => (hit.entry.kind === 'message' ? { ...hit, entry: shown(hit.entry) } : hit)),
    }
  }
}

const isRecalling = ({ claim }: Band): boolean => 'recalled' in claim
const isKnowledge = ({ kind }: Derived): boolean => kind === 'knowledge'
