import fc from 'fast-check'
import type { ModelReply, ReplyParser } from '../../../src/server/protocols/protocol.ts'

/** Formats a server-sent event. */
export const formatEvent = (type: string, fields: object = {}): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`

/** Feeds a stream to a parser in chunks; `lineCounts` are the lines per chunk, used in rotation. */
export function parseStream(parser: ReplyParser, stream: string, lineCounts: readonly number[] = [1]): ModelReply {
  const lines = stream.match(/.*\n/g) ?? []
  for (let position = 0, chunk = 0; position < lines.length; chunk++) {
    const count = lineCounts[chunk % lineCounts.length] ?? 1
    parser.push(Buffer.from(lines.slice(position, position + count).join('')))
    position += count
  }
  parser.end(Buffer.alloc(0))
  return parser.toReply()
}

/** Arbitrary line counts for `parseStream`. */
export const lineCounts = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 5 })

/** Arbitrary text, as its chunks. */
export const textChunks = fc.array(fc.string({ unit: 'binary', minLength: 1, maxLength: 12 }), { maxLength: 4 })

/** Arbitrary arguments of a tool call. */
export const callInput = fc.dictionary(fc.string({ maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 3 })
