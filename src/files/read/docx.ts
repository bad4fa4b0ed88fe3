import mammoth from 'mammoth'
import type { FileLimits } from '../limits.ts'
import { htmlText } from './html.ts'
import { Archive } from './unzip.ts'

/** What mammoth asks of an archive; it takes one in place of bytes, though its types do not say so. */
type Opened = {
  exists(name: string): boolean
  read(name: string, encoding?: string): Promise<string | Uint8Array>
}

/** The text of a DOCX, with headings, lists and tables as Markdown writes them. */
export async function docxText(bytes: Uint8Array, limits: FileLimits): Promise<string> {
  const archive = new Archive(bytes, limits.unpackedBytes)
  const file: Opened = {
    exists: (name) => archive.has(name),
    read: async (name, encoding) => {
      const part = archive.read(name)
      return encoding === undefined
        ? part
        : encoding === 'base64'
          ? part.toString('base64')
          : new TextDecoder(encoding).decode(part)
    },
  }
  const { value } = await mammoth.convertToHtml({ file } as unknown as { buffer: Buffer }, {
    // Pictures say nothing here, and would be read whole.
    convertImage: mammoth.images.imgElement(async () => ({ src: '' })),
    externalFileAccess: false,
  })
  return htmlText(value, limits.characters)
}
