import { compose } from '../context/compose.ts'
import { gather } from '../context/gather.ts'
import { Renderer, weighed } from '../context/render.ts'
import { walked } from '../context/replay.ts'
import { admit, crowded } from '../domain/admission.ts'
import { parseMessage } from '../domain/chat.ts'
import type { Message, Millis, Tokens } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, parseKey } from '../domain/key.ts'
import type { Context, Verdict } from '../domain/ledger.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Framing, Profile } from '../domain/profile.ts'
import { isExpired } from '../domain/session.ts'
import { ephemeral } from '../profiles/ephemeral.ts'
import { RamShelf } from '../stores/ram/sessionTable.ts'
import { upperBound } from '../text/upperBound.ts'

export type SessionMemoryConfig = {
  /** Messages kept of a session. */
  readonly maxMessages: number
  /** Tokens a context may take. */
  readonly maxTokens: number
  /** Whether the first message is always kept and shown. */
  readonly seedPreservation: boolean
  /** How many of the last messages are shown whole. */
  readonly tailSize: number
}

export type SessionMessage = {
  readonly role: 'user' | 'assistant'
  readonly content: string
  readonly timestamp: Millis
}
export type SessionContext = {
  readonly messages: readonly SessionMessage[]
  readonly domain: string
  readonly startedAt: Millis
}
export type SessionMetrics = {
  readonly usedTokens: Tokens
  readonly totalTokens: Tokens
  readonly isDistilled: boolean
}

export const defaultConfig: SessionMemoryConfig = {
  maxMessages: 50,
  maxTokens: 2_000,
  seedPreservation: true,
  tailSize: 3,
}

/** The framing without words of its own, for a text that the caller frames. */
const bare: Framing = 'sections'

type Options = { readonly tokenizer?: Tokenizer; readonly clock?: () => Millis }

/**
 * Short-term memory for the tabs of a browser: in RAM only, gone when it is cleared. Synchronous, with the engine's
 * `ephemeral` profile behind it.
 *
 * @example
 * const memory = new SessionMemory()
 * memory.addUserMessageForKey('example.com:42', 'What is this article about?')
 * memory.getContextStringForKey('example.com:42') // 'User: What is this article about?'
 */
export class SessionMemory {
  readonly config: SessionMemoryConfig
  private readonly profile: Profile
  private readonly renderer: Renderer
  private readonly clock: () => Millis
  private readonly shelf = new RamShelf()
  private current: Key | undefined
  private operations = 0

  constructor(config: Partial<SessionMemoryConfig> = {}, { tokenizer = upperBound, clock = Date.now }: Options = {}) {
    this.config = { ...defaultConfig, ...config }
    this.profile = profileFor(this.config)
    this.renderer = new Renderer(tokenizer)
    this.clock = clock
  }

  /** Makes this site's session the current one and answers with it. */
  getSession(domain: string): SessionContext {
    this.current = parseKey(domain)
    return this.getSessionByKey(domain)
  }

  getSessionByKey(key: string): SessionContext {
    const parsed = parseKey(key)
    const head = this.head(parsed)
    const messages = this.shelf.page(parsed, { limit: head.messages }).map(asSessionMessage)
    return {
      messages: head.revision === 0 ? [] : messages,
      domain: parsed.scope,
      startedAt: head.revision === 0 ? this.clock() : head.startedAt,
    }
  }

  addUserMessage(content: string): void {
    this.add(this.active(), 'user', content)
  }

  addUserMessageForKey(key: string, content: string): void {
    this.add(parseKey(key), 'user', content)
  }

  addAssistantMessage(content: string): void {
    this.add(this.active(), 'assistant', content)
  }

  addAssistantMessageForKey(key: string, content: string): void {
    this.add(parseKey(key), 'assistant', content)
  }

  /** The whole context as one text: first message, glimpses of the middle, the last messages. */
  getContextString(): string {
    return this.current === undefined ? '' : this.context(this.current, bare).text
  }

  getContextStringForKey(key: string): string {
    return this.context(parseKey(key), bare).text
  }

  /** The context as messages for a model: the question once, at the end, the rest as background. */
  getContextForKey(key: string, framing?: Framing): Context {
    return this.context(parseKey(key), framing)
  }

