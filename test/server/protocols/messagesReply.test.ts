import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { messagesProtocol } from '../../../src/server/protocols/messages.ts'
import type { ModelReply } from '../../../src/server/protocols/protocol.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { callInput, formatEvent, lineCounts, parseStream, textChunks } from './replyFixtures.ts'

const usage = { input_tokens: 10, cache_read_input_tokens: 20, cache_creation_input_tokens: 5, output_tokens: 4 }
const expectedUsage = { prompt: 35, completion: 4, cached: 20 }
const message = (content: readonly unknown[]) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'm',
  content,
  stop_reason: 'end_turn',
  usage,
})
const parseReply = (value: unknown) => messagesProtocol.parseReply(JSON.stringify(value), 'upstream')
const text = (value: string) => ({ type: 'text', text: value })
const toolUse = { type: 'tool_use', id: 't1', name: 'weather', input: { city: 'Bern' } }
const messageStart = formatEvent('message_start', {
  message: { ...message([]), stop_reason: null, usage: { ...usage, output_tokens: 1 } },
})
const messageDelta = formatEvent('message_delta', {
  delta: { stop_reason: 'end_turn' },
  usage: { output_tokens: 4, cache_read_input_tokens: null },
})
const messageStop = formatEvent('message_stop')

const payload = (content: readonly unknown[]) => ({ protocol: 'messages', items: [{ role: 'assistant', content }] })

describe('Anthropic reply', () => {
  it('yields one assistant message without thinking, and its blocks as payload', () => {
    const content = [
      { type: 'thinking', thinking: 'Hm.', signature: 's' },
      text('I '),
      text('look.'),
      toolUse,
      { ...toolUse, id: '' },
      text(''),
      text('Wait.'),
    ]
    const expected: ModelReply = {
      message: {
        role: 'assistant',
        content: 'I look.\nWait.',
        tool_calls: [{ id: 't1', type: 'function', function: { name: 'weather', arguments: '{"city":"Bern"}' } }],
        // The API rejects a call without an id and blank text.
        payload: payload(content.filter((_, index) => index !== 4 && index !== 5)),
      },
      id: 'msg_1',
      usage: expectedUsage,
    }
    expect(parseReply(message(content))).toEqual(expected)
    const empty: ModelReply = {
      message: { role: 'assistant', content: '' },
      id: undefined,
      usage: undefined,
    }
    expect(parseReply({ content: [] })).toEqual(empty)
  })

  it('equals the message that the client sends back', () => {
    const content = [
      text('See:'),
      { type: 'server_tool_use', id: 's', name: 'web_search', input: {} },
      { type: 'web_search_tool_result', content: [] },
      text('Yes'),
      toolUse,
      text(''),
    ]
    const { message: reply } = parseReply(message(content))
    const [clientMessage] = messagesProtocol.parseRequest(
      { messages: [{ role: 'assistant', content }] },
      chars4,
    ).messages
    expect(clientMessage).toMatchObject({
      content: reply.content,
      toolCalls: [{ id: 't1', name: 'weather', arguments: '{"city":"Bern"}' }],
    })
    expect(clientMessage?.content).toBe('See:\n[web_search]\n[web_search_tool_result]\nYes')
  })

  it.each([
    ['<html>', 'upstream sent something that is not JSON instead of a reply'],
    ['{"object":"list"}', 'upstream sent JSON of another kind instead of a reply'],
    [
      '{"type":"error","error":{"type":"overloaded_error","message":"m"}}',
      'upstream reported an error (overloaded_error) instead of going on',
    ],
  ])('with other data is rejected: %s', (body, error) => {
    expect(() => messagesProtocol.parseReply(body, 'upstream')).toThrow(error)
  })
})

