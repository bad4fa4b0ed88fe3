import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { messages } from '../../../src/server/protocols/messages.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { event, heardOf, input, pieces, sizes } from './stream.ts'

const usage = { input_tokens: 10, cache_read_input_tokens: 20, cache_creation_input_tokens: 5, output_tokens: 4 }
const cost = { prompt: 35, completion: 4, cached: 20 }
const message = (content: readonly unknown[]) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: 'end_turn',
  usage,
})
const hear = (value: unknown) => messages.hear(JSON.stringify(value), 'upstream')
const text = (words: string) => ({ type: 'text', text: words })
const use = { type: 'tool_use', id: 't1', name: 'weather', input: { city: 'Bern' } }
const begun = event('message_start', {
  message: { ...message([]), stop_reason: null, usage: { ...usage, output_tokens: 1 } },
})
const stopped = event('message_delta', {
  delta: { stop_reason: 'end_turn' },
  usage: { output_tokens: 4, cache_read_input_tokens: null },
})
const over = event('message_stop')

describe('a message of the model', () => {
  it('is one message of the assistant, without what it thought', () => {
    const content = [
      { type: 'thinking', thinking: 'Hm.', signature: 's' },
      text('I '),
      text('look.'),
      use,
      { ...use, id: '' },
      text('Wait.'),
    ]
    expect(hear(message(content))).toEqual({
      reply: {
        role: 'assistant',
        content: 'I look.\nWait.',
        tool_calls: [{ id: 't1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } }],
      },
      id: 'msg_1',
      usage: cost,
    })
    expect(hear({ content: [] })).toEqual({
      reply: { role: 'assistant', content: '' },
      id: undefined,
      usage: undefined,
    })
  })

  it('is known again when the client sends it back', () => {
    const content = [
      text('See:'),
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', content: [] },
      text('Yes'),
      use,
      text(''),
    ]
    const { reply } = hear(message(content))
    const [sent] = messages.read({ messages: [{ role: 'assistant', content }] }, chars4).said
    expect(sent).toMatchObject({
      content: reply.content,
      calls: [{ id: 't1', name: 'weather', arguments: '{"city":"Bern"}' }],
    })
    expect(sent?.content).toBe('See:\n[web_search]\n[web_search_tool_result]\nYes')
  })

  it.each([
    ['<html>', 'upstream sent something that is not JSON instead of a reply'],
    ['{"object":"list"}', 'upstream sent JSON of another kind instead of a reply'],
    [
      '{"type":"error","error":{"type":"overloaded_error","message":"m"}}',
      'upstream reported an error (overloaded_error) instead of going on',
    ],
  ])('is none: %s', (answer, fault) => {
    expect(() => messages.hear(answer, 'upstream')).toThrow(fault)
  })
})

describe('a streamed message of the model', () => {
  const listen = (stream: string) => {
    const listener = messages.listener('upstream')
    const heard = heardOf(listener, stream)
    return { heard, state: [listener.isComplete, listener.isOver, listener.hasFailed] }
  }
  const block = event('content_block_start', { index: 0, content_block: text('') })
  const delta = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } })

  it('is complete with the reason why it stopped, and over with the last event', () => {
    expect(listen(begun + event('ping') + block + delta)).toMatchObject({
      heard: { reply: { content: 'Hello' } },
      state: [false, false, false],
    })
    expect(listen(begun + block + delta + stopped)).toEqual({
      heard: { reply: { role: 'assistant', content: 'Hello' }, id: 'msg_1', usage: cost },
      state: [true, false, false],
    })
    expect(listen(begun + block + delta + stopped + over).state).toEqual([true, true, false])
  })

  it('fails where the upstream says so', () => {
    const failure = messages.failure({ message: 'm', type: 'upstream_error', param: null, code: 'upstream' })
    expect(listen(begun + block + delta + failure).state).toEqual([false, false, true])
    expect(listen(begun + stopped + failure + over).state).toEqual([false, true, true])
  })

  it('keeps the input of a call as it came if it was cut off', () => {
    const cut = event('content_block_delta', {
      index: 0,
      delta: { type: 'input_json_delta', partial_json: '{"city":"Be' },
    })
    const { heard } = listen(
      begun + event('content_block_start', { index: 0, content_block: { ...use, input: {} } }) + cut + stopped,
    )
    expect(heard.reply.tool_calls?.[0]?.function.arguments).toBe('{"city":"Be')
  })

  it('is refused when it has no end', () => {
    const listener = messages.listener('upstream')
    const long = event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'x'.repeat(4_000_000) } })
    listener.hear(Buffer.from(block))
    for (let time = 0; time < 4; time++) listener.hear(Buffer.from(long))
    expect(() => listener.hear(Buffer.from(long))).toThrow(
      'upstream sent more than 16777216 characters instead of a reply',
    )
  })

  const drawn = fc.oneof(
    fc.record({ type: fc.constantFrom('text' as const, 'thinking' as const), pieces }),
    fc.record({ type: fc.constant('tool_use' as const), input }),
    fc.record({ type: fc.constant('web_search_tool_result' as const) }),
  )
  type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never

  /** A block as a whole, and the events it comes in. */
  function told(one: Drawn, index: number): { whole: object; events: string } {
    const grow = (fields: object) => event('content_block_delta', { index, delta: fields })
    const start = (content: object) => event('content_block_start', { index, content_block: content })
    const stop = event('content_block_stop', { index })
    if (one.type === 'tool_use') {
      const [json, header] = [JSON.stringify(one.input, null, 1), { type: 'tool_use', id: `t${index}`, name: 'tool' }]
      const deltas = ['', json.slice(0, 4), json.slice(4)].map((piece) =>
        grow({ type: 'input_json_delta', partial_json: piece }),
      )
      return {
        whole: { ...header, input: one.input },
        events: start({ ...header, input: {} }) + deltas.join('') + stop,
      }
    }
    if (one.type === 'web_search_tool_result')
      return { whole: { type: one.type, content: [] }, events: start({ type: one.type, content: [] }) + stop }
    const deltas = one.pieces.map((piece) => grow({ type: `${one.type}_delta`, [one.type]: piece }))
    return {
      whole: { type: one.type, [one.type]: one.pieces.join('') },
      events: start({ type: one.type, [one.type]: '' }) + deltas.join('') + stop,
    }
  }

  it('says the same as one that comes in one, however it is cut', () => {
    fc.assert(
      fc.property(fc.array(drawn, { maxLength: 5 }), sizes, (blocks, lines) => {
        const all = blocks.map(told)
        const stream = begun + all.map(({ events }) => events).join('') + stopped + over
        expect(heardOf(messages.listener('upstream'), stream, lines)).toEqual(
          hear(message(all.map(({ whole }) => whole))),
        )
      }),
    )
  })
})
