import { getDocumentProxy } from 'unpdf'
import type { FileLimits } from '../limits.ts'
import { unreadable } from '../unreadable.ts'
import { Paper } from './paper.ts'

/** The text of a PDF, and where in it each page begins. */
export async function pdfText(
  bytes: Uint8Array,
  limits: FileLimits,
): Promise<{ readonly text: string; readonly pages: readonly number[] }> {
  const document = await opened(bytes)
  try {
    if (document.numPages > limits.pages)
      throw unreadable(
        `has ${document.numPages.toLocaleString('en')} pages; at most ${limits.pages.toLocaleString('en')} are read. Split it into smaller ones`,
      )
    const paper = new Paper(limits.characters)
    const pages: number[] = []
    for (let number = 1; number <= document.numPages; number++) {
      const page = await document.getPage(number)
      const { items } = await page.getTextContent()
      const text = items.map((item) => ('str' in item ? `${item.str}${item.hasEOL ? '\n' : ''}` : '')).join('')
      pages.push(paper.length)
      if (/\S/.test(text)) paper.write(`${unbroken(text).trim()}\n\n`)
      page.cleanup()
    }
    return { text: paper.text, pages }
  } finally {
    await document.loadingTask.destroy()
  }
}

async function opened(bytes: Uint8Array): ReturnType<typeof getDocumentProxy> {
  try {
    // It refuses a Buffer, which is one of these as well.
    return await getDocumentProxy(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length), {
      stopAtErrors: false,
      verbosity: 0,
    })
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException')
      throw unreadable('is protected by a password. Upload it without one', error)
    throw error
  }
}

/** A word that was broken at the end of a line is found as one. */
const unbroken = (text: string): string => text.replace(/(\p{Ll})-\n(?=\p{Ll})/gu, '$1')
