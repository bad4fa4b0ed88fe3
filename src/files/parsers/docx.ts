import mammoth from 'mammoth'
import type { FileLimits } from '../limits.ts'
import { parseHtml } from './html.ts'
import { ZipArchive } from './unzip.ts'

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
