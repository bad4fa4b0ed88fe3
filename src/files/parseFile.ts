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
  if (kind === 'pdf') return { ...(await parsePdf(upload.bytes, limits)), hasHeadings: false }
  if (kind === 'docx') return { text: await parseDocx(upload.bytes, limits), hasHeadings: true, pages: [] }
  const text = await parseText(kind, decodeText(upload.bytes, parseCharset(upload.type)), limits.maxCharacters)
  return { text, hasHeadings: kind === 'markdown' || kind === 'html', pages: [] }
}

async function parseText(kind: FileKind, text: string, maxCharacters: number): Promise<string> {
  if (kind === 'html') return parseHtml(text, maxCharacters)
  const parsed =
    kind === 'json'
      ? parseJsonDocument(text, maxCharacters)
      : kind === 'csv'
        ? await parseCsv(text, maxCharacters)
        : undefined
  if (parsed !== undefined) return parsed
  // Invalid JSON and CSV are treated as plain text.
  const buffer = new TextBuffer(maxCharacters)
  buffer.write(text)
  return buffer.text
}
