import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ModelReply } from '../../../src/server/protocols/protocol.ts'
import { responsesProtocol } from '../../../src/server/protocols/responses.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { callInput, formatEvent, lineCounts, parseStream, textChunks } from './replyFixtures.ts'

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
const expectedUsage = { prompt: 30, completion: 4, cached: 20 }
const parseReply = (value: unknown) => responsesProtocol.parseReply(JSON.stringify(value), 'upstream')
const parse = (stream: string) => {
  const parser = responsesProtocol.createReplyParser('upstream')
  return { parser, reply: parseStream(parser, stream) }
}

const payload = (items: readonly unknown[]) => ({ protocol: 'responses', items })
const finished = { isStoredUpstream: false, isFinished: true }

describe('Responses reply', () => {
  it('yields one assistant message, and its items as payload', () => {
    const refusal = { type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No more.' }] }
    const output = [{ type: 'reasoning', id: 'rs_1', summary: [] }, message('I look.'), call('c1', '{}'), refusal]
    const expected: ModelReply = {
      message: {
        role: 'assistant',
        content: 'I look.\nNo more.',
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
        payload: payload(output),
      },
      id: 'resp_1',
      usage: expectedUsage,
      ...finished,
    }
    expect(parseReply(response(output))).toEqual(expected)
    const empty = { message: { role: 'assistant', content: '' }, id: undefined, usage: undefined, ...finished }
    expect(parseReply({ output: [] })).toEqual(empty)
  })

  it('tells whether the upstream stores it and has finished it', () => {
    const statesOf = (fields: object) => {
      const { isStoredUpstream, isFinished } = parseReply({ ...response([message('Hi')]), ...fields })
      return [isStoredUpstream, isFinished]
    }
    expect(statesOf({ store: true })).toEqual([true, true])
    expect(statesOf({ store: false })).toEqual([false, true])
    for (const status of ['queued', 'in_progress']) expect(statesOf({ store: true, status })).toEqual([true, false])
  })

  it('equals the message that the client sends back', () => {
    const output = [
      { type: 'reasoning', id: 'rs_1', summary: [] },
      message('One.'),
      message('Two.'),
      call('c1', '{"a":1}'),
      { type: 'custom_tool_call', call_id: 'c2', name: 'patch', input: 'x' },
    ]
    const { message: assistantMessage } = parseReply(response(output))
    const [clientMessage] = responsesProtocol.parseRequest({ input: output }, chars4).messages
    expect(clientMessage).toMatchObject({
      role: assistantMessage.role,
      content: assistantMessage.content,
      toolCalls: assistantMessage.tool_calls?.map((call) => ({
        id: call.id,
        ...('function' in call && call.function),
      })),
    })
  })

  it('omits answered calls and calls without an id', () => {
    const shellCall = { type: 'shell_call', id: 'sh_1', call_id: 'c1', action: { commands: ['ls'] } }
    const output = [
      shellCall,
      { type: 'shell_call_output', call_id: 'c1', output: [] },
      call('', '{}'),
      message('Done.'),
    ]
    expect(parseReply(response(output)).message).toEqual({
      role: 'assistant',
      content: 'Done.',
      payload: payload(output.filter((_, index) => index !== 2)),
    })
  })

  it.each([
    ['<html>', 'upstream sent something that is not JSON instead of a reply'],
    ['{"object":"list"}', 'upstream sent JSON of another kind instead of a reply'],
    [
      '{"id":"resp_1","status":"failed","error":{"code":"server_error"},"output":[]}',
      'upstream reported an error (server_error) instead of going on',
    ],
  ])('with other data is rejected: %s', (text, error) => {
    expect(() => responsesProtocol.parseReply(text, 'upstream')).toThrow(error)
  })
})

describe('streamed Responses reply', () => {
  const created = formatEvent('response.created', { response: response([], 'in_progress') })

  it('has ended with response.completed or response.incomplete', () => {
    for (const end of ['completed', 'incomplete']) {
      const { parser, reply } = parse(
        created + formatEvent(`response.${end}`, { response: response([message('Hello')]) }),
      )
      const expected: ModelReply = {
        message: { role: 'assistant', content: 'Hello', payload: payload([message('Hello')]) },
        id: 'resp_1',
        usage: expectedUsage,
        ...finished,
      }
      expect(reply).toEqual(expected)
      expect([parser.isComplete, parser.hasEnded, parser.hasFailed]).toEqual([true, true, false])
    }
  })

  it('is parsed to the end without a final empty line and with [DONE]', () => {
    const end = formatEvent('response.completed', { response: response([message('Hello')]) })
    expect(parse(`${created}${end.trimEnd()}\n`).parser.hasEnded).toBe(true)
    expect(parse(`${created}${end}data: [DONE]\n\n`).reply.message.content).toBe('Hello')
  })

  it('without a final event is incomplete', () => {
    const { parser, reply } = parse(
      created + formatEvent('response.output_item.done', { output_index: 0, item: message('Hello') }),
    )
    expect([parser.isComplete, parser.hasEnded, parser.hasFailed]).toEqual([false, false, false])
    expect(reply.message.content).toBe('Hello')
    expect(
      parse(
        formatEvent('response.output_item.added', { output_index: 0, item: message('At once') }) +
          formatEvent('response.completed'),
      ).reply.message.content,
    ).toBe('At once')
  })

  it('fails with an error event', () => {
    const failed = formatEvent('response.failed', {
      response: { ...response([], 'failed'), error: { code: 'server_error', message: 'm' } },
    })
    const errorEvents = [
      failed,
      formatEvent('error', { code: 'x', message: 'm', param: null }),
      'data: {"error":{"message":"m"}}\n\n',
      responsesProtocol.formatErrorEvent({ message: 'm', type: 't', param: null, code: null }),
    ]
    for (const stream of errorEvents) {
      const { parser } = parse(created + stream)
      expect([parser.isComplete, parser.hasFailed]).toEqual([false, true])
    }
    expect(parse(created + failed).parser.hasEnded).toBe(true)
  })

  it('with other data or above the size limit is rejected', () => {
    expect(() => parse('data: hello\n\n')).toThrow('upstream sent an event that is not JSON instead of a reply')
    const parser = responsesProtocol.createReplyParser('upstream')
    const delta = formatEvent('response.output_text.delta', {
      output_index: 0,
      content_index: 0,
      delta: 'x'.repeat(4_000_000),
    })
    parser.push(
      Buffer.from(
        formatEvent('response.output_item.added', { output_index: 0, item: { ...message(''), content: [] } }),
      ),
    )
    for (let count = 0; count < 2; count++) parser.push(Buffer.from(delta))
    expect(() => parser.push(Buffer.from(delta))).toThrow(
      'upstream sent more than 8000000 characters instead of a reply',
    )
  })

  it('of more than half the size limit › counts the finished item and the final response once', () => {
    const text = 'line\n'.repeat(1_000_000)
    const delta = { output_index: 0, content_index: 0, delta: text }
    const { reply } = parse(
      formatEvent('response.output_item.added', { output_index: 0, item: { ...message(''), content: [] } }) +
        formatEvent('response.output_text.delta', delta) +
        formatEvent('response.output_item.done', { output_index: 0, item: message(text) }) +
        formatEvent('response.completed', { response: response([message(text)]) }),
    )
    expect(reply.message.content).toHaveLength(5_000_000)
  })

  it('above the size limit in a finished item or in the final response only › is rejected before it ends', () => {
    const item = message('x'.repeat(8_000_001))
    for (const event of [
      formatEvent('response.output_item.done', { output_index: 0, item }),
      formatEvent('response.completed', { response: response([item]) }),
    ]) {
      const parser = responsesProtocol.createReplyParser('upstream')
      expect(() => parser.push(Buffer.from(event))).toThrow('upstream sent more than 8000000 characters')
      expect([parser.isComplete, parser.hasEnded]).toEqual([false, false])
    }
  })

  const arbitraryItem = fc.oneof(
    fc.record({
      type: fc.constant('message' as const),
      parts: fc.array(fc.record({ isRefusal: fc.boolean(), chunks: textChunks }), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ type: fc.constant('function_call' as const), input: callInput }),
    fc.record({ type: fc.constant('custom_tool_call' as const), chunks: textChunks }),
  )
  type TestItem = typeof arbitraryItem extends fc.Arbitrary<infer T> ? T : never

  /** Returns the complete item, the item as announced, and the events between. */
  function streamItem(item: TestItem, index: number): { complete: object; announced: object; deltas: string } {
    const position = { output_index: index, item_id: `i${index}` }
    const formatDelta = (kind: string, text: string, more: object = {}) =>
      formatEvent(`response.${kind}.delta`, { ...position, ...more, delta: text })
    if (item.type === 'message') {
      const parts = item.parts.map(({ isRefusal, chunks: texts }) =>
        isRefusal ? { type: 'refusal', refusal: texts.join('') } : { type: 'output_text', text: texts.join('') },
      )
      const deltas = item.parts.flatMap(({ isRefusal, chunks: texts }, part) => {
        // An empty delta announces a part without text.
        return ['', ...texts].map((text) =>
          formatDelta(isRefusal ? 'refusal' : 'output_text', text, { content_index: part }),
        )
      })
      const header = { type: 'message', id: `i${index}`, role: 'assistant' }
      return { complete: { ...header, content: parts }, announced: { ...header, content: [] }, deltas: deltas.join('') }
    }
    const header = { type: item.type, id: `i${index}`, call_id: `c${index}`, name: 'tool' }
    if (item.type === 'function_call') {
      const text = JSON.stringify(item.input)
      return {
        complete: { ...header, arguments: text },
        announced: { ...header, arguments: '' },
        deltas:
          formatDelta('function_call_arguments', text.slice(0, 3)) +
          formatDelta('function_call_arguments', text.slice(3)),
      }
    }
    const deltas = item.chunks.map((text) => formatDelta('custom_tool_call_input', text)).join('')
    return { complete: { ...header, input: item.chunks.join('') }, announced: { ...header, input: '' }, deltas }
  }

  it('equals the complete reply, however the stream is split and whatever its end repeats', () => {
    fc.assert(
      fc.property(
        fc.array(arbitraryItem, { maxLength: 4 }),
        fc.boolean(),
        fc.boolean(),
        lineCounts,
        (items, repeatsOutput, sendsDone, counts) => {
          const all = items.map(streamItem)
          const output = all.map(({ complete }) => complete)
          const itemEvents = all.map(({ complete, announced, deltas }, index) => {
            const done = formatEvent('response.output_item.done', { output_index: index, item: complete })
            return (
              formatEvent('response.output_item.added', { output_index: index, item: announced }) +
              deltas +
              (sendsDone ? done : '')
            )
          })
          const stream =
            created +
            itemEvents.join('') +
            formatEvent('response.completed', { response: response(repeatsOutput ? output : []) })
          expect(parseStream(responsesProtocol.createReplyParser('upstream'), stream, counts)).toEqual(
            parseReply(response(output)),
          )
        },
      ),
    )
  })
})
