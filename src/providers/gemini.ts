import { toAnthropic } from '../context/anthropic.ts'
import type { AnthropicMessage } from '../domain/ledger.ts'
import type { Ask, Model } from '../domain/ports.ts'
import { endpoint } from './address.ts'
import { withheld } from './failure.ts'
import { flatten } from './flatten.ts'
import { at, listAt, textAt } from './json.ts'
import type { Access } from './openai.ts'
import { type Piece, replyOf, type Wording } from './reply.ts'
import { post } from './request.ts'

type Content = { readonly role: 'user' | 'model'; readonly parts: readonly { readonly text: string }[] }

const check = { address: 'the base URL of gemini', key: 'GEMINI_API_KEY' }
/** Reasons to end that are no objection to the reply. */
const fine: ReadonlySet<string> = new Set(['', 'STOP', 'MAX_TOKENS', 'FINISH_REASON_UNSPECIFIED'])

/**
 * A model behind Google's Gemini API.
 *
 * @example
 * const model = geminiModel({ apiKey, model: 'gemini-3.5-flash' })
 */
export function geminiModel(access: Access): Model {
  const base = access.baseUrl ?? 'https://generativelanguage.googleapis.com'
  const key = access.apiKey?.trim() ?? ''
  const headers = { ...(key === '' ? {} : { 'x-goog-api-key': key }), ...access.headers }
  const urlFor = (model: string): URL => {
    const url = endpoint(base, `/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent`, '/v1beta')
    url.searchParams.set('alt', 'sse')
    return url
  }
  urlFor(access.model)
  return {
    name: access.model,
    async *reply(ask: Ask, signal?: AbortSignal) {
      const model = ask.model ?? access.model
      const answer = await post(urlFor(model), {
        headers,
        body: bodyOf(ask),
        model,
        check,
        signal,
        timeouts: access.timeouts,
        wait: access.wait,
        tries: access.tries,
      })
      yield* replyOf(answer, wording)
    },
  }
}

function bodyOf(ask: Ask): unknown {
  const { system, messages } = toAnthropic(flatten(ask.messages))
  return {
    contents: alternating(messages.map(contentOf)),
    ...(system === '' ? {} : { systemInstruction: { parts: [{ text: system }] } }),
    generationConfig: { maxOutputTokens: ask.maxTokens, temperature: ask.temperature },
  }
}

function contentOf(message: AnthropicMessage): Content {
  const texts =
    typeof message.content === 'string'
      ? [message.content]
      : message.content.flatMap((block) => (block.type === 'text' ? [block.text] : []))
  return { role: message.role === 'assistant' ? 'model' : 'user', parts: texts.map((text) => ({ text })) }
}

/** Neighbours of one role as one, because the API wants the roles to take turns. */
function alternating(contents: readonly Content[]): Content[] {
  const merged: Content[] = []
  for (const content of contents) {
    const last = merged.at(-1)
    if (last?.role === content.role)
      merged[merged.length - 1] = { role: last.role, parts: [...last.parts, ...content.parts] }
    else merged.push(content)
  }
  return merged
}

function pieceOf(event: unknown, where: string): Piece {
  const blocked = textAt(event, 'promptFeedback', 'blockReason')
  if (blocked !== '') throw withheld(where, blocked)
  const candidate = at(event, 'candidates', 0)
  const ended = textAt(candidate, 'finishReason')
  if (!fine.has(ended)) throw withheld(where, ended)
  // Thoughts are not part of the reply.
  const parts = listAt(candidate, 'content', 'parts').filter((part) => at(part, 'thought') !== true)
  return { text: parts.map((part) => textAt(part, 'text')).join(''), state: ended === '' ? 'going' : 'complete' }
}

const wording: Wording = {
  piece: pieceOf,
  whole(json, where) {
    const parts = Array.isArray(json) ? json : [json]
    const pieces = parts.map((part) => pieceOf(part, where))
    return parts.some((part) => at(part, 'candidates') !== undefined)
      ? pieces.map((piece) => piece.text).join('')
      : undefined
  },
}
