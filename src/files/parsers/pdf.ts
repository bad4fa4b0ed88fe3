import { getDocumentProxy } from 'unpdf'
import { type FileLimits, TextBuffer, unreadableFileError } from '../limits.ts'

/** Extracts the text of a PDF and the offset of each page in it. */
export async function parsePdf(
  bytes: Uint8Array,
  limits: FileLimits,
): Promise<{ readonly text: string; readonly pages: readonly number[] }> {
  const document = await openDocument(bytes)
  try {
    if (document.numPages > limits.maxPages)
      throw unreadableFileError(
        `has ${document.numPages.toLocaleString('en')} pages; the limit is ${limits.maxPages.toLocaleString('en')}. Split it into smaller files`,
      )
    const buffer = new TextBuffer(limits.maxCharacters)
    const pages: number[] = []
    for (let number = 1; number <= document.numPages; number++) {
      const page = await document.getPage(number)
      const { items } = await page.getTextContent()
      const text = items.map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : '')).join('')
      pages.push(buffer.length)
      if (/\S/.test(text)) buffer.write(`${joinHyphenatedWords(text).trim()}\n\n`)
      page.cleanup()
    }
    return { text: buffer.text, pages }
  } finally {
    await document.loadingTask.destroy()
  }
}

async function openDocument(bytes: Uint8Array): ReturnType<typeof getDocumentProxy> {
  try {
    // Converted, because the library rejects Buffers.
    return await getDocumentProxy(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length), {
      stopAtErrors: false,
      verbosity: 0,
    })
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException')
      throw unreadableFileError('is protected by a password. Upload it without one', error)
    throw error
  }
}

/** Joins words that are hyphenated at the end of a line, so that searches find them. */
const joinHyphenatedWords = (text: string): string => text.replace(/(\p{Ll})-\n(?=\p{Ll})/gu, '$1')
