import type { Derived, Message, Tokens } from '../domain/entry.ts'
import { check } from '../domain/error.ts'
import { type Key, scopeKey } from '../domain/key.ts'
import type { AnthropicContext, Context, Provider } from '../domain/ledger.ts'
import type { Clock, Index, Store } from '../domain/ports.ts'
import { type Framing, framings, type Profile } from '../domain/profile.ts'
import { emptyHead, type Head, isExpired } from '../domain/session.ts'
import { compose } from '../recall/compose.ts'
import { type Answer, type Gathered, gather, type Need } from '../recall/gather.ts'
import type { Renderer } from '../recall/render.ts'
import { answersFrom, type Difference, differences, type Trace, walked } from '../recall/replay.ts'
import type { Barrier } from './secrets.ts'

export type ContextOptions = {
  /** What is being asked. Without it, the newest message of the user, which is then part of the context. */
  readonly query?: string
  readonly budget?: Tokens
  readonly framing?: Framing
}

/** What contexts are made from. */
export type Means = {
  readonly profile: Profile
  readonly sessions: Store & Index
  readonly store: Store
  readonly renderer: Renderer
  readonly barrier: Barrier | undefined
  readonly clock: Clock
}

type Question = { readonly budget: Tokens; readonly framing: Framing; readonly query: string | undefined }
type Found = Question & { readonly gathered: Gathered; readonly shared: readonly Derived[] }

const recent = 48

/** Builds what a model is shown of a session. Writes nothing. */
export class Contexts {
  private readonly means: Means

  constructor(means: Means) {
    this.means = means
  }

  async context(key: Key, options: ContextOptions & { readonly provider?: Provider }): Promise<Context | AnthropicContext> {
    const { profile, renderer, barrier } = this.means
    const { gathered, budget, framing } = await this.gathered(key, options, barrier?.knows(key) === true ? barrier : undefined)
    const { anthropic, ...context } = compose(gathered, profile, renderer, { budget, framing, provider: options.provider ?? 'openai' })
    return options.provider === 'anthropic' ? anthropic() : context
  }

  /** A trace may be kept: secrets stay out of it. */
  async trace(key: Key, options: ContextOptions, messages: readonly Message[]): Promise<Trace> {
    const { gathered, budget, framing, query, shared } = await this.gathered(key, options, undefined)
    const { ledger } = compose(gathered, this.means.profile, this.means.renderer, { budget, framing, provider: 'openai' })
    return { head: gathered.head, messages, shared, query, budget, framing, ledger }
  }

  replay(trace: Trace, profile: Profile): Context & { readonly differences: readonly Difference[] } {
    const { budget, framing, query } = trace
    const shared = profile.sees.includes('scope') ? trace.shared : []
    const walk = gather(trace.head, profile, { budget, query, shared, price: (entry) => this.means.renderer.price(entry) })
    const gathered = walked(walk, answersFrom(trace.head.key, trace.messages))
    const { messages, text, ledger } = compose(gathered, profile, this.means.renderer, { budget, framing, provider: 'openai' })
    return { messages, text, ledger, differences: differences(trace.messages, trace.ledger, ledger) }
  }

  /** The budget a context is built for, checked. */
  budgetOf({ budget = this.means.profile.budget }: ContextOptions): Tokens {
    check('budget', budget, Number.isInteger(budget) && budget >= 1, 'a whole number of tokens, 1 or more')
    return budget
  }

  private async gathered(key: Key, options: ContextOptions, barrier: Barrier | undefined): Promise<Found> {
    const { profile, renderer } = this.means
    const budget = this.budgetOf(options)
    check('framing', options.framing, options.framing === undefined || framings.includes(options.framing), `one of ${framings.join(', ')}`)
    check('query', options.query, options.query === undefined || typeof options.query === 'string', 'text')
    const [stored, shared] = await Promise.all([this.head(key), this.shared(key)])
    const head = barrier === undefined ? stored : restored(stored, barrier)
    const isStored = options.query === undefined || options.query === head.asked?.content || options.query === stored.asked?.content
    const query = isStored ? undefined : options.query
    const walk = gather(head, profile, { budget, query, shared, price: (entry) => renderer.price(entry) })
    let step = walk.next()
    while (step.done !== true) step = walk.next(await this.answer(key, step.value, barrier))
    return { gathered: step.value, budget, framing: options.framing ?? profile.framing, query, shared }
  }

  private async head(key: Key): Promise<Head> {
    const head = await this.means.sessions.head(key, recent)
    return isExpired(head, this.means.clock()) ? emptyHead(key, head.epoch) : head
  }

  private async shared(key: Key): Promise<readonly Derived[]> {
    if (key.id === '' || !this.means.profile.sees.includes('scope')) return []
    return (await this.means.store.head(scopeKey(key), 0)).derived.filter((entry) => entry.kind === 'knowledge')
  }

  private async answer(key: Key, need: Need, barrier: Barrier | undefined): Promise<Answer> {
    const shown = (message: Message): Message => barrier?.shown(key, message) ?? message
    if ('page' in need) return { messages: (await this.means.sessions.page(key, need.page)).map(shown), hits: [] }
    const hits = await this.means.sessions.search(key, need.search)
    return { messages: [], hits: hits.map((hit) => (hit.entry.kind === 'message' ? { ...hit, entry: shown(hit.entry) } : hit)) }
  }
}

/** The head as a prompt of its session may show it. */
function restored(head: Head, barrier: Barrier): Head {
  const shown = (message: Message): Message => barrier.shown(head.key, message)
  return {
    ...head,
    first: head.first && shown(head.first),
    asked: head.asked && shown(head.asked),
    recent: head.recent.map(shown),
    derived: head.derived.map((entry) => barrier.shownEntry(head.key, entry)),
  }
}
