import { composeContext } from '../context/composeContext.ts'
import { copyMessages } from '../context/entryText.ts'
import { gatherCandidates } from '../context/gatherCandidates.ts'
import { measureMessage } from '../context/measureMessage.ts'
import { Renderer } from '../context/render.ts'
import { runContextQuery } from '../context/replay.ts'
import { parseMessage } from '../domain/chat.ts'
import { checkOptions } from '../domain/checkOptions.ts'
import type { Message, Millis, NewMessage, Tokens } from '../domain/entry.ts'
import { anyFunction, anyObject, integerAtLeast, MemoryError, trueOrFalse } from '../domain/error.ts'
import { formatKey, type Key, parseKey } from '../domain/key.ts'
import type { Context, Verdict } from '../domain/ledger.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Framing, Profile } from '../domain/profile.ts'
import { addGapRange, isExpired, isInRanges, planAppend, selectExcessSessions } from '../domain/session.ts'
import { ephemeral } from '../profiles/ephemeral.ts'
import { RamSessionTable } from '../stores/ram/sessionTable.ts'
import { upperBound } from '../text/upperBound.ts'

/** Limits of a `SessionMemory`. */
export type SessionMemoryConfig = {
  /** Messages stored per session; older ones are dropped. Default: 50. */
  readonly maxMessages: number
  /** Token budget of a context. Default: 2,000. */
  readonly maxTokens: number
  /** Keeps the first message in the session and in every context. Default: true. */
  readonly seedPreservation: boolean
  /** Number of latest messages that are shown in full. Default: 3. */
  readonly tailSize: number
}

/** A message of a session. */
export type SessionMessage = {
  readonly role: 'user' | 'assistant'
  readonly content: string
  readonly timestamp: Millis
}
/** A session with its messages. */
export type SessionContext = {
  readonly messages: readonly SessionMessage[]
  readonly domain: string
  readonly startedAt: Millis
}
/** Token use of a context. */
export type SessionMetrics = {
  /** Tokens of the current context. */
  readonly usedTokens: Tokens
  /** The token budget. */
  readonly totalTokens: Tokens
  /** True when a message is shortened or left out of the context. */
  readonly isDistilled: boolean
}

/** Default limits of a `SessionMemory`. */
export const defaultConfig: SessionMemoryConfig = {
  maxMessages: 50,
  maxTokens: 2_000,
  seedPreservation: true,
  tailSize: 3,
}

const noLimit = Number.MAX_SAFE_INTEGER

/** Adds no instructions, because the caller writes its own. */
const plainFraming: Framing = 'sections'

type BrowserEvent<Arguments extends readonly unknown[]> = {
  addListener(listener: (...args: Arguments) => void): void
  removeListener(listener: (...args: Arguments) => void): void
}

/** The part of `chrome` (or `browser` in Firefox) that `bindToTabs` uses. */
export type ExtensionEvents = {
  readonly tabs: {
    readonly onRemoved: BrowserEvent<[tabId: number]>
    readonly onUpdated: BrowserEvent<[tabId: number, change: { readonly status?: string | undefined }]>
  }
  readonly runtime: { readonly onConnect: BrowserEvent<[port: PopupPort]> }
}
type PopupPort = { readonly name: string; readonly onDisconnect: Pick<BrowserEvent<[]>, 'addListener'> }

const popupPortPrefix = 'threadkeep-tab:'

/**
 * Names the port that a popup opens for its tab. The browser disconnects the port when the popup closes.
 *
 * @example
 * chrome.runtime.connect({ name: popupPortName(tab.id) })
 */
export const popupPortName = (tabId: number | string): string => `${popupPortPrefix}${tabId}`

type SessionMemoryDeps = {
  /** Default: an upper bound that needs no tables. */
  readonly tokenizer?: Tokenizer
  /** Default: `Date.now`. */
  readonly clock?: () => Millis
}

