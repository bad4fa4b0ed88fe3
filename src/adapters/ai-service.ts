import { checkOptions } from '../domain/checkOptions.ts'
import { anyFunction, anyObject, anyText, MemoryError, trueOrFalse } from '../domain/error.ts'
import { formatKey, parseKey } from '../domain/key.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import { LruCache } from '../domain/lruCache.ts'
import type { Model } from '../domain/ports.ts'
import { createModel, type ProviderSettings, providerSettingChecks } from '../providers/provider.ts'
import { type SessionMemory, sessionMemory } from './session-memory.ts'

/** The model and the system prompt of a session. */
export type ServiceSettings = ProviderSettings & {
  /** Default: no system prompt. */
  readonly systemPrompt?: string | undefined
}

/** A question to `processText`. */
export type ServiceRequest = {
  /** The question, or the text a user has selected. */
  readonly text: string
  /**
   * True for a question about the conversation, which the model may then mention. Default: false, a new selection, for
   * which the conversation is silent background.
   */
  readonly isFollowUp?: boolean
  /** Overrides the system prompt of the settings. */
  readonly systemPrompt?: string
  /** The session. Default: the one initialized last. */
  readonly key?: string
  readonly signal?: AbortSignal
}

type ServiceDeps = {
  /** Default: `sessionMemory`. */
  readonly memory?: SessionMemory
  /** Creates the model of a session. Default: the provider that the settings name. */
  readonly modelFactory?: (settings: ServiceSettings) => Model
}
type InitializedSession = { readonly key: string; readonly model: Model; readonly systemPrompt: string }

/** Equals the maximum number of sessions in `SessionMemory`; older ones must be initialized again. */
const maxInitializedSessions = 100

/**
 * Answers questions with the memory of a browser tab, with any provider.
 *
 * @example
 * await unifiedAIService.initialize('example.com:42', { provider: 'openai', apiKey })
 * for await (const chunk of unifiedAIService.processText({ text: 'What is this article about?' })) show(chunk)
 */
export class UnifiedAIService {
  private readonly memory: SessionMemory
  private readonly modelFactory: (settings: ServiceSettings) => Model
  /** Settings are kept per session, so that text of one tab is never sent to the provider of another. */
  private readonly sessions = new LruCache<string, InitializedSession>({ maxEntries: maxInitializedSessions })
  private currentKey: string | undefined

  constructor(deps: ServiceDeps = {}) {
    checkOptions<ServiceDeps>('UnifiedAIService', deps, { memory: anyObject, modelFactory: anyFunction })
    const { memory = sessionMemory, modelFactory = createModel } = deps
    this.memory = memory
    this.modelFactory = modelFactory
  }

  /**
   * Sets the provider of a session, starts the session if there is none, and makes it the current one.
   *
   * @throws MemoryError `bad-key` for an invalid key, `bad-option` for invalid settings.
   */
  async initialize(key: string, settings: ServiceSettings): Promise<void> {
    const sessionKey = formatKey(parseKey(key))
    checkOptions<ServiceSettings>('initialize', settings, { ...providerSettingChecks, systemPrompt: anyText })
    const model = this.modelFactory(settings)
    this.sessions.set(sessionKey, { key: sessionKey, model, systemPrompt: settings.systemPrompt ?? '' })
    this.memory.getSessionByKey(sessionKey)
    this.currentKey = sessionKey
  }

  /**
   * Stores the question, streams the answer and stores it when it is complete. An answer that fails or is stopped, or
   * whose session is cleared meanwhile, is not stored.
   *
   * @throws MemoryError `bad-option` if the session is not initialized, otherwise the error of the provider.
   */
  async *processText(request: ServiceRequest): AsyncGenerator<string, void, undefined> {
    checkOptions<ServiceRequest>('processText', request, {
      text: anyText,
      isFollowUp: trueOrFalse,
      systemPrompt: anyText,
      key: anyText,
      signal: anyObject,
    })
    const { key, model, systemPrompt } = this.findSession(request.key)
    const endTurn = this.memory.askForKey(key, request.text)
    let answer = ''
    let isComplete = false
    try {
      const context = this.memory.getContextForKey(key, request.isFollowUp === true ? 'open' : 'silent')
      const messages = mergeSystemMessages(request.systemPrompt ?? systemPrompt, context.messages)
      for await (const chunk of model.reply({ messages }, request.signal)) {
        answer += chunk
        yield chunk
      }
      // A provider may go on after it was stopped.
      isComplete = answer !== '' && request.signal?.aborted !== true
    } finally {
      endTurn(isComplete ? answer : undefined)
    }
  }

  private findSession(key: string | undefined): InitializedSession {
    const sessionKey = key === undefined ? this.currentKey : formatKey(parseKey(key))
    const session = sessionKey === undefined ? undefined : this.sessions.get(sessionKey)
    if (session === undefined) {
      const problem =
        sessionKey === undefined ? 'No session is initialized' : `Session ${sessionKey} is not initialized`
      throw new MemoryError('bad-option', `${problem}. Call initialize(key, settings) first.`, { param: 'key' })
    }
    return session
  }
}

/** The shared instance, which uses `sessionMemory`. */
export const unifiedAIService = new UnifiedAIService()

/**
 * Merges the prompt and everything before the question into one system message, because many providers accept only one.
 * The conversation is marked as data there; as a user message, a server with memory would store it as the user's words.
 */
function mergeSystemMessages(prompt: string, messages: readonly ChatMessage[]): ChatMessage[] {
  const earlier = messages.slice(0, -1).map((message) => message.content ?? '')
  const content = [prompt, ...earlier].filter((text) => text.trim() !== '').join('\n\n')
  const question = messages.slice(-1)
  return content === '' ? question : [{ role: 'system', content }, ...question]
}
