import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventReader, WholeEvents } from '../../../src/server/http/sse.ts'

/** The bytes in pieces of these lengths, taken in turn. */
function pieces(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1
    found.push(bytes.subarray(at, at + length))
    at += length
  }
  return found
}

/** A reader, and the events it has read so far. */
function reading() {
  const events: string[] = []
  return { reader: new EventReader({ take: (data) => void events.push(data), skip: (_, start) => start }), events }
}

/** What is passed on piece by piece, what remains, and the events read from it. */
function read(parts: readonly Buffer[]) {
  const lines = new WholeEvents()
  const { reader, events } = reading()
  const passed = parts.map((part) => lines.push(part))
  for (const part of passed) reader.push(part.toString('utf8'))
  return { passed, rest: lines.rest(), events }
}

const text =
  'data: {"a":"ü🌍"}\n\n: note\r\ndata: one\r\ndata:two\r\n\r\nevent: x\rdata:  three\r\rdata: cut off\ndata: in the mid'

describe('a stream of events', () => {
  it('is read as it is meant', () => {
    const { events, rest } = read([Buffer.from(text)])
    expect(events).toEqual(['{"a":"ü🌍"}', 'one\ntwo', ' three'])
    expect(rest.toString('utf8')).toBe('data: cut off\ndata: in the mid')
  })

  it('is read and passed on the same however it is cut, and never passed on in the middle of an event', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 }), (lengths) => {
        const { passed, rest, events } = read(pieces(Buffer.from(text), lengths))
        expect(events).toEqual(['{"a":"ü🌍"}', 'one\ntwo', ' three'])
        expect(Buffer.concat([...passed, rest]).toString('utf8')).toBe(text)
        for (const part of passed)
          expect(part.length === 0 || /(?:\r\r|\n\n|\r\n\r\n)$/.test(part.toString('utf8'))).toBe(true)
      }),
    )
  })

  it('has an end even if the last event has none', () => {
    const { reader, events } = reading()
    reader.push('data: [DONE]\n')
    expect(events).toEqual([])
    reader.end()
    expect(events).toEqual(['[DONE]'])
    reader.end()
    expect(events).toEqual(['[DONE]'])
  })

  it('is refused when an event has no end', () => {
    const events = new WholeEvents()
    const megabyte = Buffer.alloc(1_048_576, 'x')
    for (let time = 0; time < 16; time++) events.push(megabyte)
    const why = 'The upstream sent an event of more than 16777216 bytes, which is not a model reply.'
    expect(() => events.push(Buffer.from('x'))).toThrow(why)
    const { reader } = reading()
    const line = `data: ${'x'.repeat(1_048_576)}\n`
    expect(() => reader.push(line.repeat(17))).toThrow(why)
  })
})
