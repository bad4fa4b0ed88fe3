import zlib from 'node:zlib'
import type { Compressor } from './ram/compression.ts'

/**
 * Sizes zlib's output chunks to the expected result: each chunk is a separate buffer that stays alive until garbage
 * collection.
 */
const chunkSizeFor = (bytes: number): number => Math.min(16_384, Math.max(1_024, bytes))

/** Creates a Zstandard compressor. */
function createZstd(level: number): Compressor {
  const params = { [zlib.constants.ZSTD_c_compressionLevel]: level }
  return {
    // pledgedSrcSize makes zstd allocate tables of the input's size instead of megabytes. The result is copied because
    // a small one is a slice that would keep its larger buffer alive.
    compress: (bytes) =>
      new Uint8Array(
        zlib.zstdCompressSync(bytes, {
          params,
          pledgedSrcSize: bytes.byteLength,
          chunkSize: chunkSizeFor(bytes.byteLength >> 2),
        }),
      ),
    decompress: (bytes) => zlib.zstdDecompressSync(bytes, { chunkSize: chunkSizeFor(8 * bytes.byteLength) }),
  }
}

/** Compressor for idle sessions (level 3). */
export const zstdCompressor = createZstd(3)
