import { decoded, isTextLike } from './decode.ts'
import { unreadable } from './unreadable.ts'

/** What a file is read as. */
export type Kind = 'text' | 'markdown' | 'html' | 'json' | 'csv' | 'pdf' | 'docx'

/** A file as it comes; `type` is what the client says it is, with parameters such as `charset`. */
export type Upload = { readonly name: string; readonly type?: string; readonly bytes: Uint8Array }

/** The media type each kind is listed with. */
export const mediaTypes: Readonly<Record<Kind, string>> = {
  text: 'text/plain',
  markdown: 'text/markdown',
  html: 'text/html',
  json: 'application/json',
  csv: 'text/csv',
  pdf: 'application/pdf',
  docx: 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
}

/** Texts that mean something by their name, and by the type a client tells. */
const endings: Readonly<Record<string, Kind>> = {
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
const types: Readonly<Record<string, Kind>> = {
  'text/markdown': 'markdown',
  'text/html': 'html',
  'application/xhtml+xml': 'html',
  'application/json': 'json',
  'text/csv': 'csv',
  'text/tab-separated-values': 'csv',
}

const readable = 'text, Markdown, HTML, JSON, CSV, PDF and DOCX are read'

/**
 * What a file is read as. PDF and DOCX are known by their bytes, texts by name and type; a text nobody knows is plain text.
 *
 * @example
 * kindOf({ name: 'prices.tsv', bytes }) // 'csv'
 */
export function kindOf({ name, type = '', bytes }: Upload): Kind {
  const start = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, 1_024)).toString('latin1')
  if (start.includes('%PDF-')) return 'pdf'
  if (start.startsWith('PK\u0003\u0004')) {
    // The names of its parts stand in an archive as they are.
    if (Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).includes('word/document')) return 'docx'
    throw unreadable(`is an archive and not a DOCX; ${readable}. Upload what is in it`)
  }
  if (!isTextLike(bytes)) throw unreadable(`is none that can be read: ${readable}. Convert it to one of these`)
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? ''
  const told = type.split(';')[0]?.trim().toLowerCase() ?? ''
  const known =
    (Object.hasOwn(endings, ending) ? endings[ending] : undefined) ??
    (Object.hasOwn(types, told) ? types[told] : undefined)
  return known ?? (/^\s*<(?:!doctype\s+html|html)\b/i.test(decoded(bytes.subarray(0, 1_024))) ? 'html' : 'text')
}

/** The encoding a media type tells: `latin1` of `text/plain; charset=latin1`. */
export const charsetOf = (type: string | undefined): string | undefined =>
  /;\s*charset="?([\w:.-]+)/i.exec(type ?? '')?.[1]
