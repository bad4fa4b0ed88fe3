import zlib from 'node:zlib'
import type { Pack } from './ram/fold.ts'

/** Each piece of a result is made in a block of its own that lies about until it is collected: blocks no larger than it takes. */
const blockFor = (bytes: number): number => Math.min(16_384, Math.max(1_024, bytes))

/** Packs with Zstandard. Node before 22.15 has none: there everything stays as it is. */
function zstdAt(level: number): Pack | undefined {
  if (zlib.zstdCompressSync === undefined) return undefined
  const params = { [zlib.constants.ZSTD_c_compressionLevel]: level }
  return {
    // Told beforehand how much it is, so that it takes tables of that size and not of megabytes. Copied, because a small
    // result is a slice of a larger block that it would keep alive.
    pack: (bytes) =>
      new Uint8Array(
        zlib.zstdCompressSync(bytes, {
          params,
          pledgedSrcSize: bytes.byteLength,
          chunkSize: blockFor(bytes.byteLength >> 2),
        }),
      ),
    unpack: (bytes) => zlib.zstdDecompressSync(bytes, { chunkSize: blockFor(8 * bytes.byteLength) }),
  }
}

/** Packs sessions at rest. */
export const zstd = zstdAt(3)
/** With fewer tables: what is nearly the same over and over comes out no larger, and in less time. */
export const lightZstd = zstdAt(1)
