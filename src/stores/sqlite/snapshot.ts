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
 * Typed arrays of a search index. Layout of an uncompressed snapshot: length of the JSON lines (4 bytes, little
 * endian), CRC-32 of everything else (4 bytes), the columns in this order, the JSON lines. The widest columns come
 * first, so that each is aligned. The first line is the header; a line of each session and those of its derived entries
 * follow.
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

type SnapshotSession = ScopeIndexSnapshot['sessions'][number]
type HeaderLine = Omit<ScopeIndexSnapshot, 'messageIndex' | 'sessions'> & {
  readonly names: readonly string[]
  readonly lengths: readonly number[]
}
type SessionLine = Omit<SnapshotSession, 'derived'> & { readonly derivedCount: number }

const prefixBytes = 8
/** Bytes that are copied or added to a checksum between two pauses: about a millisecond of work. */
const bytesPerStep = 2_000_000
/** Cost of such a step, in characters. */
const stepWork = 1_024
/** Cost of a character of JSON, in characters. */
const jsonWork = 1 / 16
/** Characters of JSON lines that are encoded as UTF-8 at once. */
const maxPartCharacters = 65_536
const lineEnd = '\n'

/** Encodes the search index of a session or scope, uncompressed, in a buffer of its own. */
export function* encodeSnapshotInSteps(snapshot: ScopeIndexSnapshot): Work<Uint8Array> {
  const { messageIndex } = snapshot
  const lines = yield* encodeLinesInSteps(listLines(snapshot))
  // The prefix has 8 bytes, which aligns the 8-byte columns. The checksum is computed while its own field is 0.
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32LE(lines.reduce((sum, { length }) => sum + length, 0))
  const numbers = columns.map((name) => {
    const { buffer, byteOffset, byteLength } = messageIndex[name]
    return new Uint8Array(buffer, byteOffset, byteLength)
  })
  const body = yield* joinInSteps([prefix, ...numbers, ...lines])
  body.writeUInt32LE(yield* checksumInSteps(body), 4)
  return body
}

function* listLines({ stamp, lineage, sessions, messageIndex }: ScopeIndexSnapshot): Generator<unknown> {
  const { names } = messageIndex
  const lengths = columns.map((name) => messageIndex[name].length)
  yield { stamp, lineage, names, lengths } satisfies HeaderLine
  for (const { derived, ...session } of sessions) {
    yield { ...session, derivedCount: derived.length } satisfies SessionLine
    yield* derived
  }
}

function* encodeLinesInSteps(values: Iterable<unknown>): Work<readonly Buffer[]> {
  const parts: Buffer[] = []
  let text = ''
  for (const value of values) {
    const line = JSON.stringify(value) + lineEnd
    text += line
    yield line.length * jsonWork
    if (text.length < maxPartCharacters) continue
    parts.push(Buffer.from(text))
    text = ''
  }
  return [...parts, Buffer.from(text)]
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
    const [linesLength, checksum] = [body.readUInt32LE(0), body.readUInt32LE(4)]
    body.writeUInt32LE(0, 4)
    if ((await runInSlices(checksumInSteps(body), pause)) !== checksum) return undefined
    const lines = await runInSlices(parseLinesInSteps(body.subarray(body.length - linesLength)), pause)
    const { names, lengths, ...rest } = lines[0] as HeaderLine
    return { ...rest, sessions: readSessions(lines), messageIndex: { names, ...readColumns(body, lengths) } }
  } catch {
    return undefined
  }
}

function* parseLinesInSteps(bytes: Buffer): Work<readonly unknown[]> {
  const lines: unknown[] = []
  for (let [from, end] = [0, 0]; from < bytes.length; from = end + 1) {
    end = bytes.indexOf(lineEnd, from)
    lines.push(JSON.parse(bytes.toString('utf8', from, end)))
    yield (end - from) * jsonWork
  }
  return lines
}

function readSessions(lines: readonly unknown[]): readonly SnapshotSession[] {
  const sessions: SnapshotSession[] = []
  for (let at = 1; at < lines.length; ) {
    const { derivedCount, ...session } = lines[at++] as SessionLine
    sessions.push({ ...session, derived: lines.slice(at, at + derivedCount) as SnapshotSession['derived'] })
    at += derivedCount
  }
  return sessions
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
