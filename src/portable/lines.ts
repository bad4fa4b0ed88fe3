import { damagedBundleError } from './chain.ts'

export type ByteSource = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

const newline = 0x0a
/** Longer than any line of an export; a longer one would not fit into a string. */
const maxLineBytes = 256 * 1_024 * 1_024

/** Splits bytes into lines; each must be UTF-8 and end with a newline. */
export async function* readLines(bytes: ByteSource): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let lineNumber = 1
  let pending: Uint8Array[] = []
  let pendingBytes = 0
  for await (const chunk of bytes) {
    let start = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
      yield decodeLine(decoder, [...pending, chunk.subarray(start, end)], lineNumber++)
      pending = []
      pendingBytes = 0
      start = end + 1
    }
    if (start < chunk.length) pending.push(chunk.subarray(start))
    pendingBytes += chunk.length - start
    if (pendingBytes > maxLineBytes) throw damagedBundleError(lineNumber, `is longer than ${maxLineBytes} bytes`)
  }
  if (pending.length > 0) throw damagedBundleError(lineNumber, 'is cut off: it does not end with a newline')
}

function decodeLine(decoder: TextDecoder, parts: readonly Uint8Array[], lineNumber: number): string {
  try {
    return decoder.decode(parts.length === 1 ? parts[0] : Buffer.concat(parts))
  } catch {
    throw damagedBundleError(lineNumber, 'is not UTF-8')
  }
}

/**
 * Separates the first line, with its newline, from the rest. Stops searching after `maxBytes`, so that a file of
 * another kind is not read completely; `first` is then empty.
 */
export async function splitFirstLine(
  chunks: AsyncGenerator<Uint8Array>,
  maxBytes: number,
): Promise<{ readonly first: Uint8Array; readonly rest: ByteSource }> {
  let read: Uint8Array = new Uint8Array(0)
  for (let step = await chunks.next(); step.done !== true; step = await chunks.next()) {
    read = Buffer.concat([read, step.value])
    const end = read.indexOf(newline) + 1
    if (end > 0 || read.length > maxBytes)
      return { first: read.subarray(0, end), rest: prepend(read.subarray(end), chunks) }
  }
  return { first: read, rest: chunks }
}

/** Yields `first` and then all of `rest`. */
export async function* prepend(first: Uint8Array, rest: ByteSource): AsyncGenerator<Uint8Array> {
  if (first.length > 0) yield first
  yield* rest
}
