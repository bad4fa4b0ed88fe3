import { isBlank } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { decodeText, type FileKind, parseCharset, type Upload } from './kind.ts'
import { type FileLimits, TextBuffer, unreadableFileError } from './limits.ts'
import { parseCsv } from './parsers/csv.ts'
import { parseDocx } from './parsers/docx.ts'
import { parseHtml } from './parsers/html.ts'
import { parseJsonDocument } from './parsers/json.ts'
import { parsePdf } from './parsers/pdf.ts'

/** The text of a parsed file. */
export type ParsedDocument = {
  readonly text: string
  /** True when lines that start with `#` are headings. */
  readonly hasHeadings: boolean
  /** Offsets at which pages begin; empty when the format has no pages. */
  readonly pages: readonly number[]
  /** True when the lines are values of JSON or rows of a table, false when the file turned out to be plain text. */
  readonly hasFields: boolean
}

/** Parses a file of any kind. Runs in the reader process, because a hostile file can exhaust time and memory. */
export async function parseFile(kind: FileKind, upload: Upload, limits: FileLimits): Promise<ParsedDocument> {
  try {
    const document = await parseByKind(kind, upload, limits)
    if (isBlank(document.text))
      throw unreadableFileError('holds no text. If it is a scan, run it through text recognition first')
    return document
  } catch (error) {
    if (error instanceof MemoryError) throw error
    throw unreadableFileError('is damaged or malicious and cannot be read. Save it again, or convert it to text', error)
  }
}

async function parseByKind(kind: FileKind, upload: Upload, limits: FileLimits): Promise<ParsedDocument> {
  const plain = { hasHeadings: false, pages: [], hasFields: false }
  if (kind === 'pdf') return { ...plain, ...(await parsePdf(upload.bytes, limits)) }
  if (kind === 'docx') return { ...plain, text: await parseDocx(upload.bytes, limits), hasHeadings: true }
  const { maxCharacters } = limits
  const text = decodeText(upload.bytes, parseCharset(upload.type))
  if (kind === 'html') return { ...plain, text: parseHtml(text, maxCharacters), hasHeadings: true }
  const parsed =
    kind === 'json'
      ? parseJsonDocument(text, maxCharacters)
      : kind === 'csv'
        ? await parseCsv(text, maxCharacters)
        : undefined
  if (parsed !== undefined) return { ...plain, text: parsed, hasFields: true }
  // Invalid JSON and CSV are treated as plain text.
  const buffer = new TextBuffer(maxCharacters)
  buffer.write(text)
  return { ...plain, text: buffer.text, hasHeadings: kind === 'markdown' }
}
