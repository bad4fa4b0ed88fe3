import { isBlank } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { decoded } from './decode.ts'
import { charsetOf, type Kind, type Upload } from './kind.ts'
import type { FileLimits } from './limits.ts'
import { csvText } from './read/csv.ts'
import { docxText } from './read/docx.ts'
import { htmlText } from './read/html.ts'
import { jsonText } from './read/json.ts'
import { Paper } from './read/paper.ts'
import { pdfText } from './read/pdf.ts'
import { unreadable } from './unreadable.ts'

/** What was read of a file: its text, whether lines with `#` in it are headings, and where its pages begin, if it has any. */
export type Document = { readonly text: string; readonly hasHeadings: boolean; readonly pages: readonly number[] }

/** Reads a file of any kind; whatever goes wrong ends in an error that says what to do. For a process of its own. */
export async function read(kind: Kind, file: Upload, limits: FileLimits): Promise<Document> {
  try {
    const document = await documentOf(kind, file, limits)
    if (isBlank(document.text))
      throw unreadable('holds no text. If it is a scan, run it through text recognition first')
    return document
  } catch (error) {
    if (error instanceof MemoryError) throw error
    throw unreadable(
      'is damaged, or made to do damage, and cannot be read. Save it again in its own program, or as text',
      error,
    )
  }
}

async function documentOf(kind: Kind, file: Upload, limits: FileLimits): Promise<Document> {
  if (kind === 'pdf') return { ...(await pdfText(file.bytes, limits)), hasHeadings: false }
  if (kind === 'docx') return { text: await docxText(file.bytes, limits), hasHeadings: true, pages: [] }
  const text = await textOf(kind, decoded(file.bytes, charsetOf(file.type)), limits.characters)
  return { text, hasHeadings: kind === 'markdown' || kind === 'html', pages: [] }
}

async function textOf(kind: Kind, text: string, most: number): Promise<string> {
  if (kind === 'html') return htmlText(text, most)
  // What is not what it is called is still a text.
  const found = kind === 'json' ? jsonText(text, most) : kind === 'csv' ? await csvText(text, most) : undefined
  if (found !== undefined) return found
  const paper = new Paper(most)
  paper.write(text)
  return paper.text
}
