import { Buffer } from 'node:buffer'

/** Reads all chunks into one buffer. */
export async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const read: Uint8Array[] = []
  for await (const chunk of chunks) read.push(chunk)
  return Buffer.concat(read)
}

/** Returns a function that streams the bytes in chunks, from the start at each call, like opening a file. */
export const openChunks = (bytes: Uint8Array, chunkSize = 1_000): (() => AsyncGenerator<Uint8Array>) =>
  async function* () {
    for (let start = 0; start < bytes.length; start += chunkSize) yield bytes.subarray(start, start + chunkSize)
  }
