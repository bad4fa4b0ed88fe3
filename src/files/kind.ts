import { decodeText, isTextLike } from './decode.ts'
import { unreadableFileError } from './errors.ts'

/** Formats that can be parsed. */
export type FileKind = 'text' | 'markdown' | 'html' | 'json' | 'csv' | 'pdf' | 'docx'

/** An uploaded file; `type` is the media type the client declares, with parameters such as `charset`. */
export type Upload = { readonly name: string; readonly type?: string; readonly bytes: Uint8Array }

/** Media type under which each kind is listed. */
export const mediaTypes: Readonly<Record<FileKind, string>> = {
  text: 'text/plain',
  markdown: 'text/markdown',
  html: 'text/html',
  json: 'application/json',
  csv: 'text/csv',
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
}

const kindByExtension: Readonly<Record<string, FileKind>> = {
  md: 'markdown',
  markdown: 'markdown',
  html: 'html',
  htm: 'html',
  xhtml: 'html',
  json: 'json',
  geojson: 'json',
  csv: 'csv',
  tsv: 'csv',
  txt: 'text',
}
const kindByMediaType: Readonly<Record<string, FileKind>> = {
  'text/markdown': 'markdown',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'application/json': 'json',
  'text/csv': 'csv',
  'text/tab-separated-values': 'csv',
}

const supportedFormats = 'text, Markdown, HTML, JSON, CSV, PDF and DOCX'

/**
 * Detects the kind of a file: PDF and DOCX by their bytes, text formats by file extension, then by declared media type.
 * Other text is plain text.
 *
 * @throws MemoryError `bad-message` for binary files of other formats.
 *
 * @example
 * detectKind({ name: 'prices.tsv', bytes }) // 'csv'
 */
export function detectKind({ name, type = '', bytes }: Upload): FileKind {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 1_024)).toString('latin1')
  if (start.includes('%PDF-')) return 'pdf'
  if (start.startsWith('PK\u0003\u0004')) {
    // The names of the parts are not compressed in a ZIP archive.
    if (Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes('word/document')) return 'docx'
    throw unreadableFileError(
      `is an archive but not a DOCX. Supported formats: ${supportedFormats}. Upload its contents instead`,
    )
  }
  if (!isTextLike(bytes))
    throw unreadableFileError(`has an unsupported format. Convert it to one of: ${supportedFormats}`)
  const extension = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  const mediaType = type.split(';')[0]?.trim().toLowerCase() ?? ''
  const kind =
    (Object.hasOwn(kindByExtension, extension) ? kindByExtension[extension] : undefined) ??
    (Object.hasOwn(kindByMediaType, mediaType) ? kindByMediaType[mediaType] : undefined)
  return kind ?? (/^\s*<(?:!doctype\s+html|html)\b/i.test(decodeText(bytes.subarray(0, 1_024))) ? 'html' : 'text')
}

/** Parses the charset parameter of a media type: `latin1` in `text/plain; charset=latin1`. */
export const parseCharset = (type: string | undefined): string | undefined =>
  /;\s*charset="?([\w:.-]+)/i.exec(type ?? '')?.[1]
