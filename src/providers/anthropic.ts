import { toAnthropic } from '../context/anthropic.ts'
import type { Ask, Model } from '../domain/ports.ts'
import { at, listAt, textAt } from '../text/json.ts'
import { type Check, withheldReplyError } from './errors.ts'
import type { ModelOptions } from './openai.ts'
import { type ReplyDelta, type ReplyFormat, streamReply } from './reply.ts'
import { flattenToolCalls, post } from './request.ts'
import { endpoint } from './url.ts'

const settings: Check = { address: 'the base URL of anthropic', key: 'ANTHROPIC_API_KEY' }
/** The API requires a limit. */
const defaultMaxTokens = 4_096

/**
 * Creates a model that uses Anthropic's Messages API.
 *
 * @example
 * const model = anthropicModel({ apiKey, model: 'claude-sonnet-5' })
 */
export function anthropicModel(options: ModelOptions): Model {
  const url = endpoint(options.baseUrl ?? 'https://api.anthropic.com', '/v1/messages', '/v1')
  const apiKey = options.apiKey?.trim() ?? ''
  const headers = {
    ...(apiKey === '' ? {} : { 'x-api-key': apiKey }),
    'anthropic-version': '2023-06-01',
    // Required in browsers, where the key belongs to the user; has no effect elsewhere.
    'anthropic-dangerous-direct-browser-access': 'true',
    ...options.headers,
  }
  return {
    name: options.model,
    async *reply(request: Ask, signal?: AbortSignal) {
      const model = request.model ?? options.model
      const body = buildBody(request, model)
      const response = await post(url, { ...options, headers, body, model, settings, signal })
      yield* streamReply(response, messagesFormat)
    },
  }
}

function buildBody(request: Ask, model: string): unknown {
  const { system, messages } = toAnthropic(flattenToolCalls(request.messages))
  return {
    model,
    max_tokens: request.maxTokens ?? defaultMaxTokens,
    ...(system === '' ? {} : { system }),
    messages,
    stream: true,
    temperature: request.temperature,
  }
}

const messagesFormat: ReplyFormat = {
  parseEvent(event, url): ReplyDelta {
    const type = textAt(event, 'type')
    if (type === 'message_stop') return { text: '', state: 'closed' }
    if (type === 'content_block_delta') return { text: textAt(event, 'delta', 'text'), state: 'streaming' }
    const stopReason = type === 'message_delta' ? textAt(event, 'delta', 'stop_reason') : ''
    if (stopReason === 'refusal') throw withheldReplyError(url, stopReason)
    return { text: '', state: stopReason === '' ? 'streaming' : 'complete' }
  },
  parseReply(json, url) {
    if (textAt(json, 'stop_reason') === 'refusal') throw withheldReplyError(url, 'refusal')
    if (!Array.isArray(at(json, 'content'))) return undefined
    return listAt(json, 'content')
      .map((block) => textAt(block, 'text'))
      .join('')
  },
}
