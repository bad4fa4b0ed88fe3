import type { Work } from '../../domain/work.ts'
import type { Span } from './injectionCheck.ts'

const delimiter = /^\s*(?:"{3,}|'{3,}|-{3,}|={3,}|\*{3,}|_{3,}|«{2,}|»{2,})\s*$/
const quotedLine = /^\s{0,3}>\s?\S/
/** Cost of a line, in characters. */
const lineWork = 4
/** Shorter quotations are single words or titles. */
const minQuotationChars = 25
const quotation = /"[^"\n]{25,600}"|“[^“”\n]{25,600}”|„[^„“”\n]{25,600}[“”]|«[^«»\n]{25,600}»/g

/**
 * Finds text that a speaker pasted or quoted: between two lines of quotation marks, dashes or the like, lines that
 * begin with `>`, and quotations in a sentence. It is not what the speaker says.
 */
export function* findQuotations(content: string): Work<readonly Span[]> {
  const spans: Span[] = []
  let open: { readonly mark: string; readonly start: number } | undefined
  for (let start = 0; start <= content.length; ) {
    const newline = content.indexOf('\n', start)
    const end = newline < 0 ? content.length : newline
    const line = content.slice(start, Math.min(end, start + 200))
    const mark = delimiter.test(line) ? line.trim().charAt(0) : undefined
    if (mark !== undefined && (open === undefined || open.mark === mark)) {
      if (open !== undefined) spans.push([open.start, end])
      open = open === undefined ? { mark, start } : undefined
    } else if (open === undefined && quotedLine.test(line)) spans.push([start, end])
    start = end + 1
    yield lineWork
  }
  if (content.length >= minQuotationChars)
    for (const { 0: text, index } of content.matchAll(quotation)) spans.push([index, index + text.length])
  return spans.sort(([left], [right]) => left - right)
}
