import { MemoryError } from '../domain/error.ts'
import { formatKey, parseKey } from '../domain/key.ts'
import type { ChatMessage } from '../domain/ledger.ts'
import type { Model } from '../domain/ports.ts'
import { modelFrom, type ProviderSettings } from '../providers/provider.ts'
import { type SessionMemory, sessionMemory } from './session-memory.ts'

/** Which model answers a session, and what it is told to begin with. */
export type ServiceSettings = ProviderSettings & { readonly systemPrompt?: string | undefined }

export type ServiceRequest = {
  /** The question, or the text a user has selected. */
  readonly text: string
  /** Whether it goes on with the conversation; a new selection is answered as if there were none. */
  readonly isFollowUp?: boolean
  /** Instead of the one in the settings. */
  readonly systemPrompt?: string
  /** Instead of the session initialized last. */
  readonly key?: string
  readonly signal?: AbortSignal
}

type Parts = { readonly memory?: SessionMemory; readonly model?: (settings: ServiceSettings) => Model }
type Ready = { readonly key: string; readonly model: Model; readonly systemPrompt: string }

/** As many as there are sessions at most; whoever comes back after that initializes again. */
const mostReady = 100

/**
 * Answers questions with the memory of a browser's tab, whatever the provider.
 *
 * @example
 * await unifiedAIService.initialize('example.com:42', { provider: 'openai', apiKey })
 * for await (const chunk of unifiedAIService.processText({ text: 'What is this article about?' })) show(chunk)
 */
export class UnifiedAIService {
  private readonly memory: SessionMemory
  private readonly model: (settings: ServiceSettings) => Model
  /** Each session keeps its own settings: what was meant for a server at home must not go elsewhere because another tab was opened. */
  private readonly ready = new Map<string, Ready>()
  private current: string | undefined

  constructor({ memory = sessionMemory, model = modelFrom }: Parts = {}) {
    this.memory = memory
    this.model = model
  }

  /** Makes this session the current one, with these settings. */
  async initialize(key: string, settings: ServiceSettings): Promise<void> {
    const name = formatKey(parseKey(key))
    const model = this.model(settings)
    this.ready.delete(name)
    this.ready.set(name, { key: name, model, systemPrompt: settings.systemPrompt ?? '' })
    for (const oldest of this.ready.keys()) if (this.ready.size > mostReady) this.ready.delete(oldest)
    this.current = name
  }

  /**
   * Records the question, streams the answer and records it once it is whole. An answer that fails or is stopped, or
   * whose session is cleared meanwhile, is not recorded.
   */
  async *processText(request: ServiceRequest): AsyncGenerator<string, void, undefined> {
    const { key, model, systemPrompt } = this.readyFor(request.key)
    this.memory.addUserMessageForKey(key, request.text)
    const epoch = this.memory.getEpochForKey(key)
    const { messages } = this.memory.getContextForKey(key, request.isFollowUp === true ? 'open' : 'silent')
    let answer = ''
    for await (const chunk of model.reply(
      { messages: withSystem(request.systemPrompt ?? systemPrompt, messages) },
      request.signal,
    )) {
      answer += chunk
      yield chunk
    }
    if (answer !== '' && this.memory.getEpochForKey(key) === epoch) this.memory.addAssistantMessageForKey(key, answer)
  }

  private readyFor(key: string | undefined): Ready {
    const name = key === undefined ? this.current : formatKey(parseKey(key))
    const ready = name === undefined ? undefined : this.ready.get(name)
    if (ready === undefined) {
      const which = name === undefined ? 'No session is initialized' : `Session ${name} is not initialized`
      throw new MemoryError('bad-option', `${which}. Call initialize(key, settings) first.`, { param: 'key' })
    }
    return ready
  }
}

/** The ready-made instance. */
export const unifiedAIService = new UnifiedAIService()

/** One system message: many providers take no second one. */
function withSystem(prompt: string, messages: readonly ChatMessage[]): ChatMessage[] {
  const memory = messages.flatMap((message) => (message.role === 'system' ? [message.content] : []))
  const content = [prompt, ...memory].filter((text) => text.trim() !== '').join('\n\n')
  const talk = messages.filter((message) => message.role !== 'system')
  return content === '' ? talk : [{ role: 'system', content }, ...talk]
}
