import { inflateRawSync } from 'node:zlib'
import { unreadable } from '../unreadable.ts'

type Part = { readonly method: number; readonly size: number; readonly at: number }

const ending = 0x06054b50
const entry = 0x02014b50
const fields = { ending: 22, entry: 46, local: 30 }

/**
 * An archive whose parts unfold to no more bytes than are allowed for all of them together: what its own tables say about
 * their sizes is not believed.
 */
export class Archive {
  private readonly bytes: Buffer
  private readonly parts: ReadonlyMap<string, Part>
  private room: number

  constructor(bytes: Uint8Array, most: number) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.parts = partsOf(this.bytes)
    this.room = most
  }

  has(name: string): boolean {
    return this.parts.has(name)
  }

  read(name: string): Buffer {
    const part = this.parts.get(name)
    if (part === undefined) throw unreadable(`has no ${name} in it. Save it again as DOCX`)
    const { method, size, at } = part
    const start = at + fields.local + this.bytes.readUInt16LE(at + 26) + this.bytes.readUInt16LE(at + 28)
    const unfolded = unfold(method, this.bytes.subarray(start, start + size), this.room)
    this.room -= unfolded.length
    return unfolded
  }
}

function unfold(method: number, packed: Buffer, most: number): Buffer {
  if (method !== 0 && method !== 8) throw unreadable('is packed in a way that is not known here. Save it again as DOCX')
  try {
    if (method === 8) return inflateRawSync(packed, { maxOutputLength: Math.max(1, most) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw error
  }
  if (method === 8 || packed.length > most)
    throw unreadable('unfolds to more than may be read. Split it into smaller ones')
  return packed
}

/** The table at the end of an archive, behind which there may be a comment. */
function partsOf(bytes: Buffer): ReadonlyMap<string, Part> {
  const parts = new Map<string, Part>()
  let table = bytes.length - fields.ending
  while (table >= 0 && bytes.readUInt32LE(table) !== ending) table--
  if (table < 0) throw unreadable('is damaged: its end is missing. Upload it again')
  const count = bytes.readUInt16LE(table + 10)
  for (let at = bytes.readUInt32LE(table + 16), left = count; left > 0; left--) {
    if (bytes.readUInt32LE(at) !== entry)
      throw unreadable('is damaged: its table of contents is broken. Save it again as DOCX')
    const [name, extra, comment] = [
      bytes.readUInt16LE(at + 28),
      bytes.readUInt16LE(at + 30),
      bytes.readUInt16LE(at + 32),
    ]
    const text = bytes.toString('utf8', at + fields.entry, at + fields.entry + name)
    parts.set(text, {
      method: bytes.readUInt16LE(at + 10),
      size: bytes.readUInt32LE(at + 20),
      at: bytes.readUInt32LE(at + 42),
    })
    at += fields.entry + name + extra + comment
  }
  return parts
}
