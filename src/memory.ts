import { type Incoming, parseMessage } from './domain/chat.ts'
import type { Derived, Message, Millis, Tokens } from './domain/entry.ts'
import { MemoryError } from './domain/error.ts'
import { formatKey, type Key, parseKey, type Scope, scopeKey } from './domain/key.ts'
import type { AnthropicContext, Context, Provider } from './domain/ledger.ts'
import type { Clock, Index, Store, Tokenizer } from './domain/ports.ts'
import { type Framing, framings, type Profile } from './domain/profile.ts'
import { emptyHead, type Head, isExpired } from './domain/session.ts'
import { admit, crowded } from './recall/admit.ts'
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
  readonly clock: Clock
  readonly newId: () => string
}

export type AppendOptions = { readonly operationId?: string; readonly epoch?: number }

export type TranscriptOptions = { readonly after?: number; readonly limit?: number; readonly newest?: boolean }

export type ContextOptions = {
  /** What is being asked. Without it, the newest message of the user, which is then part of the context. */
  readonly query?: string
  readonly budget?: Tokens
  readonly framing?: Framing
}

/** What `forget` takes: a whole session, one message of it, or a scope with all its sessions. */
export type Target = { readonly key: string } | { readonly key: string; readonly messageId: string } | { readonly scope: Scope }
/** What went, by session. */
export type Forgotten = { readonly sessions: readonly { readonly key: string; readonly entries: readonly string[] }[]; readonly at: Millis }

const recent = 48

/** Keeps conversations and decides what a model is shown of them. */
export class Memory implements AsyncDisposable {
  readonly profile: Profile
  readonly tokenizer: Tokenizer
  private readonly parts: Parts
  private readonly renderer: Renderer
  private closed = false

  constructor(parts: Parts) {
    this.parts = parts
    this.profile = parts.profile
    this.tokenizer = parts.tokenizer
    this.renderer = new Renderer(parts.tokenizer)
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
    const { ended, drop, expiresAt } = admit(head, append, this.profile.lifetime, now)
    if (ended) {
      await this.parts.sessions.erase(parsed, { expiredBy: now })
      head = await this.parts.sessions.head(parsed, 0)
    }
    return this.parts.sessions.commit({
      id: options.operationId ?? this.parts.newId(),
      key: parsed,
      at: now,
      epoch: options.epoch ?? head.epoch,
      append,
      put: [],
      drop,
      expiresAt,
    })
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
    const head = await this.parts.sessions.head(parsed, 0)
    return isExpired(head, this.parts.clock()) ? [] : this.parts.sessions.page(parsed, { after, limit, newest })
  }

  /** Changes when the session is forgotten: what was asked for in an earlier epoch must not bring it back. */
  async epoch(key: string | Key): Promise<number> {
    return (await this.parts.sessions.head(this.open(key), 0)).epoch
  }

  /** Forgets for good; what began to be written before is refused. */
  async forget(target: Target): Promise<Forgotten> {
    const at = this.parts.clock()
    if ('scope' in target) return { at, sessions: await this.forgetScope(this.open(target.scope)) }
    const key = this.open(target.key)
    const entries = await this.parts.sessions.erase(key, 'messageId' in target ? { entries: [target.messageId] } : undefined)
    return { at, sessions: entries.length === 0 ? [] : [{ key: formatKey(key), entries }] }
  }

  /** Ends sessions that are over, and the oldest ones when there are too many. The host decides how often. */
  async sweep(now: Millis = this.parts.clock()): Promise<{ readonly ended: readonly string[] }> {
    const { sessions } = this.parts
    const limit = Number.MAX_SAFE_INTEGER
    const over = (await sessions.list({ expiredBy: now, limit })).map((session) => session.key)
    for (const key of over) await sessions.erase(key, { expiredBy: now })
    const others = crowded(await sessions.list({ limit }), this.profile.lifetime)
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
    await this.parts.sessions.close()
    if (this.parts.store !== this.parts.sessions) await this.parts.store.close()
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

  private async forgetScope({ scope }: Key): Promise<{ key: string; entries: readonly string[] }[]> {
    const gone: { key: string; entries: readonly string[] }[] = []
    for (const store of new Set([this.parts.sessions, this.parts.store])) {
      for (const { key } of await store.list({ scope, limit: Number.MAX_SAFE_INTEGER })) gone.push({ key: formatKey(key), entries: await store.erase(key) })
    }
    return gone
  }

  private open(key: string | Key): Key {
    if (this.closed) throw new MemoryError('closed', 'This memory is closed; open it again.')
    return parseKey(key)
  }
}

function check(param: string, value: unknown, holds: boolean, right: string): void {
  if (!holds) throw new MemoryError('bad-option', `${param} is ${JSON.stringify(value)}; it must be ${right}.`, { param })
}
