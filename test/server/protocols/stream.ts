import fc from 'fast-check'
import type { Heard, Listener } from '../../../src/server/protocols/dialect.ts'

/** An event as it is written on the wire. */
export const event = (type: string, fields: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

/** What a listener has heard of a stream that comes in pieces, each of so many lines, taken in turn. */
export function heardOf(listener: Listener, stream: string, sizes: readonly number[] = [1]): Heard {
  const lines = stream.match(/.*\n/g) ?? []
  for (let at = 0, turn = 0; at < lines.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    listener.hear(Buffer.from(lines.slice(at, at + size).join('')))
    at += size
  }
  listener.end(Buffer.alloc(0))
  return listener.heard()
}

/** How many lines come at once. */
export const sizes = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 })

/** A text and the pieces it comes in. */
export const pieces = fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }), { maxLength: 4 })

/** The arguments of a call. */
export const input = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 })
