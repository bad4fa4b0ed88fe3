import type { Ask, Model } from '../domain/ports.ts'
import { endpoint } from './address.ts'
import { type Check, withheld } from './failure.ts'
import { at, textAt } from './json.ts'
import { replyOf, type Wording } from './reply.ts'
import { type Manner, post } from './request.ts'

/** How to reach a provider. */
export type Access = Manner & {
  readonly apiKey?: string | undefined
  readonly baseUrl?: string | undefined
  readonly model: string
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A provider that speaks OpenAI's protocol: where it is, how it calls the limit of a reply, what to check when it fails. */
type Speaker = { readonly base: string; readonly limit: 'max_tokens' | 'max_completion_tokens'; readonly check: Check }

const openaiBase = 'https://api.openai.com/v1'

/**
 * A model behind OpenAI's chat completions, or behind any server that speaks them.
 *
 * @example
 * const model = openaiModel({ apiKey, model: 'gpt-5.4-mini' })
 * for await (const piece of model.reply({ messages: [{ role: 'user', content: 'Hello' }] })) process.stdout.write(piece)
 */
export function openaiModel(access: Access): Model {
  const base = access.baseUrl ?? openaiBase
  // OpenAI's newer models refuse the old name of the limit; other servers often know no other.
  const limit = base.startsWith('https://api.openai.com/') ? 'max_completion_tokens' : 'max_tokens'
  return speaking(access, { base, limit, check: { address: '--upstream or OPENAI_BASE_URL', key: 'OPENAI_API_KEY' } })
}

/** A model of xAI. */
export function xaiModel(access: Access): Model {
  return speaking(access, {
    base: access.baseUrl ?? 'https://api.x.ai/v1',
    limit: 'max_completion_tokens',
    check: { address: 'the base URL of xai', key: 'XAI_API_KEY' },
  })
}

/** A model on a server of one's own, such as Ollama, llama.cpp or vLLM; needs no key. */
export function localModel(access: Access): Model {
  return speaking(access, {
    base: access.baseUrl ?? 'http://localhost:11434/v1',
    limit: 'max_tokens',
    check: { address: '--upstream or OPENAI_BASE_URL', key: 'the key the server was started with' },
  })
}

function speaking(access: Access, { base, limit, check }: Speaker): Model {
  const url = endpoint(base, '/chat/completions')
  const key = access.apiKey?.trim() ?? ''
  const headers = { ...(key === '' ? {} : { authorization: `Bearer ${key}` }), ...access.headers }
  return {
    name: access.model,
    async *reply(ask: Ask, signal?: AbortSignal) {
      const model = ask.model ?? access.model
      const body = { model, messages: ask.messages, stream: true, [limit]: ask.maxTokens, temperature: ask.temperature }
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

const wording: Wording = {
  piece(event, where) {
    const ended = textAt(event, 'choices', 0, 'finish_reason')
    if (ended === 'content_filter') throw withheld(where, ended)
    return { text: textAt(event, 'choices', 0, 'delta', 'content'), state: ended === '' ? 'going' : 'complete' }
  },
  whole(json, where) {
    if (textAt(json, 'choices', 0, 'finish_reason') === 'content_filter') throw withheld(where, 'content_filter')
    return at(json, 'choices', 0, 'message') === undefined
      ? undefined
      : textAt(json, 'choices', 0, 'message', 'content')
  },
}
