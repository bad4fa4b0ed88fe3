import { Buffer } from 'node:buffer'

/** Everything a generator of bytes gives, in one. */
export async function gathered(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}

/** Bytes as a file gives them: a piece at a time, cut anywhere, and again from the start each time it is opened. */
export const file = (bytes: Uint8Array, piece = 1_000): (() => AsyncGenerator<Uint8Array>) =>
  async function* () {
    for (let at = 0; at < bytes.length; at += piece) yield bytes.subarray(at, at + piece)
  }
