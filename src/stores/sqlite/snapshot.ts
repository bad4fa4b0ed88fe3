import { promisify } from 'node:util'
import zlib, { crc32 } from 'node:zlib'
import { type Pause, runInSlices, type Work } from '../../domain/work.ts'
import type { LexicalIndexSnapshot } from '../../search/lexicalIndex.ts'
import type { ScopeIndexSnapshot } from '../../search/scopeIndex.ts'

/**
 * Raised with every change of the layout. Checksums begin with it: a snapshot of another layout, also a future one, is
 * taken for a damaged one. Layout 1 begins with 0.
 */
const layout = 3

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
  'termLengths',
  'termTexts',
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
  termLengths: 2,
  termTexts: 2,
}

type SnapshotHeader = Omit<ScopeIndexSnapshot, 'messageIndex'> & {
  readonly names: readonly string[]
  readonly lengths: readonly number[]
}

const prefixBytes = 8
/** Bytes that are copied or added to a checksum between two pauses: about a millisecond of work. */
const bytesPerStep = 2_000_000
/** Cost of such a step, in characters. */
const stepWork = 1_024

/** Encodes the search index of a session or scope, uncompressed, in a buffer of its own. */
export function* encodeSnapshotInSteps({ messageIndex, ...rest }: ScopeIndexSnapshot): Work<Uint8Array> {
  const lengths = columns.map((name) => messageIndex[name].length)
  const header: SnapshotHeader = { ...rest, names: messageIndex.names, lengths }
  const headerText = Buffer.from(JSON.stringify(header))
  // The prefix has 8 bytes, which aligns the 8-byte columns. The checksum is computed while its own field is 0.
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32LE(headerText.length)
  const numbers = columns.map((name) => {
    const { buffer, byteOffset, byteLength } = messageIndex[name]
    return new Uint8Array(buffer, byteOffset, byteLength)
  })
  const body = yield* joinInSteps([prefix, ...numbers, headerText])
  body.writeUInt32LE(yield* checksumInSteps(body), 4)
  return body
}

/** Copies bytes into one buffer, which begins at offset 0 of its memory. */
function* joinInSteps(parts: readonly Uint8Array[]): Work<Buffer> {
  const joined = Buffer.allocUnsafeSlow(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts)
    for (let from = 0; from < part.length; from += bytesPerStep) {
      const piece = part.subarray(from, from + bytesPerStep)
      joined.set(piece, at)
      at += piece.length
      yield stepWork
    }
  return joined
}

function* checksumInSteps(body: Uint8Array): Work<number> {
  let checksum = layout
  for (let from = 0; from < body.length; from += bytesPerStep) {
    checksum = crc32(body.subarray(from, from + bytesPerStep), checksum)
    yield stepWork
  }
  return checksum
}

/** Compresses an encoded snapshot; runs in the worker thread, because it is slow. */
export const compressSnapshot = (bytes: Uint8Array): Uint8Array => zlib.zstdCompressSync(bytes)

/** Compresses an encoded snapshot in a thread of Node's pool. */
export const compressInBackground: (bytes: Uint8Array) => Promise<Uint8Array> = promisify(zlib.zstdCompress)

/** Decompresses in a thread of Node's pool. `zstdDecompress` would join the chunks at once. */
async function decompress(bytes: Uint8Array, pause: Pause): Promise<Buffer> {
  const stream = zlib.createZstdDecompress({ chunkSize: bytesPerStep })
  stream.end(bytes)
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return runInSlices(joinInSteps(chunks), pause)
}

/** Decompresses and decodes a snapshot; undefined if there is none, it is damaged or it has another layout. */
export async function decodeSnapshot(
  bytes: Uint8Array | undefined,
  pause: Pause,
): Promise<ScopeIndexSnapshot | undefined> {
  if (bytes === undefined) return undefined
  try {
    const body = await decompress(bytes, pause)
    const [headerLength, checksum] = [body.readUInt32LE(0), body.readUInt32LE(4)]
    body.writeUInt32LE(0, 4)
    if ((await runInSlices(checksumInSteps(body), pause)) !== checksum) return undefined
    const header = JSON.parse(body.subarray(body.length - headerLength).toString()) as SnapshotHeader
    const { names, lengths, ...rest } = header
    return { ...rest, messageIndex: { names, ...readColumns(body, lengths) } }
  } catch {
    return undefined
  }
}

function readColumns(body: Buffer, lengths: readonly number[]): Omit<LexicalIndexSnapshot, 'names'> {
  const { buffer } = body
  let offset = prefixBytes
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
  return Object.fromEntries(arrays) as Omit<LexicalIndexSnapshot, 'names'>
}
