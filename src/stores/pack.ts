import zlib from 'node:zlib'
import type { Pack } from './ram/fold.ts'

const params = { [zlib.constants.ZSTD_c_compressionLevel]: 3 }

/** Each piece of a result is made in a block of its own that lies about until it is collected: blocks no larger than it takes. */
const blockFor = (bytes: number): number => Math.min(16_384, Math.max(1_024, bytes))

/** Packs sessions at rest with Zstandard. Node before 22.15 has none: there they stay as they are. */
export const zstd: Pack | undefined =
  zlib.zstdCompressSync === undefined
    ? undefined
    : {
        // Told beforehand how much it is, so that it takes tables of that size and not of megabytes. Copied, because a small
        // result is a slice of a larger block that it would keep alive.
        pack: (bytes) => new Uint8Array(zlib.zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.byteLength, chunkSize: blockFor(bytes.byteLength >> 2) })),
        unpack: (bytes) => zlib.zstdDecompressSync(bytes, { chunkSize: blockFor(8 * bytes.byteLength) }),
      }
