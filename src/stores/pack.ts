import zlib from 'node:zlib'
import type { Pack } from './ram/fold.ts'

const params = { [zlib.constants.ZSTD_c_compressionLevel]: 3 }

/** Packs sessions at rest with Zstandard. Node before 22.15 has none: there they stay as they are. */
export const zstd: Pack | undefined =
  zlib.zstdCompressSync === undefined
    ? undefined
    : {
        // Told beforehand how much it is, so that it takes tables of that size and not of megabytes. Copied, because a small
        // result is a slice of a larger block that it would keep alive.
        pack: (bytes) => new Uint8Array(zlib.zstdCompressSync(bytes, { params, pledgedSrcSize: bytes.byteLength })),
        unpack: (bytes) => zlib.zstdDecompressSync(bytes),
      }
