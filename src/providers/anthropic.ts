import { toAnthropic } from '../context/anthropic.ts'
import type { Model, ModelRequest } from '../domain/ports.ts'
import { getArray, getPath, getString } from '../text/json.ts'
import { type SettingNames, withheldReplyError } from './errors.ts'
import type { ModelOptions } from './openai.ts'
import { type ReplyDelta, type ReplyFormat, type ReportedUsage, readTokens, streamReply } from './reply.ts'
import { flattenToolCalls, post } from './request.ts'
import { buildEndpointUrl } from './url.ts'

const settings: SettingNames = { baseUrl: 'the base URL of anthropic', apiKey: 'ANTHROPIC_API_KEY' }
/** The API requires a limit. */
const defaultMaxTokens = 4_096

/**
 * Creates a model that uses Anthropic's Messages API.
 *
 * @example
 * const model = anthropicModel({ apiKey, model: 'claude-sonnet-5' })
 */
export function anthropicModel(options: ModelOptions): Model {
  const url = buildEndpointUrl(options.baseUrl ?? 'https://api.anthropic.com', '/v1/messages', '/v1')
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
    async *reply(request: ModelRequest, signal?: AbortSignal) {
      const model = request.model ?? options.model
      const body = buildBody(request, model)
      const response = await post(url, { ...options, headers, body, model, settings, signal })
      yield* streamReply(response, messagesFormat, request.onUsage)
    },
  }
}

function buildBody(request: ModelRequest, model: string): unknown {
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
    const type = getString(event, 'type')
    if (type === 'message_stop') return { text: '', state: 'closed' }
    if (type === 'content_block_delta') return { text: getString(event, 'delta', 'text'), state: 'streaming' }
    const stopReason = type === 'message_delta' ? getString(event, 'delta', 'stop_reason') : ''
    if (stopReason === 'refusal') throw withheldReplyError(url, stopReason)
    return { text: '', state: stopReason === '' ? 'streaming' : 'complete' }
  },
  parseReply(json, url) {
    if (getString(json, 'stop_reason') === 'refusal') throw withheldReplyError(url, 'refusal')
    if (!Array.isArray(getPath(json, 'content'))) return undefined
    return getArray(json, 'content')
      .map((block) => getString(block, 'text'))
      .join('')
  },
  // A stream reports the prompt in its first event and the completion in its last ones.
  parseUsage: (json) => toUsage(getPath(json, 'message', 'usage') ?? getPath(json, 'usage')),
}

/** Converts Anthropic's counts, in which the prompt does not include the tokens that its cache reads and writes. */
function toUsage(usage: unknown): ReportedUsage | undefined {
  if (usage === undefined) return undefined
  const uncached = readTokens(usage, 'input_tokens')
  const completion = readTokens(usage, 'output_tokens')
  const cached = readTokens(usage, 'cache_read_input_tokens') ?? 0
  const written = readTokens(usage, 'cache_creation_input_tokens') ?? 0
  return {
    ...(uncached !== undefined && { prompt: uncached + cached + written, cached }),
    ...(completion !== undefined && { completion }),
  }
}
