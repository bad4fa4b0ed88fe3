import { promisify } from 'node:util'
import zlib, { crc32 } from 'node:zlib'
import type { LexicalIndexSnapshot } from '../../search/lexicalIndex.ts'
import type { ScopeIndexSnapshot } from '../../search/scopeIndex.ts'

/**
 * Typed arrays of a search index. Layout of an uncompressed snapshot: length of the JSON header (4 bytes, little
 * endian), CRC-32 of everything else (4 bytes), the columns in this order, the JSON header. The widest columns come
 * first, so that each is aligned.
 */
const columns = [
  'times',
  'sequences',
  'owners',
  'speakers',
  'passageCounts',
  'lengths',
  'costs',
  'fingerprints',
  'sizes',
  'places',
  'markers',
  'counts',
] as const satisfies readonly (keyof LexicalIndexSnapshot)[]
const columnBytes: Readonly<Record<(typeof columns)[number], number>> = {
  times: 8,
  sequences: 8,
  owners: 4,
  speakers: 4,
  passageCounts: 4,
  lengths: 4,
  costs: 4,
  fingerprints: 4,
  sizes: 4,
  places: 4,
  markers: 2,
  counts: 2,
}

type SnapshotHeader = Omit<ScopeIndexSnapshot, 'messageIndex'> & {
  readonly names: readonly string[]
  readonly terms: readonly string[]
  readonly lengths: readonly number[]
}

/** Encodes the search index of a session or scope, uncompressed. */
export function encodeSnapshot({ messageIndex, ...rest }: ScopeIndexSnapshot): Uint8Array {
  const header: SnapshotHeader = {
    ...rest,
    names: messageIndex.names,
    terms: messageIndex.terms,
    lengths: columns.map((name) => messageIndex[name].length),
  }
  const headerText = Buffer.from(JSON.stringify(header))
  const numbers = columns.map(
    (name) => new Uint8Array(messageIndex[name].buffer, messageIndex[name].byteOffset, messageIndex[name].byteLength),
  )
  const prefix = Buffer.alloc(8)
  prefix.writeUInt32LE(headerText.length)
  // The prefix has 8 bytes, which aligns the 8-byte columns. The checksum is computed while its own field is 0.
  const body = Buffer.concat([prefix, ...numbers, headerText])
  prefix.writeUInt32LE(crc32(body), 4)
  body.set(prefix)
  return body
}

/** Compresses an encoded snapshot; runs in the worker thread, because it is slow. */
export const compressSnapshot = (bytes: Uint8Array): Uint8Array => zlib.zstdCompressSync(bytes)

const decompress = promisify(zlib.zstdDecompress)

/** Decompresses and decodes a snapshot; undefined if there is none or it is damaged. */
export async function decodeSnapshot(bytes: Uint8Array | undefined): Promise<ScopeIndexSnapshot | undefined> {
  if (bytes === undefined) return undefined
  try {
    const body = await decompress(bytes)
    const [headerLength, checksum] = [body.readUInt32LE(0), body.readUInt32LE(4)]
    body.writeUInt32LE(0, 4)
    if (crc32(body) !== checksum) return undefined
    const { names, terms, lengths, ...rest } = JSON.parse(
      body.subarray(body.length - headerLength).toString(),
    ) as SnapshotHeader
    return { ...rest, messageIndex: { names, terms, ...readColumns(body, lengths) } }
  } catch {
    return undefined
  }
}

function readColumns(body: Buffer, lengths: readonly number[]): Omit<LexicalIndexSnapshot, 'names' | 'terms'> {
  // A copy starts at offset 0 of its buffer, which aligns the 8-byte columns.
  const { buffer } = new Uint8Array(body)
  let offset = 8
  const arrays = columns.map((name, index) => {
    const length = lengths[index] as number
    const [start, width] = [offset, columnBytes[name]]
    offset += length * width
    return [
      name,
      width === 8
        ? new Float64Array(buffer, start, length)
        : width === 4
          ? new Uint32Array(buffer, start, length)
          : new Uint16Array(buffer, start, length),
    ]
  })
  return Object.fromEntries(arrays) as Omit<LexicalIndexSnapshot, 'names' | 'terms'>
}