describe('streamed Anthropic reply', () => {
  const parse = (stream: string) => {
    const parser = messagesProtocol.createReplyParser('upstream')
    const reply = parseStream(parser, stream)
    return { reply, state: [parser.isComplete, parser.hasEnded, parser.hasFailed] }
  }
  const blockStart = formatEvent('content_block_start', { index: 0, content_block: text('') })
  const blockDelta = formatEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } })

  it('is complete with the stop reason and has ended with message_stop', () => {
    const partial = parse(messageStart + formatEvent('ping') + blockStart + blockDelta)
    expect([partial.reply.message.content, partial.state]).toEqual(['Hello', [false, false, false]])
    const complete: ModelReply = {
      message: { role: 'assistant', content: 'Hello', payload: payload([text('Hello')]) },
      id: 'msg_1',
      usage: expectedUsage,
    }
    expect(parse(messageStart + blockStart + blockDelta + messageDelta)).toEqual({
      reply: complete,
      state: [true, false, false],
    })
    expect(parse(messageStart + blockStart + blockDelta + messageDelta + messageStop).state).toEqual([
      true,
      true,
      false,
    ])
  })

  it('fails with an error event', () => {
    const errorEvent = messagesProtocol.formatErrorEvent({
      message: 'm',
      type: 'upstream_error',
      param: null,
      code: 'upstream',
    })
    expect(parse(messageStart + blockStart + blockDelta + errorEvent).state).toEqual([false, false, true])
    expect(parse(messageStart + messageDelta + errorEvent + messageStop).state).toEqual([false, true, true])
  })

  it('keeps truncated call input as text', () => {
    const truncated = formatEvent('content_block_delta', {
      index: 0,
      delta: { type: 'input_json_delta', partial_json: '{"city":"Be' },
    })
    const { reply } = parse(
      messageStart +
        formatEvent('content_block_start', { index: 0, content_block: { ...toolUse, input: {} } }) +
        truncated +
        messageDelta,
    )
    expect(reply.message.tool_calls).toMatchObject([{ function: { arguments: '{"city":"Be' } }])
  })

  it('above the size limit is rejected', () => {
    const parser = messagesProtocol.createReplyParser('upstream')
    const longDelta = formatEvent('content_block_delta', {
      index: 0,
      delta: { type: 'text_delta', text: 'x'.repeat(4_000_000) },
    })
    parser.push(Buffer.from(blockStart))
    parser.push(Buffer.from(longDelta))
    expect(() => parser.push(Buffer.from(longDelta))).toThrow(
      'upstream sent more than 8000000 characters instead of a reply',
    )
  })

  const arbitraryBlock = fc.oneof(
    fc.record({ type: fc.constantFrom('text' as const, 'thinking' as const), chunks: textChunks }),
    fc.record({ type: fc.constant('tool_use' as const), input: callInput }),
    fc.record({ type: fc.constant('web_search_tool_result' as const) }),
  )
  type TestBlock = typeof arbitraryBlock extends fc.Arbitrary<infer T> ? T : never

  /** Returns a complete block and the events that stream it. */
  function streamBlock(block: TestBlock, index: number): { complete: object; events: string } {
    const formatDelta = (fields: object) => formatEvent('content_block_delta', { index, delta: fields })
    const start = (content: object) => formatEvent('content_block_start', { index, content_block: content })
    const stop = formatEvent('content_block_stop', { index })
    if (block.type === 'tool_use') {
      const [json, header] = [JSON.stringify(block.input, null, 1), { type: 'tool_use', id: `t${index}`, name: 'tool' }]
      const deltas = ['', json.slice(0, 4), json.slice(4)].map((chunk) =>
        formatDelta({ type: 'input_json_delta', partial_json: chunk }),
      )
      return {
        complete: { ...header, input: block.input },
        events: start({ ...header, input: {} }) + deltas.join('') + stop,
      }
    }
    if (block.type === 'web_search_tool_result')
      return { complete: { type: block.type, content: [] }, events: start({ type: block.type, content: [] }) + stop }
    const deltas = block.chunks.map((chunk) => formatDelta({ type: `${block.type}_delta`, [block.type]: chunk }))
    return {
      complete: { type: block.type, [block.type]: block.chunks.join('') },
      events: start({ type: block.type, [block.type]: '' }) + deltas.join('') + stop,
    }
  }

  it('equals the complete reply, however the stream is split', () => {
    fc.assert(
      fc.property(fc.array(arbitraryBlock, { maxLength: 5 }), lineCounts, (blocks, counts) => {
        const all = blocks.map(streamBlock)
        const stream = messageStart + all.map(({ events }) => events).join('') + messageDelta + messageStop
        expect(parseStream(messagesProtocol.createReplyParser('upstream'), stream, counts)).toEqual(
          parseReply(message(all.map(({ complete }) => complete))),
        )
      }),
    )
  })
})