/**
 * Short-term memory for browser tabs. Synchronous and in RAM only; uses the `ephemeral` profile.
 *
 * Methods with a key throw MemoryError `bad-key` for an invalid one.
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
  private readonly sessions = new RamSessionTable()
  private currentKey: Key | undefined
  private operationCount = 0
  /** Questions whose answers are on their way. */
  private readonly openQuestions = new Set<string>()
  private readonly unbinders: (() => void)[] = []

  constructor(config: Partial<SessionMemoryConfig> = {}, deps: SessionMemoryDeps = {}) {
    checkOptions<SessionMemoryConfig>('SessionMemory', config, {
      maxMessages: integerAtLeast(1),
      maxTokens: integerAtLeast(1),
      seedPreservation: trueOrFalse,
      tailSize: integerAtLeast(0),
    })
    checkOptions<SessionMemoryDeps>('SessionMemory', deps, { tokenizer: anyObject, clock: anyFunction })
    const { tokenizer = upperBound, clock = Date.now } = deps
    this.config = { ...defaultConfig, ...config }
    this.profile = createProfile(this.config)
    this.renderer = new Renderer(tokenizer)
    this.clock = clock
  }

  /** Makes the session of a site the current one and returns it. Starts it if there is none. */
  getSession(domain: string): SessionContext {
    const session = this.getSessionByKey(domain)
    this.currentKey = parseKey(domain)
    return session
  }

  /** Returns a session. Starts it if there is none. */
  getSessionByKey(key: string): SessionContext {
    const parsed = parseKey(key)
    if (this.head(parsed).revision === 0) this.append(parsed, [])
    const { messages, startedAt } = this.head(parsed)
    const stored = this.sessions.page(parsed, { limit: messages })
    return { messages: stored.map(toSessionMessage), domain: parsed.scope, startedAt }
  }

  addUserMessage(content: string): void {
    this.add(this.requireCurrentKey(), 'user', content)
  }

  /**
   * Stores a question and returns a function that ends its turn: it stores the answer after the question, also if
   * another question was asked meanwhile. Without an answer, or after the session was cleared, it stores nothing.
   */
  askForKey(key: string, question: string): (answer?: string) => void {
    const parsed = parseKey(key)
    this.add(parsed, 'user', question)
    const { epoch, lastSequence } = this.head(parsed)
    const name = `${formatKey(parsed)} ${epoch} ${lastSequence}`
    this.openQuestions.add(name)
    return (answer) => {
      this.openQuestions.delete(name)
      if (answer === undefined || this.head(parsed).epoch !== epoch) return
      this.add(parsed, 'assistant', answer, lastSequence + 1)
    }
  }

  addUserMessageForKey(key: string, content: string): void {
    this.add(parseKey(key), 'user', content)
  }

  addAssistantMessage(content: string): void {
    this.add(this.requireCurrentKey(), 'assistant', content)
  }

  addAssistantMessageForKey(key: string, content: string): void {
    this.add(parseKey(key), 'assistant', content)
  }

  /** Returns the context as one text: the first message, shortened middle messages and the last messages. */
  getContextString(): string {
    return this.currentKey === undefined ? '' : this.context(this.currentKey, plainFraming).text
  }

  getContextStringForKey(key: string): string {
    return this.context(parseKey(key), plainFraming).text
  }

  /** Returns the context as messages for a model: background first, the question once at the end. */
  getContextForKey(key: string, framing?: Framing): Context {
    return this.context(parseKey(key), framing)
  }

  /** Returns a number that changes when the session is cleared or expires, so that callers can discard late answers. */
  getEpochForKey(key: string): number {
    return this.head(parseKey(key)).epoch
  }

  clearCurrentSession(): void {
    if (this.currentKey !== undefined) this.sessions.erase(this.currentKey)
    this.currentKey = undefined
  }

  clearSession(key: string): void {
    this.sessions.erase(parseKey(key))
  }

  /** Clears the sessions of all sites in a tab: those with a key `domain:tabId`. */
  clearTab(tabId: number | string): void {
    const id = `${tabId}`
    for (const { key } of this.sessions.list({ limit: noLimit })) if (key.id === id) this.sessions.erase(key)
    if (this.currentKey?.id === id) this.currentKey = undefined
  }

  /**
   * Clears the sessions of a tab when the tab is removed, when it navigates or reloads, and when its popup closes. The
   * popup must connect with the name that `popupPortName` returns. Returns a function that stops this; `destroy` calls
   * it.
   *
   * @example
   * sessionMemory.bindToTabs(chrome) // at the top level of the background worker
   */
  bindToTabs({ tabs, runtime }: ExtensionEvents): () => void {
    const onRemoved = (tabId: number): void => this.clearTab(tabId)
    const onUpdated = (tabId: number, { status }: { readonly status?: string | undefined }): void => {
      if (status === 'loading') this.clearTab(tabId)
    }
    const onConnect = ({ name, onDisconnect }: PopupPort): void => {
      if (name.startsWith(popupPortPrefix))
        onDisconnect.addListener(() => this.clearTab(name.slice(popupPortPrefix.length)))
    }
    tabs.onRemoved.addListener(onRemoved)
    tabs.onUpdated.addListener(onUpdated)
    runtime.onConnect.addListener(onConnect)
    const unbind = (): void => {
      tabs.onRemoved.removeListener(onRemoved)
      tabs.onUpdated.removeListener(onUpdated)
      runtime.onConnect.removeListener(onConnect)
    }
    this.unbinders.push(unbind)
    return unbind
  }

  clearAll(): void {
    this.sessions.clear()
    this.currentKey = undefined
  }

  /**
   * Clears everything and stops listening, when the extension shuts down. There is no timer to stop, because the host
   * calls `sweep`.
   */
  destroy(): void {
    for (const unbind of this.unbinders.splice(0)) unbind()
    this.clearAll()
  }

  /**
   * Ends sessions older than a day and the oldest beyond 100 sessions; returns their keys. Call it every 30 minutes.
   */
  sweep(now: Millis = this.clock()): readonly string[] {
    const expired = this.sessions.list({ expiredBy: now, limit: noLimit }).map((session) => session.key)
    for (const key of expired) this.sessions.erase(key)
    const evicted = selectExcessSessions(this.sessions.list({ limit: noLimit }), this.profile.lifetime)
    for (const key of evicted) this.sessions.erase(key)
    return [...expired, ...evicted].map(formatKey)
  }

  /** Returns the token use of the current session's context. */
  getMetrics(): SessionMetrics {
    if (this.currentKey === undefined) return { usedTokens: 0, totalTokens: this.config.maxTokens, isDistilled: false }
    const { ledger } = this.context(this.currentKey, plainFraming)
    const distilledVerdicts: readonly Verdict[] = ['shortened', 'dropped']
    return {
      usedTokens: ledger.spent,
      totalTokens: this.config.maxTokens,
      isDistilled: ledger.lines.some((line) => distilledVerdicts.includes(line.verdict)),
    }
  }

  private context(key: Key, framing: Framing = this.profile.framing): Context {
    const query = gatherCandidates(this.head(key), this.profile, {
      budget: this.config.maxTokens,
      query: undefined,
      sharedEntries: [],
      tokenCostOf: () => 0,
    })
    const candidates = runContextQuery(query, (request) => ({
      messages: 'page' in request ? this.sessions.page(key, request.page) : [],
      hits: [],
    }))
    const { messages, text, ledger } = composeContext(candidates, this.profile, this.renderer, {
      budget: this.config.maxTokens,
      framing,
      provider: 'openai',
    })
    return { messages: copyMessages(messages), text: text(), ledger }
  }

  /** Adds a message at the end, or under a sequence number that was kept free for it. */
  private add(key: Key, role: 'user' | 'assistant', content: string, reserved = 0): void {
    const message = parseMessage({ role, content }, 0, this.clock())
    const { gaps, epoch, lastSequence } = this.head(key)
    const isAnswerDue = this.openQuestions.has(`${formatKey(key)} ${epoch} ${lastSequence}`)
    // The number after an open question is kept free for its answer.
    const sequence = isInRanges(gaps, reserved)
      ? reserved
      : isAnswerDue && role === 'user'
        ? lastSequence + 2
        : undefined
    this.append(key, [measureMessage(this.renderer.tokenizer, message)], sequence)
  }

  private append(key: Key, messages: readonly NewMessage[], sequence?: number): void {
    const now = this.clock()
    const head = this.sessions.head(key, 0)
    const { startsNewSession, evictedIds, expiresAt } = planAppend(
      sequence === undefined || sequence <= head.lastSequence
        ? head
        : { ...head, lastSequence: sequence - 1, gaps: addGapRange(head.gaps, head.lastSequence + 1, sequence - 1) },
      messages,
      this.profile.lifetime,
      now,
      { keepsFirst: this.config.seedPreservation },
    )
    if (startsNewSession) this.sessions.erase(key)
    const { epoch } = this.sessions.head(key, 0)
    this.sessions.commit({
      id: `${++this.operationCount}`,
      key,
      at: now,
      epoch,
      append: messages,
      put: [],
      drop: evictedIds,
      expiresAt,
      ...(sequence !== undefined && !startsNewSession && { from: { sequence } }),
    })
  }

  /** Reads a session and erases it first if it is expired, so that a late sweep never exposes it. */
  private head(key: Key) {
    if (isExpired(this.sessions.head(key, 0), this.clock())) this.sessions.erase(key)
    return this.sessions.head(key, this.config.maxMessages)
  }

  private requireCurrentKey(): Key {
    if (this.currentKey === undefined)
      throw new MemoryError(
        'bad-key',
        'There is no current session. Call getSession(domain) first, or use the method that takes a key.',
        { param: 'key' },
      )
    return this.currentKey
  }
}

/** The shared instance. */
export const sessionMemory = new SessionMemory()

const toSessionMessage = ({ role, content, at }: Message): SessionMessage => ({
  role: role === 'user' ? 'user' : 'assistant',
  content,
  timestamp: at,
})

function createProfile({ maxMessages, maxTokens, seedPreservation, tailSize }: SessionMemoryConfig): Profile {
  const bands = ephemeral.bands.flatMap((band) => {
    if (band.name === 'tail') return tailSize > 0 ? [{ ...band, claim: { last: tailSize } }] : []
    return band.name === 'seed' && !seedPreservation ? [] : [band]
  })
  return { ...ephemeral, budget: maxTokens, bands, lifetime: { ...ephemeral.lifetime, messages: maxMessages } }
}
