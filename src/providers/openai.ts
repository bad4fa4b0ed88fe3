import type { OptionChecks } from '../domain/checkOptions.ts'
import { anyObject, anyText, MemoryError } from '../domain/error.ts'
import type { Model, ModelRequest } from '../domain/ports.ts'
import { getPath, getString } from '../text/json.ts'
import { type SettingNames, withheldReplyError } from './errors.ts'
import { type ReplyFormat, readTokens, streamReply } from './reply.ts'
import { type ModelResponse, post, type RequestOptions, requestOptionChecks } from './request.ts'
import { buildEndpointUrl } from './url.ts'

/** Connection to a model of a provider. */
export type ModelOptions = RequestOptions & {
  /** Surrounding whitespace is removed; without a key no authentication header is sent. */
  readonly apiKey?: string | undefined
  /** Default: the provider's public API. */
  readonly baseUrl?: string | undefined
  /** The model used when a request names none. */
  readonly model: string
  /** Added to every request; they override the default headers. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export const modelOptionChecks: OptionChecks<ModelOptions> = {
  ...requestOptionChecks,
  apiKey: anyText,
  baseUrl: anyText,
  model: anyText,
  headers: anyObject,
}

/** Differences between the providers that share OpenAI's chat completions protocol. */
type ChatProvider = {
  readonly baseUrl: string
  /** The name of the parameter that limits the length of a reply. */
  readonly limitParam: 'max_tokens' | 'max_completion_tokens'
  readonly settings: SettingNames
}

const openaiBaseUrl = 'https://api.openai.com/v1'

/**
 * Creates a model that uses OpenAI's chat completions, at OpenAI or at any compatible server.
 *
 * @example
 * const model = openaiModel({ apiKey, model: 'gpt-5.4-mini' })
 * for await (const text of model.reply({ messages: [{ role: 'user', content: 'Hello' }] })) process.stdout.write(text)
 */
export function openaiModel(options: ModelOptions): Model {
  const baseUrl = options.baseUrl ?? openaiBaseUrl
  return createChatModel(options, {
    baseUrl,
    // OpenAI's newer models reject max_tokens; many other servers support nothing else.
    limitParam: baseUrl.startsWith('https://api.openai.com/') ? 'max_completion_tokens' : 'max_tokens',
    settings: { baseUrl: '--upstream or OPENAI_BASE_URL', apiKey: 'OPENAI_API_KEY' },
  })
}

/** Creates a model of xAI. */
export function xaiModel(options: ModelOptions): Model {
  return createChatModel(options, {
    baseUrl: options.baseUrl ?? 'https://api.x.ai/v1',
    limitParam: 'max_completion_tokens',
    settings: { baseUrl: 'the base URL of xai', apiKey: 'XAI_API_KEY' },
  })
}

/** Creates a model on a local server such as Ollama, llama.cpp or vLLM; needs no key. */
export function localModel(options: ModelOptions): Model {
  return createChatModel(options, {
    baseUrl: options.baseUrl ?? 'http://localhost:11434/v1',
    limitParam: 'max_tokens',
    settings: { baseUrl: '--upstream or OPENAI_BASE_URL', apiKey: 'the key the server was started with' },
  })
}

function createChatModel(options: ModelOptions, { baseUrl, limitParam, settings }: ChatProvider): Model {
  const url = buildEndpointUrl(baseUrl, '/chat/completions')
  const apiKey = options.apiKey?.trim() ?? ''
  const headers = { ...(apiKey === '' ? {} : { authorization: `Bearer ${apiKey}` }), ...options.headers }
  return {
    name: options.model,
    async *reply(request: ModelRequest, signal?: AbortSignal) {
      const { messages, maxTokens, temperature, onUsage, model = options.model } = request
      const body = { model, messages, stream: true, [limitParam]: maxTokens, temperature }
      const send = (extra: object): Promise<ModelResponse> =>
        post(url, { ...options, headers, body: { ...body, ...extra }, model, settings, signal })
      // Some servers reject the option; their calls are then made without token counts.
      const response =
        onUsage === undefined
          ? await send({})
          : await send({ stream_options: { include_usage: true } }).catch((error: unknown) => {
              if (error instanceof MemoryError && (error.status === 400 || error.status === 422)) return send({})
              throw error
            })
      yield* streamReply(response, chatFormat, onUsage)
    },
  }
}

const chatFormat: ReplyFormat = {
  parseEvent(event, url) {
    const finishReason = getString(event, 'choices', 0, 'finish_reason')
    if (finishReason === 'content_filter') throw withheldReplyError(url, finishReason)
    const text = getString(event, 'choices', 0, 'delta', 'content')
    return { text, state: finishReason === '' ? 'streaming' : 'complete' }
  },
  parseReply(json, url) {
    if (getString(json, 'choices', 0, 'finish_reason') === 'content_filter')
      throw withheldReplyError(url, 'content_filter')
    return getPath(json, 'choices', 0, 'message') === undefined
      ? undefined
      : getString(json, 'choices', 0, 'message', 'content')
  },
  parseUsage(json) {
    const prompt = readTokens(json, 'usage', 'prompt_tokens')
    if (prompt === undefined) return undefined
    return {
      prompt,
      completion: readTokens(json, 'usage', 'completion_tokens') ?? 0,
      cached: readTokens(json, 'usage', 'prompt_tokens_details', 'cached_tokens') ?? 0,
    }
  },
}
