import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { responses } from '../../../src/server/protocols/responses.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { event, heardOf, input, pieces, sizes } from './stream.ts'

const usage = { input_tokens: 30, input_tokens_details: { cached_tokens: 20 }, output_tokens: 4, total_tokens: 34 }
const response = (output: readonly unknown[] | undefined, status = 'completed') => ({
  id: 'resp_1',
  object: 'response',
  status,
  error: null,
  output,
  usage,
})
const message = (text: string) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text, annotations: [] }],
})
const call = (id: string, text: string) => ({
  type: 'function_call',
  id: `fc_${id}`,
  call_id: id,
  name: 'weather',
  arguments: text,
  status: 'completed',
})
const cost = { prompt: 30, completion: 4, cached: 20 }
const hear = (value: unknown) => responses.hear(JSON.stringify(value), 'upstream')
const listen = (stream: string) => {
  const listener = responses.listener('upstream')
  return { listener, heard: heardOf(listener, stream) }
}

describe('a response', () => {
  it('is one message of the assistant', () => {
    const refusal = { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No more.' }] }
    expect(
      hear(response([{ type: 'reasoning', id: 'rs_1', summary: [] }, message('I look.'), call('c1', '{}'), refusal])),
    ).toEqual({
      reply: {
        role: 'assistant',
        content: 'I look.\nNo more.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
      },
      id: 'resp_1',
      usage: cost,
    })
    expect(hear({ output: [] })).toEqual({ reply: { role: 'assistant', content: '' }, id: undefined, usage: undefined })
  })

  it('is known again when the client sends it back', () => {
    const output = [
      { type: 'reasoning', id: 'rs_1', summary: [] },
      message('One.'),
      message('Two.'),
      call('c1', '{"a":1}'),
      { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'x' },
    ]
    const { reply } = hear(response(output))
    const [sent] = responses.read({ input: output }, chars4).said
    expect(sent).toMatchObject({
      role: reply.role,
      content: reply.content,
      calls: reply.tool_calls?.map(({ id, function: made }) => ({ id, ...made })),
    })
  })

  it('holds no call that nobody is to answer', () => {
    const run = { type: 'shell_call', id: 'sh_1', call_id: 'c1', action: { commands: ['ls'] } }
    const output = [run, { type: 'shell_call_output', call_id: 'c1', output: [] }, call('', '{}'), message('Done.')]
    expect(hear(response(output)).reply).toEqual({ role: 'assistant', content: 'Done.' })
  })

  it.each([
    ['<html>', 'upstream sent something that is not JSON instead of a reply'],
    ['{"object":"list"}', 'upstream sent JSON of another kind instead of a reply'],
    [
      '{"id":"resp_1","status":"failed","error":{"code":"server_error"},"output":[]}',
      'upstream reported an error (server_error) instead of going on',
    ],
  ])('is none: %s', (text, fault) => {
    expect(() => responses.hear(text, 'upstream')).toThrow(fault)
  })
})

describe('a streamed response', () => {
  const begun = event('response.created', { response: response([], 'in_progress') })

  it('is over with the event that says so, whole or cut short', () => {
    for (const end of ['completed', 'incomplete']) {
      const { listener, heard } = listen(begun + event(`response.${end}`, { response: response([message('Hello')]) }))
      expect(heard).toEqual({ reply: { role: 'assistant', content: 'Hello' }, id: 'resp_1', usage: cost })
      expect([listener.isComplete, listener.isOver, listener.hasFailed]).toEqual([true, true, false])
    }
  })

  it('is heard to the end, though no empty line or another word comes after it', () => {
    const end = event('response.completed', { response: response([message('Hello')]) })
    expect(listen(`${begun}${end.trimEnd()}\n`).listener.isOver).toBe(true)
    expect(listen(`${begun}${end}data: [DONE]\n\n`).heard.reply.content).toBe('Hello')
  })

  it('is not complete before', () => {
    const { listener, heard } = listen(
      begun + event('response.output_item.done', { output_index: 0, item: message('Hello') }),
    )
    expect([listener.isComplete, listener.isOver, listener.hasFailed]).toEqual([false, false, false])
    expect(heard.reply.content).toBe('Hello')
    expect(
      listen(
        event('response.output_item.added', { output_index: 0, item: message('At once') }) +
          event('response.completed'),
      ).heard.reply.content,
    ).toBe('At once')
  })

  it('fails where the upstream says so', () => {
    const failed = event('response.failed', {
      response: { ...response([], 'failed'), error: { code: 'server_error', message: 'm' } },
    })
    const states = [
      failed,
      event('error', { code: 'x', message: 'm', param: null }),
      'data: {"error":{"message":"m"}}\n\n',
      responses.failure({ message: 'm', type: 't', param: null, code: null }),
    ]
    for (const stream of states) {
      const { listener } = listen(begun + stream)
      expect([listener.isComplete, listener.hasFailed]).toEqual([false, true])
    }
    expect(listen(begun + failed).listener.isOver).toBe(true)
  })

  it('is refused when it is no stream of events, or has no end', () => {
    expect(() => listen('data: hello\n\n')).toThrow('upstream sent an event that is not JSON instead of a reply')
    const listener = responses.listener('upstream')
    const delta = event('response.output_text.delta', {
      output_index: 0,
      content_index: 0,
      delta: 'x'.repeat(4_000_000),
    })
    listener.hear(
      Buffer.from(event('response.output_item.added', { output_index: 0, item: { ...message(''), content: [] } })),
    )
    for (let time = 0; time < 4; time++) listener.hear(Buffer.from(delta))
    expect(() => listener.hear(Buffer.from(delta))).toThrow(
      'upstream sent more than 16777216 characters instead of a reply',
    )
  })

  const item = fc.oneof(
    fc.record({
      type: fc.constant('message' as const),
      parts: fc.array(fc.record({ refuses: fc.boolean(), pieces }), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ type: fc.constant('function_call' as const), input }),
    fc.record({ type: fc.constant('custom_tool_call' as const), pieces }),
  )
  type Drawn = typeof item extends fc.Arbitrary<infer T> ? T : never

  /** The item as a whole, the item as it is announced, and the events between. */
  function told(drawn: Drawn, place: number): { whole: object; announced: object; deltas: string } {
    const at = { output_index: place, item_id: `i${place}` }
    const delta = (kind: string, text: string, more: object = {}) =>
      event(`response.${kind}.delta`, { ...at, ...more, delta: text })
    if (drawn.type === 'message') {
      const parts = drawn.parts.map(({ refuses, pieces: texts }) =>
        refuses ? { type: 'refusal', refusal: texts.join('') } : { type: 'output_text', text: texts.join('') },
      )
      const deltas = drawn.parts.flatMap(({ refuses, pieces: texts }, index) => {
        // A part that says nothing is announced with an empty piece, so that it has its line.
        return ['', ...texts].map((text) => delta(refuses ? 'refusal' : 'output_text', text, { content_index: index }))
      })
      const header = { type: 'message', id: `i${place}`, role: 'assistant' }
      return { whole: { ...header, content: parts }, announced: { ...header, content: [] }, deltas: deltas.join('') }
    }
    const header = { type: drawn.type, id: `i${place}`, call_id: `c${place}`, name: 'tool' }
    if (drawn.type === 'function_call') {
      const text = JSON.stringify(drawn.input)
      return {
        whole: { ...header, arguments: text },
        announced: { ...header, arguments: '' },
        deltas: delta('function_call_arguments', text.slice(0, 3)) + delta('function_call_arguments', text.slice(3)),
      }
    }
    const deltas = drawn.pieces.map((text) => delta('custom_tool_call_input', text)).join('')
    return { whole: { ...header, input: drawn.pieces.join('') }, announced: { ...header, input: '' }, deltas }
  }

  it('says the same as one that comes in one, however it is cut and however much of it is repeated at the end', () => {
    fc.assert(
      fc.property(
        fc.array(item, { maxLength: 4 }),
        fc.boolean(),
        fc.boolean(),
        sizes,
        (items, repeats, finishes, lines) => {
          const all = items.map(told)
          const output = all.map(({ whole }) => whole)
          const growing = all.map(({ whole, announced, deltas }, place) => {
            const done = event('response.output_item.done', { output_index: place, item: whole })
            return (
              event('response.output_item.added', { output_index: place, item: announced }) +
              deltas +
              (finishes ? done : '')
            )
          })
          const stream =
            begun + growing.join('') + event('response.completed', { response: response(repeats ? output : []) })
          expect(heardOf(responses.listener('upstream'), stream, lines)).toEqual(hear(response(output)))
        },
      ),
    )
  })
})
