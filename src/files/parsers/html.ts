import { Parser } from 'htmlparser2'
import { TextBuffer, unreadableFileError } from '../limits.ts'

/** Elements that are not rendered as text. */
const invisibleElements = new Set(
  'script style template noscript title svg math iframe object canvas select textarea'.split(' '),
)
/** Line breaks before and after block elements; inline elements have none. */
const lineBreaks: Readonly<Record<string, number>> = {
  ...Object.fromEntries('p h1 h2 h3 h4 h5 h6 blockquote pre table figure hr'.split(' ').map((element) => [element, 2])),
  ...Object.fromEntries(
    'address article aside body br caption dd details div dl dt figcaption fieldset footer form header legend li main nav ol section summary tr ul'
      .split(' ')
      .map((element) => [element, 1]),
  ),
}
const maxDepth = 1_000

/**
 * Extracts the visible text of a page, with headings, lists, tables and code in Markdown.
 *
 * @example
 * parseHtml('<h1>Hours</h1><ul><li>Mo<li>Tu</ul><script>x()</script>', 100) // '# Hours\n\n- Mo\n- Tu'
 */
export function parseHtml(html: string, maxCharacters: number): string {
  const renderer = new MarkdownRenderer(maxCharacters)
  const parser = new Parser({
    onopentag: (name, attributes) => renderer.openTag(name, attributes),
    onclosetag: (name) => renderer.closeTag(name),
    ontext: (text) => renderer.addText(text),
  })
  parser.write(html)
  parser.end()
  return renderer.text
}

/** Renders a stream of tags as Markdown without building a tree. */
class MarkdownRenderer {
  private readonly buffer: TextBuffer
  private depth = 0
  /** Depth inside invisible elements. */
  private invisibleDepth = 0
  private pendingLineBreaks = 0
  private pendingSpace = false
  private endsWithSpace = false
  /** Open lists: the number of the next item, or undefined for bullets. */
  private readonly lists: (number | undefined)[] = []
  private preDepth = 0
  /** Depth inside cells and headings, which must stay on one line. */
  private singleLineDepth = 0

  constructor(maxCharacters: number) {
    this.buffer = new TextBuffer(maxCharacters)
  }

  get text(): string {
    return this.buffer.text
  }

  openTag(name: string, attributes: Readonly<Record<string, string>>): void {
    if (++this.depth > maxDepth)
      throw unreadableFileError(`is nested deeper than ${maxDepth} elements. Flatten it, or save it as text`)
    if (this.invisibleDepth > 0 || invisibleElements.has(name) || isHidden(attributes)) {
      this.invisibleDepth++
      return
    }
    this.requestLineBreaks(lineBreaks[name] ?? 0)
    if (name === 'ul' || name === 'ol') this.lists.push(name === 'ol' ? Number(attributes.start ?? 1) || 1 : undefined)
    if (name === 'li') this.write(this.nextBullet())
    if (name === 'td' || name === 'th') this.write('| ')
    if (/^h[1-6]$/.test(name)) this.write(`${'#'.repeat(Number(name[1]))} `)
    if (isSingleLine(name)) this.singleLineDepth++
    if (name === 'pre') this.openFence()
  }

  closeTag(name: string): void {
    this.depth--
    if (this.invisibleDepth > 0) {
      this.invisibleDepth--
      return
    }
    if (name === 'pre') this.closeFence()
    if (isSingleLine(name)) this.singleLineDepth--
    if (name === 'ul' || name === 'ol') this.lists.pop()
    if (name === 'td' || name === 'th') this.pendingSpace = true
    if (name === 'tr' && this.pendingLineBreaks === 0) this.buffer.write(' |')
    this.requestLineBreaks(name === 'br' ? 0 : (lineBreaks[name] ?? 0))
  }

  addText(text: string): void {
    if (this.invisibleDepth > 0) return
    if (this.preDepth > 0) {
      this.buffer.write(text)
      return
    }
    const collapsed = text.replace(/\s+/g, ' ')
    const trimmed = collapsed.trim()
    if (collapsed.startsWith(' ')) this.pendingSpace = true
    if (trimmed === '') return
    this.write(trimmed)
    this.pendingSpace = collapsed.endsWith(' ')
  }

  private requestLineBreaks(count: number): void {
    if (count === 0 || this.preDepth > 0) return
    if (this.singleLineDepth > 0) this.pendingSpace = true
    else this.pendingLineBreaks = Math.max(this.pendingLineBreaks, count)
  }

  /** Writes text after the pending line breaks or space. */
  private write(text: string): void {
    if (this.buffer.length > 0) {
      const space = this.pendingSpace && !this.endsWithSpace ? ' ' : ''
      this.buffer.write(this.pendingLineBreaks > 0 ? '\n'.repeat(this.pendingLineBreaks) : space)
    }
    this.buffer.write(text)
    this.endsWithSpace = text.endsWith(' ')
    this.pendingLineBreaks = 0
    this.pendingSpace = false
  }

  private nextBullet(): string {
    const number = this.lists.at(-1)
    if (number !== undefined) this.lists[this.lists.length - 1] = number + 1
    return `${'  '.repeat(Math.max(0, this.lists.length - 1))}${number === undefined ? '-' : `${number}.`} `
  }

  private openFence(): void {
    if (this.preDepth === 0) this.write('```\n')
    this.preDepth++
  }

  private closeFence(): void {
    this.preDepth--
    if (this.preDepth === 0) this.buffer.write('\n```')
  }
}

const isSingleLine = (name: string): boolean => name === 'td' || name === 'th' || /^h[1-6]$/.test(name)

const isHidden = ({ hidden, style = '' }: Readonly<Record<string, string>>): boolean =>
  hidden !== undefined || /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style)
