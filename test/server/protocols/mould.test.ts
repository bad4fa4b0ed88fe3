import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { at } from '../../../src/providers/json.ts'
import { chatListener } from '../../../src/server/protocols/chatReply.ts'
import { Mould } from '../../../src/server/protocols/mould.ts'

const textOf = (event: unknown): unknown => at(event, 'text')
const event = (text: string, more: object = {}): string => JSON.stringify({ id: 'a', text, model: 'm', ...more })

describe('what events have in common', () => {
  it('is learnt from one of them', () => {
    const mould = new Mould()
    expect(mould.pieceIn(event('one'))).toBeUndefined()
    mould.learn(event('one'), 'one', textOf)
    for (const piece of ['two', '', 'a "word"', 'ü🌍\n', 'one']) expect(mould.pieceIn(event(piece))).toBe(piece)
  })

  it('is passed over in a stream as long as nothing else comes', () => {
    const mould = new Mould()
    mould.learn(event('one'), 'one', textOf)
    const stream = (...events: string[]): string => events.map((data) => `data: ${data}\n\n`).join('')
    const pieces: string[] = []
    const alike = stream(event('two'), event(''), event('ü🌍'))
    expect(mould.skip(`x${alike}${stream('[DONE]')}`, 1, (piece) => void pieces.push(piece))).toBe(1 + alike.length)
    expect(pieces).toEqual(['two', '', 'ü🌍'])
    const others = [
      stream(event('two', { more: 1 })),
      stream(event('a "word"')),
      `data:${event('two')}\n\n`,
      `data: ${event('two')}\n`,
      `data: ${event('two')}\ndata: x\n\n`,
    ]
    for (const other of others) expect(mould.skip(other, 0, (piece) => void pieces.push(piece))).toBe(0)
    expect(pieces).toHaveLength(3)
  })

  it('is no more than that', () => {
    const mould = new Mould()
    mould.learn(event('one'), 'one', textOf)
    const others = [
      event('two', { id: 'b' }),
      event('two', { more: 1 }),
      event('two').replace('"two"', '"two","id":"b"'),
      event('two').replace('"two"', '2'),
      '{}',
      '',
    ]
    for (const other of others) expect(mould.pieceIn(other)).toBeUndefined()
    expect(mould.pieceIn('{"id":"a","text":,"model":"m"}')).toBeUndefined()
    expect(mould.pieceIn('{"id":"a","text":"model":"m"}')).toBeUndefined()
  })

  it('is not mistaken where the same letters stand elsewhere', () => {
    const mould = new Mould()
    mould.learn(event('m'), 'm', textOf)
    expect(mould.pieceIn(event('m').replace(/"m"}/, '"other"}'))).toBeUndefined()
    mould.learn(event('one'), 'one', textOf)
    expect(mould.pieceIn(event('two'))).toBe('two')
  })

  it('is looked for a few times only where no two are alike', () => {
    const mould = new Mould()
    const parsed = vi.fn(textOf)
    // Where there is a backslash, letters may be written in several ways, and it takes a second look to know where they stand.
    for (let time = 0; time < 20; time++) mould.learn(event(`x${time}`, { time, path: 'C:\\' }), `x${time}`, parsed)
    expect(parsed).toHaveBeenCalledTimes(4)
    mould.learn(event('one'), 'one', textOf)
    expect(mould.pieceIn(event('two'))).toBeUndefined()
  })

  it('is told from what is written in another way than it stands elsewhere', () => {
    const mould = new Mould()
    const odd = (text: string, model: string): string => `{"text":"${text}","model":"${model}"}`
    mould.learn(odd('\\u0041', 'A'), 'A', textOf)
    expect(mould.pieceIn(odd('\\u0041', 'B'))).toBeUndefined()
    mould.learn(odd('A', '\\u0041'), 'A', textOf)
    expect(mould.pieceIn(odd('B', '\\u0041'))).toBe('B')
  })
})

describe('a streamed chat', () => {
  const piece = fc.record({
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

  it('is heard the same whether its events are alike or not', () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const listener = chatListener('here')
        for (const { content, extra, index, created, reason, usage } of pieces) {
          const choices = [{ index, delta: { ...extra, content }, finish_reason: reason }]
          listener.hear(
            Buffer.from(`data: ${JSON.stringify({ id: 'chunk', created, choices, usage, model: 'stop' })}\n\n`),
          )
        }
        const first = pieces.filter(({ index }) => index === 0)
        const said = first.map(({ content, extra }) => content || ('refusal' in extra ? extra.refusal : ''))
        expect(listener.heard().reply.content).toBe(said.join(''))
        expect(listener.heard().usage?.prompt).toBe(
          pieces.findLast(({ usage }) => usage !== null)?.usage?.prompt_tokens,
        )
        expect(listener.isComplete).toBe(first.some(({ reason }) => reason === 'stop'))
      }),
    )
  })
})
