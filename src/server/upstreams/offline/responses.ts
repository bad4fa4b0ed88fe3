import { namedEvent, type Reply, type Voice } from './voice.ts'

/** A reply by OpenAI's responses. */
export const responsesVoice: Voice = {
  whole: (reply, text) => responseOf(reply, text),
  events,
}

/** The response as a whole; without text, as it is announced. */
function responseOf(reply: Reply, text?: string): unknown {
  const { body, prompt } = reply
  const completion = reply.count(text ?? '')
  const usage = {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: completion,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: prompt + completion,
  }
  return {
    id: `resp_${reply.id}`,
    object: 'response',
    created_at: reply.created,
    status: text === undefined ? 'in_progress' : 'completed',
    error: null,
    incomplete_details: null,
    instructions: body.instructions ?? null,
    metadata: body.metadata ?? {},
    model: reply.model,
    output: text === undefined ? [] : [itemOf(reply, text)],
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    store: false,
    temperature: body.temperature ?? null,
    text: body.text ?? { format: { type: 'text' } },
    tool_choice: body.tool_choice ?? 'auto',
    tools: body.tools ?? [],
    top_p: body.top_p ?? null,
    usage: text === undefined ? null : usage,
  }
}

const partOf = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })
const itemOf = ({ id }: Reply, text?: string) => ({
  type: 'message',
  id: `msg_${id}`,
  status: text === undefined ? 'in_progress' : 'completed',
  role: 'assistant',
  content: text === undefined ? [] : [partOf(text)],
})

async function* events(reply: Reply): AsyncIterable<string> {
  let number = 0
  const event = (type: string, fields: object): string =>
    namedEvent(`response.${type}`, { sequence_number: number++, ...fields })
  const item = { output_index: 0 }
  const part = { item_id: `msg_${reply.id}`, output_index: 0, content_index: 0 }
  yield event('created', { response: responseOf(reply) })
  yield event('in_progress', { response: responseOf(reply) })
  yield event('output_item.added', { ...item, item: itemOf(reply) })
  yield event('content_part.added', { ...part, part: partOf('') })
  let text = ''
  for await (const delta of reply.words) {
    text += delta
    yield event('output_text.delta', { ...part, delta, logprobs: [] })
  }
  yield event('output_text.done', { ...part, text, logprobs: [] })
  yield event('content_part.done', { ...part, part: partOf(text) })
  yield event('output_item.done', { ...item, item: itemOf(reply, text) })
  yield event('completed', { response: responseOf(reply, text) })
}
