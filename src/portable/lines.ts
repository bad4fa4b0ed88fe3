import { damaged } from './chain.ts'

export type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

const newline = 0x0a

/** Splits bytes into lines as they come; each must be UTF-8 and end with a newline. */
export async function* linesOf(bytes: Bytes): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let number = 1
  let begun: Uint8Array[] = []
  for await (const chunk of bytes) {
    let from = 0
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, from)) {
      yield decoded(decoder, [...begun, chunk.subarray(from, to)], number++)
      begun = []
      from = to + 1
    }
    if (from < chunk.length) begun.push(chunk.subarray(from))
  }
  if (begun.length > 0) throw damaged(number, 'is cut off: it does not end with a newline')
}

function decoded(decoder: TextDecoder, parts: readonly Uint8Array[], number: number): string {
  try {
    return decoder.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts))
  } catch {
    throw damaged(number, 'is not UTF-8')
  }
}

/**
 * Parts the first line, with its newline, from what follows it; a first line longer than `most` bytes is given up on,
 * so that a file of another kind is not read whole in search of a newline.
 */
export async function partFirstLine(
  chunks: AsyncGenerator<Uint8Array>,
  most: number,
): Promise<{ readonly first: Uint8Array; readonly rest: Bytes }> {
  let read: Uint8Array = new Uint8Array(0)
  for (let step = await chunks.next(); step.done !== true; step = await chunks.next()) {
    read = Buffer.concat([read, step.value])
    const end = read.indexOf(newline) + 1
    if (end > 0 || read.length > most)
      return { first: read.subarray(0, end), rest: following(read.subarray(end), chunks) }
  }
  return { first: read, rest: chunks }
}

/** One after the other, as one flow. */
export async function* following(first: Uint8Array, rest: Bytes): AsyncGenerator<Uint8Array> {
  if (first.length > 0) yield first
  yield* rest
}
