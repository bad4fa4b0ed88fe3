import { Parser } from 'htmlparser2'
import { unreadable } from '../unreadable.ts'
import { Paper } from './paper.ts'

/** What is never seen on a page. */
const unseen = new Set([
  'script',
  'style',
  'template',
  'noscript',
  'title',
  'svg',
  'math',
  'iframe',
  'object',
  'canvas',
  'select',
  'textarea',
])
/** How many line ends stand before and after an element; those of others are none. */
const lines: Readonly<Record<string, number>> = {
  ...Object.fromEntries(
    ['p', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'blockquote', 'pre', 'table', 'figure', 'hr'].map((name) => [name, 2]),
  ),
  ...Object.fromEntries(
    'address article aside body br caption dd details div dl dt figcaption fieldset footer form header legend li main nav ol section summary tr ul'
      .split(' ')
      .map((name) => [name, 1]),
  ),
}
const deepest = 1_000

/**
 * What a reader of a page sees, with headings, lists and tables as Markdown writes them.
 *
 * @example
 * htmlText('<h1>Hours</h1><ul><li>Mo<li>Tu</ul><script>x()</script>', 100) // '# Hours\n\n- Mo\n- Tu'
 */
export function htmlText(html: string, most: number): string {
  const page = new Page(most)
  const parser = new Parser({
    onopentag: (name, attributes) => page.open(name, attributes),
    onclosetag: (name) => page.close(name),
    ontext: (text) => page.say(text),
  })
  parser.write(html)
  parser.end()
  return page.text
}

/** A page as it is read, from tag to tag; nothing of it is kept but the text and where in it we are. */
class Page {
  private readonly paper: Paper
  private depth = 0
  /** How deep inside something that is not seen. */
  private hidden = 0
  private ends = 0
  private isSpaced = false
  private endsInSpace = false
  /** The open lists: the number of the next item, or undefined for dots. */
  private readonly lists: (number | undefined)[] = []
  /** How deep inside preformatted text, and inside what must stay on one line. */
  private preformatted = 0
  private single = 0

  constructor(most: number) {
    this.paper = new Paper(most)
  }

  get text(): string {
    return this.paper.text
  }

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    if (++this.depth > deepest)
      throw unreadable(`is nested deeper than ${deepest} elements. Flatten it, or save it as text`)
    if (this.hidden > 0 || unseen.has(name) || isHidden(attributes)) {
      this.hidden++
      return
    }
    this.end(lines[name] ?? 0)
    if (name === 'ul' || name === 'ol') this.lists.push(name === 'ol' ? Number(attributes.start ?? 1) || 1 : undefined)
    if (name === 'li') this.begin(this.bullet())
    if (name === 'td' || name === 'th') this.begin('| ')
    if (/^h[1-6]$/.test(name)) this.begin(`${'#'.repeat(Number(name[1]))} `)
    if (isSingle(name)) this.single++
    if (name === 'pre') this.fence(1)
  }

  close(name: string): void {
    this.depth--
    if (this.hidden > 0) {
      this.hidden--
      return
    }
    if (name === 'pre') this.fence(-1)
    if (isSingle(name)) this.single--
    if (name === 'ul' || name === 'ol') this.lists.pop()
    if (name === 'td' || name === 'th') this.isSpaced = true
    if (name === 'tr' && this.ends === 0) this.paper.write(' |')
    this.end(name === 'br' ? 0 : (lines[name] ?? 0))
  }

  say(text: string): void {
    if (this.hidden > 0) return
    if (this.preformatted > 0) {
      this.paper.write(text)
      return
    }
    const words = text.replace(/\s+/g, ' ')
    const said = words.trim()
    if (words.startsWith(' ')) this.isSpaced = true
    if (said === '') return
    this.begin(said)
    this.isSpaced = words.endsWith(' ')
  }

  private end(count: number): void {
    if (count === 0 || this.preformatted > 0) return
    // A paragraph in a cell or a heading is a space there.
    if (this.single > 0) this.isSpaced = true
    else this.ends = Math.max(this.ends, count)
  }

  private begin(text: string): void {
    if (this.paper.length > 0)
      this.paper.write(this.ends > 0 ? '\n'.repeat(this.ends) : this.isSpaced && !this.endsInSpace ? ' ' : '')
    this.paper.write(text)
    this.endsInSpace = text.endsWith(' ')
    this.ends = 0
    this.isSpaced = false
  }

  private bullet(): string {
    const number = this.lists.at(-1)
    if (number !== undefined) this.lists[this.lists.length - 1] = number + 1
    return `${'  '.repeat(Math.max(0, this.lists.length - 1))}${number === undefined ? '-' : `${number}.`} `
  }

  private fence(step: 1 | -1): void {
    if (step > 0 && this.preformatted === 0) this.begin('```\n')
    this.preformatted += step
    if (step < 0 && this.preformatted === 0) this.paper.write('\n```')
  }
}

const isSingle = (name: string): boolean => name === 'td' || name === 'th' || /^h[1-6]$/.test(name)

const isHidden = ({ hidden, style = '' }: Readonly<Record<string, string>>): boolean =>
  hidden !== undefined || /(?:display\s*:\s*none|visibility\s*:\s*hidden)/i.test(style)