  /** Which life of a session this is: another one once it was cleared or is over, so that a late answer can be told from a timely one. */
  getEpochForKey(key: string): number {
    return this.head(parseKey(key)).epoch
  }

  clearCurrentSession(): void {
    if (this.current !== undefined) this.shelf.erase(this.current)
    this.current = undefined
  }

  clearSession(key: string): void {
    this.shelf.erase(parseKey(key))
  }

  clearAll(): void {
    this.shelf.clear()
    this.current = undefined
  }

  /** For when the extension shuts down: everything goes. There is no timer to stop; the host calls `sweep`. */
  destroy(): void {
    this.clearAll()
  }

  /** Ends sessions older than a day, and the oldest ones beyond a hundred; to be called every 30 minutes. */
  sweep(now: Millis = this.clock()): readonly string[] {
    const limit = Number.MAX_SAFE_INTEGER
    const over = this.shelf.list({ expiredBy: now, limit }).map((session) => session.key)
    for (const key of over) this.shelf.erase(key)
    const others = crowded(this.shelf.list({ limit }), this.profile.lifetime)
    for (const key of others) this.shelf.erase(key)
    return [...over, ...others].map(formatKey)
  }

  /** How full the current session's context is, and whether any of it is shortened or left out. */
  getMetrics(): SessionMetrics {
    if (this.current === undefined) return { usedTokens: 0, totalTokens: this.config.maxTokens, isDistilled: false }
    const { ledger } = this.context(this.current, bare)
    const distilled: readonly Verdict[] = ['shortened', 'dropped']
    return {
      usedTokens: ledger.spent,
      totalTokens: this.config.maxTokens,
      isDistilled: ledger.lines.some((line) => distilled.includes(line.verdict)),
    }
  }

  private context(key: Key, framing: Framing = this.profile.framing): Context {
    const walk = gather(this.head(key), this.profile, {
      budget: this.config.maxTokens,
      query: undefined,
      shared: [],
      price: () => 0,
    })
    const gathered = walked(walk, (need) => ({
      messages: 'page' in need ? this.shelf.page(key, need.page) : [],
      hits: [],
    }))
    const { messages, text, ledger } = compose(gathered, this.profile, this.renderer, {
      budget: this.config.maxTokens,
      framing,
      provider: 'openai',
    })
    return { messages, text: text(), ledger }
  }

  private add(key: Key, role: 'user' | 'assistant', content: string): void {
    const now = this.clock()
    const said = weighed(this.renderer.tokenizer, parseMessage({ role, content }, 0, now))
    const { ended, drop, expiresAt } = admit(this.shelf.head(key, 0), [said], this.profile.lifetime, now)
    if (ended) this.shelf.erase(key)
    const { epoch } = this.shelf.head(key, 0)
    this.shelf.commit({ id: `${++this.operations}`, key, at: now, epoch, append: [said], put: [], drop, expiresAt })
  }

  /** Expiry is noticed on access too, so that a late sweep shows nothing that is over. */
  private head(key: Key) {
    if (isExpired(this.shelf.head(key, 0), this.clock())) this.shelf.erase(key)
    return this.shelf.head(key, this.config.maxMessages)
  }

  private active(): Key {
    if (this.current === undefined)
      throw new MemoryError(
        'bad-key',
        'There is no current session. Call getSession(domain) first, or use the method that takes a key.',
        { param: 'key' },
      )
    return this.current
  }
}

/** The ready-made instance. */
export const sessionMemory = new SessionMemory()

const asSessionMessage = ({ role, content, at }: Message): SessionMessage => ({
  role: role === 'user' ? 'user' : 'assistant',
  content,
  timestamp: at,
})

function profileFor({ maxMessages, maxTokens, seedPreservation, tailSize }: SessionMemoryConfig): Profile {
  const bands = ephemeral.bands.flatMap((band) => {
    if (band.name === 'tail') return tailSize > 0 ? [{ ...band, claim: { last: tailSize } }] : []
    return band.name === 'seed' && !seedPreservation ? [] : [band]
  })
  return { ...ephemeral, budget: maxTokens, bands, lifetime: { ...ephemeral.lifetime, messages: maxMessages } }
}
