import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { createChatReplyParser } from '../../../src/server/protocols/chat.ts'
import { SseTemplateCache } from '../../../src/server/protocols/sseTemplateCache.ts'
import { getPath } from '../../../src/text/json.ts'

const readText = (event: unknown): unknown => getPath(event, 'text')
const createEvent = (text: string, more: object = {}): string => JSON.stringify({ id: 'a', text, model: 'm', ...more })

describe('SseTemplateCache', () => {
  it('matches similar events after learning one', () => {
    const templates = new SseTemplateCache()
    expect(templates.match(createEvent('one'))).toBeUndefined()
    templates.learn(createEvent('one'), 'one', readText)
    for (const delta of ['two', '', 'a "word"', 'ü🌍\n', 'one']) expect(templates.match(createEvent(delta))).toBe(delta)
  })

  it('consumes consecutive similar events and stops at the first other event', () => {
    const templates = new SseTemplateCache()
    templates.learn(createEvent('one'), 'one', readText)
    const createStream = (...events: string[]): string => events.map((data) => `data: ${data}\n\n`).join('')
    const deltas: string[] = []
    const onDelta = (delta: string): void => void deltas.push(delta)
    const similar = createStream(createEvent('two'), createEvent(''), createEvent('ü🌍'))
    expect(templates.consume(`x${similar}${createStream('[DONE]')}`, 1, onDelta)).toBe(1 + similar.length)
    expect(deltas).toEqual(['two', '', 'ü🌍'])
    const others = [
      createStream(createEvent('two', { more: 1 })),
      createStream(createEvent('a "word"')),
      `data:${createEvent('two')}\n\n`,
      `data: ${createEvent('two')}\n`,
      `data: ${createEvent('two')}\ndata: x\n\n`,
    ]
    for (const other of others) expect(templates.consume(other, 0, onDelta)).toBe(0)
    expect(deltas).toHaveLength(3)
  })

  it('does not match an event that differs in more than the delta', () => {
    const templates = new SseTemplateCache()
    templates.learn(createEvent('one'), 'one', readText)
    const others = [
      createEvent('two', { id: 'b' }),
      createEvent('two', { more: 1 }),
      createEvent('two').replace('"two"', '"two","id":"b"'),
      createEvent('two').replace('"two"', '2'),
      '{}',
      '',
    ]
    for (const other of others) expect(templates.match(other)).toBeUndefined()
    expect(templates.match('{"id":"a","text":,"model":"m"}')).toBeUndefined()
    expect(templates.match('{"id":"a","text":"model":"m"}')).toBeUndefined()
  })

  it('does not confuse the delta with equal text in another field', () => {
    const templates = new SseTemplateCache()
    templates.learn(createEvent('m'), 'm', readText)
    expect(templates.match(createEvent('m').replace(/"m"}/, '"other"}'))).toBeUndefined()
    templates.learn(createEvent('one'), 'one', readText)
    expect(templates.match(createEvent('two'))).toBe('two')
  })

  it('stops learning after four templates without a match', () => {
    const templates = new SseTemplateCache()
    const readDelta = vi.fn(readText)
    // With a backslash in the event, the position of the delta is verified by parsing it a second time.
    for (let attempt = 0; attempt < 20; attempt++)
      templates.learn(createEvent(`x${attempt}`, { attempt, path: 'C:\\' }), `x${attempt}`, readDelta)
    expect(readDelta).toHaveBeenCalledTimes(4)
    templates.learn(createEvent('one'), 'one', readText)
    expect(templates.match(createEvent('two'))).toBeUndefined()
  })

  it('does not confuse the delta with equal escaped text in another field', () => {
    const templates = new SseTemplateCache()
    const createEscaped = (text: string, model: string): string => `{"text":"${text}","model":"${model}"}`
    templates.learn(createEscaped('\\u0041', 'A'), 'A', readText)
    expect(templates.match(createEscaped('\\u0041', 'B'))).toBeUndefined()
    templates.learn(createEscaped('A', '\\u0041'), 'A', readText)
    expect(templates.match(createEscaped('B', '\\u0041'))).toBe('B')
  })
})

describe('streamed chat completion', () => {
  const chunk = fc.record({
    content: fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.constantFrom('', '"', '\\', 'stop', 'chunk', 'assistant', ' word'),
    ),
    extra: fc.constantFrom({}, {}, {}, { role: 'assistant' }, { refusal: 'No.' }, { tool_calls: [] }),
    index: fc.constantFrom(0, 0, 0, 1),
    created: fc.constantFrom(1, 1, 2),
    reason: fc.constantFrom(null, null, 'stop'),
    usage: fc.constantFrom(null, null, null, { prompt_tokens: 1 }, { prompt_tokens: 2 }),
  })

  it('with any mix of similar and different events yields the same reply as parsing each event', () => {
    fc.assert(
      fc.property(fc.array(chunk, { maxLength: 30 }), (chunks) => {
        const parser = createChatReplyParser('here')
        for (const { content, extra, index, created, reason, usage } of chunks) {
          const choices = [{ index, delta: { ...extra, content }, finish_reason: reason }]
          parser.push(
            Buffer.from(`data: ${JSON.stringify({ id: 'chunk', created, choices, usage, model: 'stop' })}\n\n`),
          )
        }
        const first = chunks.filter(({ index }) => index === 0)
        const texts = first.map(({ content, extra }) => content || ('refusal' in extra ? extra.refusal : ''))
        expect(parser.toReply().message.content).toBe(texts.join(''))
        expect(parser.toReply().usage?.prompt).toBe(
          chunks.findLast(({ usage }) => usage !== null)?.usage?.prompt_tokens,
        )
        expect(parser.isComplete).toBe(first.some(({ reason }) => reason === 'stop'))
      }),
    )
  })
})
