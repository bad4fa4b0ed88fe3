import { runSync, type Work } from '../domain/work.ts'
import { unreadableFileError } from './limits.ts'

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

/** Byte order marks. */
const byteOrderMarks: readonly (readonly [encoding: string, ...mark: readonly number[]])[] = [
  ['utf-8', 0xef, 0xbb, 0xbf],
  ['utf-16le', 0xff, 0xfe],
  ['utf-16be', 0xfe, 0xff],
]

/** Bytes decoded at a time. */
const decodedBytes = 65_536
/** Bytes examined by `isTextLike`. */
const textSampleBytes = 65_536
/** Bytes examined for UTF-16 without a byte order mark. */
const utf16SampleBytes = 1_024

/**
 * Decodes text in the encoding of its byte order mark, otherwise in `charset`, otherwise in UTF-16 if it looks like it,
 * otherwise in UTF-8. Invalid bytes become U+FFFD; line ends become LF.
 *
 * @example
 * decodeText(Buffer.from('\ufeffcafé\r\n')) // 'café\n'
 */
export const decodeText = (bytes: Uint8Array, charset?: string): string => runSync(decodeTextInSteps(bytes, charset))

/** `decodeText` as interruptible work. */
export function* decodeTextInSteps(bytes: Uint8Array, charset?: string): Work<string> {
  const marked = byteOrderMarks.find(([, ...mark]) => mark.every((byte, index) => bytes[index] === byte))?.[0]
  const decoder = createDecoder(marked ?? charset) ?? createDecoder(detectUtf16(bytes)) ?? new TextDecoder()
  const pieces: string[] = []
  let endsWithReturn = false
  for (let start = 0; start < bytes.length; start += decodedBytes) {
    const piece = decoder.decode(bytes.subarray(start, start + decodedBytes), { stream: true })
    // The line feed of a line end that the pieces divide.
    pieces.push((endsWithReturn && piece.startsWith('\n') ? piece.slice(1) : piece).replace(/\r\n?/g, '\n'))
    if (piece !== '') endsWithReturn = piece.endsWith('\r')
    yield piece.length
  }
  pieces.push(decoder.decode())
  return pieces.join('')
}

/** Checks for text in any encoding: at most 1 % control characters and 30 % undecodable ones. */
function isTextLike(bytes: Uint8Array): boolean {
  // The sample may end inside a character, which adds at most one undecodable character.
  const sample = decodeText(bytes.subarray(0, textSampleBytes))
  let controls = 0
  let undecodable = 0
  for (let index = 0; index < sample.length; index++) {
    const code = sample.charCodeAt(index)
    if (code === 0xfffd) undecodable++
    else if (code < 32 && !isLayoutControl(code)) controls++
  }
  return controls <= sample.length * 0.01 && undecodable <= sample.length * 0.3
}

/** Checks for tabs, line ends, page breaks and the escape character of terminal colours. */
const isLayoutControl = (code: number): boolean => (code >= 9 && code <= 13) || code === 27

/** Detects UTF-16 without a byte order mark: in Latin text every other byte is zero. */
function detectUtf16(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  const length = Math.min(bytes.length & ~1, utf16SampleBytes)
  let evenZeros = 0
  let oddZeros = 0
  for (let index = 0; index < length; index++) {
    if (bytes[index] !== 0) continue
    if (index % 2 === 0) evenZeros++
    else oddZeros++
  }
  const threshold = length * 0.2
  if (oddZeros > threshold && evenZeros < threshold / 4) return 'utf-16le'
  return evenZeros > threshold && oddZeros < threshold / 4 ? 'utf-16be' : undefined
}

/** Creates a decoder; returns undefined for unknown encodings, because a client may declare a wrong one. */
function createDecoder(encoding: string | undefined): TextDecoder | undefined {
  try {
    return encoding === undefined ? undefined : new TextDecoder(encoding)
  } catch {
    return undefined
  }
}
