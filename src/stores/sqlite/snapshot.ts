import { promisify } from 'node:util'
import { crc32, zstdCompressSync, zstdDecompress } from 'node:zlib'
import type { HeldParts } from '../../search/held.ts'
import type { IndexParts } from '../../search/texts.ts'

/** Columns of numbers in the order in which they lie one after the other; the widest first, so that each begins where it may. */
const columns = [
  'times',
  'sequences',
  'owners',
  'lengths',
  'speakers',
  'sizes',
  'places',
  'counts',
] as const satisfies readonly (keyof IndexParts)[]
const widths: Readonly<Record<(typeof columns)[number], number>> = {
  times: 8,
  owners: 4,
  sequences: 8,
  lengths: 4,
  speakers: 4,
  sizes: 4,
  places: 4,
  counts: 2,
}

type Heading = Omit<HeldParts, 'said'> & {
  readonly names: readonly string[]
  readonly terms: readonly string[]
  readonly lengths: readonly number[]
}

/** What is held of a session or scope, as bytes. */
export function packed({ said, ...rest }: HeldParts): Uint8Array {
  const heading: Heading = {
    ...rest,
    names: said.names,
    terms: said.terms,
    lengths: columns.map((name) => said[name].length),
  }
  const text = Buffer.from(JSON.stringify(heading))
  const numbers = columns.map((name) => new Uint8Array(said[name].buffer, said[name].byteOffset, said[name].byteLength))
  const size = Buffer.alloc(8)
  size.writeUInt32LE(text.length)
  // Numbers begin at a multiple of eight, as the widest of them must.
  const body = Buffer.concat([size, ...numbers, text])
  size.writeUInt32LE(crc32(body), 4)
  body.set(size)
  return body
}

/** As it lies in the file; to be called where nobody waits. */
export const compressed = (bytes: Uint8Array): Uint8Array => zstdCompressSync(bytes)

const decompress = promisify(zstdDecompress)

/** What was packed and compressed; undefined if there is nothing, or it is damaged, so that it is made anew. */
export async function unpacked(bytes: Uint8Array | undefined): Promise<HeldParts | undefined> {
  if (bytes === undefined) return undefined
  try {
    const body = await decompress(bytes)
    const [length, sum] = [body.readUInt32LE(0), body.readUInt32LE(4)]
    body.writeUInt32LE(0, 4)
    if (crc32(body) !== sum) return undefined
    const { names, terms, lengths, ...rest } = JSON.parse(body.subarray(body.length - length).toString()) as Heading
    return { ...rest, said: { names, terms, ...columnsOf(body, lengths) } }
  } catch {
    return undefined
  }
}

function columnsOf(body: Buffer, lengths: readonly number[]): Omit<IndexParts, 'names' | 'terms'> {
  // A buffer of its own begins where the widest numbers may.
  const { buffer } = new Uint8Array(body)
  let at = 8
  const made = columns.map((name, place) => {
    const length = lengths[place] as number
    const [start, width] = [at, widths[name]]
    at += length * width
    return [
      name,
      width === 8
        ? new Float64Array(buffer, start, length)
        : width === 4
          ? new Uint32Array(buffer, start, length)
          : new Uint16Array(buffer, start, length),
    ]
  })
  return Object.fromEntries(made) as Omit<IndexParts, 'names' | 'terms'>
}
