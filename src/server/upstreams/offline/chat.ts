import type { Tokens } from '../../../domain/entry.ts'
import { at } from '../../../providers/json.ts'
import type { Reply, Voice } from './voice.ts'

/** A reply by OpenAI's chat completions. */
export const chatVoice: Voice = { whole, events }

const headerOf = ({ id, created, model }: Reply) => ({ id: `chatcmpl-${id}`, created, model })

function whole(reply: Reply, content: string): unknown {
  const message = { role: 'assistant', content, refusal: null }
  return {
    ...headerOf(reply),
    object: 'chat.completion',
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: usageOf(reply.prompt, reply.count(content)),
  }
}

async function* events(reply: Reply): AsyncIterable<string> {
  const counted = at(reply.body, 'stream_options', 'include_usage') === true
  const header = headerOf(reply)
  const event = (choices: readonly unknown[], usage: unknown): string =>
    `data: ${JSON.stringify({ ...header, object: 'chat.completion.chunk', choices, ...(counted ? { usage } : {}) })}\n\n`
  const chunk = (delta: unknown, reason: string | null): string =>
    event([{ index: 0, delta, logprobs: null, finish_reason: reason }], null)
  let said = ''
  yield chunk({ role: 'assistant', content: '', refusal: null }, null)
  for await (const content of reply.words) {
    said += content
    yield chunk({ content }, null)
  }
  yield chunk({}, 'stop')
  if (counted) yield event([], usageOf(reply.prompt, reply.count(said)))
  yield 'data: [DONE]\n\n'
}

const usageOf = (prompt: Tokens, completion: Tokens) => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
  total_tokens: prompt + completion,
})
