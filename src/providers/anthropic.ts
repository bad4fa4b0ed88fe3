import { toAnthropic } from '../context/anthropic.ts'
import type { Ask, Model } from '../domain/ports.ts'
import { endpoint } from './address.ts'
import { withheld } from './failure.ts'
import { flatten } from './flatten.ts'
import { at, listAt, textAt } from './json.ts'
import type { Access } from './openai.ts'
import { type Piece, replyOf, type Wording } from './reply.ts'
import { post } from './request.ts'

const check = { address: 'the base URL of anthropic', key: 'ANTHROPIC_API_KEY' }

/**
 * A model behind Anthropic's messages API.
 *
 * @example
 * const model = anthropicModel({ apiKey, model: 'claude-sonnet-5' })
 */
export function anthropicModel(access: Access): Model {
  const url = endpoint(access.baseUrl ?? 'https://api.anthropic.com', '/v1/messages', '/v1')
  const key = access.apiKey?.trim() ?? ''
  const headers = {
    ...(key === '' ? {} : { 'x-api-key': key }),
    'anthropic-version': '2023-06-01',
    // Asked of browsers only, where the key is the user's own; elsewhere it changes nothing.
    'anthropic-dangerous-direct-browser-access': 'true',
    ...access.headers,
  }
  return {
    name: access.model,
    async *reply(ask: Ask, signal?: AbortSignal) {
      const model = ask.model ?? access.model
      const body = bodyOf(ask, model)
      const answer = await post(url, {
        headers,
        body,
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

function bodyOf(ask: Ask, model: string): unknown {
  const { system, messages } = toAnthropic(flatten(ask.messages))
  return {
    model,
    max_tokens: ask.maxTokens ?? 4_096,
    ...(system === '' ? {} : { system }),
    messages,
    stream: true,
    temperature: ask.temperature,
  }
}

const wording: Wording = {
  piece(event, where): Piece {
    const type = textAt(event, 'type')
    if (type === 'message_stop') return { text: '', state: 'over' }
    if (type === 'content_block_delta') return { text: textAt(event, 'delta', 'text'), state: 'going' }
    const ended = type === 'message_delta' ? textAt(event, 'delta', 'stop_reason') : ''
    if (ended === 'refusal') throw withheld(where, ended)
    return { text: '', state: ended === '' ? 'going' : 'complete' }
  },
  whole(json, where) {
    if (textAt(json, 'stop_reason') === 'refusal') throw withheld(where, 'refusal')
    if (!Array.isArray(at(json, 'content'))) return undefined
    return listAt(json, 'content')
      .map((block) => textAt(block, 'text'))
      .join('')
  },
}
