import { toAnthropic } from '../context/anthropic.ts'
import type { AnthropicMessage } from '../domain/ledger.ts'
import type { Model, ModelRequest } from '../domain/ports.ts'
import { getArray, getPath, getString } from '../text/json.ts'
import { type SettingNames, withheldReplyError } from './errors.ts'
import type { ModelOptions } from './openai.ts'
import { type ReplyDelta, type ReplyFormat, readTokens, streamReply } from './reply.ts'
import { flattenToolCalls, post } from './request.ts'
import { buildEndpointUrl } from './url.ts'

type Content = { readonly role: 'user' | 'model'; readonly parts: readonly { readonly text: string }[] }

const settings: SettingNames = { baseUrl: 'the base URL of gemini', apiKey: 'GEMINI_API_KEY' }
/** Finish reasons of replies that were not blocked. */
const acceptedFinishReasons: ReadonlySet<string> = new Set(['', 'STOP', 'MAX_TOKENS', 'FINISH_REASON_UNSPECIFIED'])

/**
 * Creates a model that uses Google's Gemini API.
 *
 * @example
 * const model = geminiModel({ apiKey, model: 'gemini-3.5-flash' })
 */
export function geminiModel(options: ModelOptions): Model {
  const baseUrl = options.baseUrl ?? 'https://generativelanguage.googleapis.com'
  const apiKey = options.apiKey?.trim() ?? ''
  const headers = { ...(apiKey === '' ? {} : { 'x-goog-api-key': apiKey }), ...options.headers }
  const urlFor = (model: string): URL => {
    const url = buildEndpointUrl(
      baseUrl,
      `/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent`,
      '/v1beta',
    )
    url.searchParams.set('alt', 'sse')
    return url
  }
  // Reports an invalid base URL now rather than with the first request.
  urlFor(options.model)
  return {
    name: options.model,
    async *reply(request: ModelRequest, signal?: AbortSignal) {
      const model = request.model ?? options.model
      const response = await post(urlFor(model), {
        ...options,
        headers,
        body: buildBody(request),
        model,
        settings,
        signal,
      })
      yield* streamReply(response, geminiFormat, request.onUsage)
    },
  }
}

function buildBody(request: ModelRequest): unknown {
  const { system, messages } = toAnthropic(flattenToolCalls(request.messages))
  return {
    contents: mergeSameRole(messages.map(toContent)),
    ...(system === '' ? {} : { systemInstruction: { parts: [{ text: system }] } }),
    generationConfig: { maxOutputTokens: request.maxTokens, temperature: request.temperature },
  }
}

function toContent(message: AnthropicMessage): Content {
  const texts =
    typeof message.content === 'string'
      ? [message.content]
      : message.content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  return { role: message.role === 'assistant' ? 'model' : 'user', parts: texts.map((text) => ({ text })) }
}

/** Merges neighbours of the same role, because the API requires roles to alternate. */
function mergeSameRole(contents: readonly Content[]): Content[] {
  const merged: Content[] = []
  for (const content of contents) {
    const last = merged.at(-1)
    if (last?.role === content.role)
      merged[merged.length - 1] = { role: last.role, parts: [...last.parts, ...content.parts] }
    else merged.push(content)
  }
  return merged
}

function parseChunk(event: unknown, url: string): ReplyDelta {
  const blockReason = getString(event, 'promptFeedback', 'blockReason')
  if (blockReason !== '') throw withheldReplyError(url, blockReason)
  const candidate = getPath(event, 'candidates', 0)
  const finishReason = getString(candidate, 'finishReason')
  if (!acceptedFinishReasons.has(finishReason)) throw withheldReplyError(url, finishReason)
  // Thinking parts do not belong to the reply.
  const parts = getArray(candidate, 'content', 'parts').filter((part) => getPath(part, 'thought') !== true)
  return {
    text: parts.map((part) => getString(part, 'text')).join(''),
    state: finishReason === '' ? 'streaming' : 'complete',
  }
}

const geminiFormat: ReplyFormat = {
  parseEvent: parseChunk,
  parseReply(json, url) {
    const chunks = Array.isArray(json) ? json : [json]
    const deltas = chunks.map((chunk) => parseChunk(chunk, url))
    return chunks.some((chunk) => getPath(chunk, 'candidates') !== undefined)
      ? deltas.map((delta) => delta.text).join('')
      : undefined
  },
  parseUsage(json) {
    const prompt = readTokens(json, 'usageMetadata', 'promptTokenCount')
    if (prompt === undefined) return undefined
    const completion = readTokens(json, 'usageMetadata', 'candidatesTokenCount') ?? 0
    // Thinking is billed as output.
    const thinking = readTokens(json, 'usageMetadata', 'thoughtsTokenCount') ?? 0
    return {
      prompt,
      completion: completion + thinking,
      cached: readTokens(json, 'usageMetadata', 'cachedContentTokenCount') ?? 0,
    }
  },
}
