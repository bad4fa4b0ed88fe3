import type { Tokens } from '../../../domain/entry.ts'
import { namedEvent, type Reply, type Voice } from './voice.ts'

/** A reply by Anthropic's messages. */
export const messagesVoice: Voice = {
  whole: (reply, text) => ({
    ...messageOf(reply),
    content: [{ type: 'text', text, citations: null }],
    stop_reason: 'end_turn',
    usage: usageOf(reply, reply.count(text)),
  }),
  events,
}

/** The message as it is announced. */
const messageOf = (reply: Reply) => ({
  id: `msg_${reply.id}`,
  type: 'message',
  role: 'assistant',
  model: reply.model,
  content: [] as readonly unknown[],
  stop_reason: null as string | null,
  stop_sequence: null,
  usage: usageOf(reply, 0),
})

const usageOf = ({ prompt }: Reply, completion: Tokens) => ({
  input_tokens: prompt,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: completion,
})

async function* events(reply: Reply): AsyncIterable<string> {
  yield namedEvent('message_start', { message: messageOf(reply) })
  yield namedEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '', citations: null } })
  let said = ''
  for await (const text of reply.words) {
    said += text
    yield namedEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
  }
  yield namedEvent('content_block_stop', { index: 0 })
  const usage = usageOf(reply, reply.count(said))
  yield namedEvent('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage })
  yield namedEvent('message_stop')
}
