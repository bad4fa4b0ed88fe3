import { inflateRawSync } from 'node:zlib'
import mammoth from 'mammoth'
import { type FileLimits, unreadableFileError } from '../limits.ts'
import { parseHtml } from './html.ts'

/** The archive interface that mammoth accepts instead of bytes, although its types do not declare it. */
type MammothArchive = {
  exists(name: string): boolean
  read(name: string, encoding?: string): Promise<string | Uint8Array>
}

/** Extracts the text of a DOCX, with headings, lists and tables in Markdown. */
export async function parseDocx(bytes: Uint8Array, limits: FileLimits): Promise<string> {
  const archive = new ZipArchive(bytes, limits.maxUnpackedBytes)
  const file: MammothArchive = {
    exists: (name) => archive.has(name),
    read: async (name, encoding) => {
      const content = archive.read(name)
      if (encoding === undefined) return content
      return encoding === 'base64' ? content.toString('base64') : new TextDecoder(encoding).decode(content)
    },
  }
  const { value } = await mammoth.convertToHtml({ file } as unknown as { buffer: Buffer }, {
    // Skips images, which would otherwise be decompressed.
    convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
    externalFileAccess: false,
  })
  return parseHtml(value, limits.maxCharacters)
}

type ZipEntry = { readonly method: number; readonly compressedSize: number; readonly headerOffset: number }

// Layout of a ZIP archive (APPNOTE.TXT 4.3), all numbers little endian. Sizes are those of the fixed fields. Local
// header:      26 name length, 28 extra length Directory entry:   10 method, 20 compressed size, 28 name length, 30
// extra length, 32 comment length, 42 header offset End of directory:  10 number of entries, 16 offset of the directory
const localHeaderBytes = 30
const directoryEntryBytes = 46
const endRecordBytes = 22
const directoryEntrySignature = 0x02014b50
const endRecordSignature = 0x06054b50

const storedMethod = 0
const deflateMethod = 8

/** Reads the entries of a ZIP archive and limits their total decompressed size; declared sizes are not trusted. */
class ZipArchive {
  private readonly bytes: Buffer
  private readonly entries: ReadonlyMap<string, ZipEntry>
  private remainingBytes: number

  constructor(bytes: Uint8Array, maxUnpackedBytes: number) {
    this.bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    this.entries = readDirectory(this.bytes)
    this.remainingBytes = maxUnpackedBytes
  }

  has(name: string): boolean {
    return this.entries.has(name)
  }

  read(name: string): Buffer {
    const entry = this.entries.get(name)
    if (entry === undefined) throw unreadableFileError(`has no part ${name}. Save it again as DOCX`)
    const { method, compressedSize, headerOffset } = entry
    const nameLength = this.bytes.readUInt16LE(headerOffset + 26)
    const extraLength = this.bytes.readUInt16LE(headerOffset + 28)
    const start = headerOffset + localHeaderBytes + nameLength + extraLength
    const unpacked = unpack(method, this.bytes.subarray(start, start + compressedSize), this.remainingBytes)
    this.remainingBytes -= unpacked.length
    return unpacked
  }
}

function unpack(method: number, packed: Buffer, maxBytes: number): Buffer {
  if (method !== storedMethod && method !== deflateMethod)
    throw unreadableFileError('uses an unsupported compression method. Save it again as DOCX')
  try {
    if (method === deflateMethod) return inflateRawSync(packed, { maxOutputLength: Math.max(1, maxBytes) })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw error
  }
  if (method === deflateMethod || packed.length > maxBytes)
    throw unreadableFileError('is too large when decompressed. Split it into smaller files')
  return packed
}

/** Reads the central directory; a comment may follow its end record. */
function readDirectory(bytes: Buffer): ReadonlyMap<string, ZipEntry> {
  const entries = new Map<string, ZipEntry>()
  let endRecord = bytes.length - endRecordBytes
  while (endRecord >= 0 && bytes.readUInt32LE(endRecord) !== endRecordSignature) endRecord--
  if (endRecord < 0) throw unreadableFileError('is damaged: its end is missing. Upload it again')
  let offset = bytes.readUInt32LE(endRecord + 16)
  for (let remaining = bytes.readUInt16LE(endRecord + 10); remaining > 0; remaining--) {
    if (bytes.readUInt32LE(offset) !== directoryEntrySignature)
      throw unreadableFileError('is damaged: its table of contents is broken. Save it again as DOCX')
    const nameLength = bytes.readUInt16LE(offset + 28)
    const extraLength = bytes.readUInt16LE(offset + 30)
    const commentLength = bytes.readUInt16LE(offset + 32)
    const nameEnd = offset + directoryEntryBytes + nameLength
    entries.set(bytes.toString('utf8', offset + directoryEntryBytes, nameEnd), {
      method: bytes.readUInt16LE(offset + 10),
      compressedSize: bytes.readUInt32LE(offset + 20),
      headerOffset: bytes.readUInt32LE(offset + 42),
    })
    offset = nameEnd + extraLength + commentLength
  }
  return entries
}
