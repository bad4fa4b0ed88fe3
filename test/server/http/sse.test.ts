import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { EventReader, EventSplitter } from '../../../src/server/http/sse.ts'

/** Splits the bytes into pieces of these lengths, repeated in turn. */
function splitBytes(bytes: Buffer, lengths: readonly number[]): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const length = lengths[turn % lengths.length] ?? 1
    found.push(bytes.subarray(at, at + length))
    at += length
  }
  return found
}

/** A parser and the events it has parsed so far. */
function createParser() {
  const events: string[] = []
  return { reader: new EventReader({ onData: (data) => void events.push(data), skip: (_, start) => start }), events }
}

/** Forwarded pieces, the remainder, and the parsed events. */
function parseParts(parts: readonly Buffer[]) {
  const lines = new EventSplitter()
  const { reader, events } = createParser()
  const forwarded = parts.map((part) => lines.push(part))
  for (const part of forwarded) reader.push(part.toString('utf8'))
  return { passed: forwarded, rest: lines.rest(), events }
}

const text =
  'data: {"a":"ü🌍"}\n\n: note\r\ndata: one\r\ndata:two\r\n\r\nevent: x\rdata:  three\r\rdata: cut off\ndata: in the mid'

describe('an event stream', () => {
  it('is parsed', () => {
    const { events, rest } = parseParts([Buffer.from(text)])
    expect(events).toEqual(['{"a":"ü🌍"}', 'one\ntwo', ' three'])
    expect(rest.toString('utf8')).toBe('data: cut off\ndata: in the mid')
  })

  it('split at any bytes › is parsed and forwarded alike, never in the middle of an event', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 }), (lengths) => {
        const { passed: forwarded, rest, events } = parseParts(splitBytes(Buffer.from(text), lengths))
        expect(events).toEqual(['{"a":"ü🌍"}', 'one\ntwo', ' three'])
        expect(Buffer.concat([...forwarded, rest]).toString('utf8')).toBe(text)
        for (const part of forwarded)
          expect(part.length === 0 || /(?:\r\r|\n\n|\r\n\r\n)$/.test(part.toString('utf8'))).toBe(true)
      }),
    )
  })

  it('without a final blank line › ends with its last event', () => {
    const { reader, events } = createParser()
    reader.push('data: [DONE]\n')
    expect(events).toEqual([])
    reader.end()
    expect(events).toEqual(['[DONE]'])
    reader.end()
    expect(events).toEqual(['[DONE]'])
  })

  it('with an event that never ends › is refused', () => {
    const events = new EventSplitter()
    const megabyte = Buffer.alloc(1_048_576, 'x')
    for (let time = 0; time < 16; time++) events.push(megabyte)
    const why = 'The upstream sent an event of more than 16777216 bytes, which is not a model reply.'
    expect(() => events.push(Buffer.from('x'))).toThrow(why)
    const { reader } = createParser()
    const line = `data: ${'x'.repeat(1_048_576)}\n`
    expect(() => reader.push(line.repeat(17))).toThrow(why)
  })
})
