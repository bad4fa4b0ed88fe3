import type { Json } from '../../../src/domain/entry.ts'
import { hostileText } from '../hostile.ts'
import type { Random } from '../random.ts'

const image = 'data:image/png;base64,iVBORw0KGgo='
const tool = { type: 'object', properties: { path: { type: 'string' } } }
const args = (random: Random): string => (random.chance(0.8) ? '{"path":"a.txt"}' : hostileText(random))
const model = (random: Random): string => random.pick(['any', 'gpt-4o', 'claude-sonnet-4', 'threadkeep-offline'])

/** Options that change how a reply is built or relayed. */
const options = (random: Random): Readonly<Record<string, Json>> => ({
  ...(random.chance(0.25) && { stream: true }),
  ...(random.chance(0.1) && { temperature: random.next() }),
  ...(random.chance(0.1) && { metadata: { a: hostileText(random, 20) } }),
  ...(random.chance(0.1) && { user: hostileText(random, 30) }),
})

/** A conversation in which each question is answered, with the protocol's own messages. */
const turns = <T>(random: Random, ask: () => T, reply: () => T[]): T[] => {
  const earlier = random.chance(0.3) ? random.list(1, 4, () => [ask(), ...reply()]).flat() : []
  return [...earlier, ask()]
}

/** A request of OpenAI's chat completions. */
export function chatRequest(random: Random): Json {
  const content = (): Json =>
    random.weighted<() => Json>([
      [8, () => hostileText(random)],
      [1, () => [{ type: 'text', text: hostileText(random) }]],
      [
        0.5,
        () => [
          { type: 'text', text: 'Look:' },
          { type: 'image_url', image_url: { url: image } },
        ],
      ],
      [0.3, () => [{ type: 'file', file: { filename: 'a.txt', file_data: 'data:text/plain;base64,SGVsbG8=' } }]],
      [0.2, () => [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }]],
    ])()
  const ask = (): Json => ({ role: 'user', content: content(), ...(random.chance(0.1) && { name: 'ann' }) })
  const reply = (): Json[] => {
    if (random.chance(0.7)) return [{ role: 'assistant', content: hostileText(random) }]
    const id = `call_${random.int(1, 9)}`
    const call = { id, type: 'function', function: { name: 'read', arguments: args(random) } }
    return [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: random.chance(0.9) ? id : 'call_0', content: hostileText(random) },
    ]
  }
  const system = random.chance(0.3) ? [{ role: 'system', content: hostileText(random) }] : []
  return {
    model: model(random),
    messages: [...system, ...turns(random, ask, reply)],
    ...options(random),
    ...(random.chance(0.1) && { tools: [{ type: 'function', function: { name: 'read', parameters: tool } }] }),
    ...(random.chance(0.1) && { stream_options: { include_usage: true } }),
    ...(random.chance(0.1) && { max_tokens: random.int(1, 100) }),
  }
}

/** A request of OpenAI's responses. */
export function responseRequest(random: Random): Json {
  const text = (type: string): Json => ({ type, text: hostileText(random) })
  const ask = (): Json => ({
    role: 'user',
    content: random.chance(0.5) ? hostileText(random) : [text('input_text')],
    ...(random.chance(0.5) && { type: 'message' }),
  })
  const reply = (): Json[] =>
    random.chance(0.7)
      ? [{ type: 'message', role: 'assistant', content: [text('output_text')] }]
      : [
          { type: 'function_call', call_id: 'call_1', name: 'read', arguments: args(random) },
          { type: 'function_call_output', call_id: 'call_1', output: hostileText(random) },
        ]
  return {
    model: model(random),
    input: random.chance(0.4) ? hostileText(random) : turns(random, ask, reply),
    ...options(random),
    ...(random.chance(0.2) && { instructions: hostileText(random) }),
    ...(random.chance(0.1) && { previous_response_id: '{response}' }),
    ...(random.chance(0.1) && { conversation: '{conversation}' }),
    ...(random.chance(0.1) && { store: random.chance(0.5) }),
    ...(random.chance(0.1) && { tools: [{ type: 'function', name: 'read', parameters: tool }] }),
  }
}

/** A request of Anthropic's messages. */
export function messagesRequest(random: Random): Json {
  const block = (): Json =>
    random.weighted<() => Json>([
      [4, () => ({ type: 'text', text: hostileText(random) })],
      [1, () => ({ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } })],
      [1, () => ({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } })],
      [1, () => ({ type: 'document', source: { type: 'text', media_type: 'text/plain', data: hostileText(random) } })],
    ])()
  const ask = (): Json => ({
    role: 'user',
    content: random.chance(0.6) ? hostileText(random) : random.list(1, 3, block),
  })
  const reply = (): Json[] =>
    random.chance(0.7)
      ? [{ role: 'assistant', content: hostileText(random) }]
      : [
          { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'a' } }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: hostileText(random) }] },
        ]
  return {
    model: model(random),
    max_tokens: random.int(1, 1_000),
    messages: turns(random, ask, reply),
    ...options(random),
    ...(random.chance(0.3) && { system: random.chance(0.5) ? hostileText(random) : [block()] }),
    ...(random.chance(0.1) && { tools: [{ name: 'read', input_schema: tool }] }),
  }
}
