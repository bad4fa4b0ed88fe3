import { type BlockComment, markup, type Syntax, syntaxes } from './languages.ts'
import { doubt, literalEnd, none, type Span } from './literals.ts'

/** Code without its comments and the lines that held nothing else; unchanged where the language, or the code, is not understood. */
export function uncomment(code: string, language: string): string {
  const name = language.toLowerCase()
  const spans = markup.has(name) ? commentsInMarkup(code) : commentsIn(code, syntaxes.get(name))
  return spans === undefined || spans.length === 0 ? code : without(code, spans)
}

function commentsIn(code: string, syntax: Syntax | undefined): Span[] | undefined {
  if (syntax === undefined || syntax.doubt?.test(code)) return undefined
  const spans: Span[] = []
  const notable = notableIn(syntax)
  for (let at = nextNotable(code, 0, notable); at < code.length; ) {
    const comment = commentEnd(code, at, syntax)
    const end = comment === none ? literalEnd(code, at, syntax, spans) : comment
    if (end === doubt) return undefined
    if (comment !== none && isRemovable(code, at, syntax)) spans.push([at, end])
    at = nextNotable(code, end === none ? at + 1 : end, notable)
  }
  return spans
}

/** The characters that may open a comment or a literal. */
function notableIn(syntax: Syntax): RegExp {
  const opens = [...syntax.line.map((line) => line.mark), ...syntax.blocks.map((block) => block.open), ...syntax.quotes.map((quote) => quote.open), '\\']
  if (syntax.characters) opens.push("'")
  if (syntax.templates) opens.push('`')
  if (syntax.expressions) opens.push('/')
  return new RegExp(`[${[...new Set(opens.map((open) => open.charAt(0).replace(/[\\[\]^-]/, '\\$&')))].join('')}]`, 'g')
}

function nextNotable(code: string, from: number, notable: RegExp): number {
  notable.lastIndex = from
  return notable.exec(code)?.index ?? code.length
}

function commentEnd(code: string, at: number, syntax: Syntax): number {
  for (const block of syntax.blocks) if (code.startsWith(block.open, at)) return blockEnd(code, at, block)
  for (const { mark, when } of syntax.line) {
    if (!code.startsWith(mark, at) || !when(code, at) || (at === 0 && code.startsWith('#!'))) continue
    return lineEnd(code, at)
  }
  return none
}

/** Some comments are instructions, and what follows // inside a tag is text. */
function isRemovable(code: string, at: number, syntax: Syntax): boolean {
  if (syntax.blocks.some((block) => block.keep !== undefined && code.startsWith(block.keep, at))) return false
  if (!syntax.tags || !code.startsWith('//', at)) return true
  const before = code.slice(code.lastIndexOf('\n', at) + 1, at)
  return !/[<>]/.test(before) || !/<\/|\/>/.test(code.slice(at + 2, lineEnd(code, at)))
}

function lineEnd(code: string, at: number): number {
  const end = code.indexOf('\n', at)
  return end < 0 ? code.length : end
}

function blockEnd(code: string, at: number, { open, close, nested }: BlockComment): number {
  let depth = 1
  for (let from = at + open.length; ; ) {
    const end = code.indexOf(close, from)
    if (end < 0) return doubt
    if (nested) depth += occurrences(code.slice(from, end), open)
    from = end + close.length
    if (--depth === 0) return from
  }
}

const occurrences = (text: string, part: string): number => text.split(part).length - 1

const rawElements = /^<(script|style|textarea|title)\b/i

function commentsInMarkup(code: string): Span[] | undefined {
  const spans: Span[] = []
  const lower = code.toLowerCase()
  for (let at = code.indexOf('<'); at >= 0; at = code.indexOf('<', at)) {
    let end = at + 1
    if (code.startsWith('<!--', at)) {
      end = after(code, '-->', at + 4)
      if (end !== doubt && !code.startsWith('<!--[if', at)) spans.push([at, end])
    } else if (code.startsWith('<![CDATA[', at)) end = after(code, ']]>', at)
    else if (/[a-z/]/i.test(code.charAt(at + 1))) {
      const raw = rawElements.exec(code.slice(at, at + 12))?.[1]
      end = tagEnd(code, at)
      if (end !== doubt && raw !== undefined && code.charAt(end - 2) !== '/') end = after(lower, `</${raw.toLowerCase()}`, end)
    }
    if (end === doubt) return undefined
    at = end
  }
  return spans
}

function after(code: string, mark: string, from: number): number {
  const found = code.indexOf(mark, from)
  return found < 0 ? doubt : found + mark.length
}

function tagEnd(code: string, at: number): number {
  for (let next = at + 1; next < code.length; next++) {
    const character = code.charAt(next)
    if (character === '>') return next + 1
    if (character !== '"' && character !== "'") continue
    next = code.indexOf(character, next + 1)
    if (next < 0) return doubt
  }
  return doubt
}

function without(code: string, comments: readonly Span[]): string {
  const sheet = new Sheet()
  let from = 0
  for (const [start, end] of comments) {
    sheet.keep(code.slice(from, start))
    sheet.leaveOut(code.slice(start, end), /\S/.test(code.charAt(end)))
    from = end
  }
  sheet.keep(code.slice(from))
  return sheet.text()
}

/** Writes code line by line; a line that only held comments leaves no trace. */
class Sheet {
  readonly #lines: string[] = []
  #pieces: string[] = []
  #isTouched = false
  #isBlank = true
  #endsBlank = true

  keep(code: string): void {
    const [first = '', ...others] = code.split('\n')
    // What follows a comment moves to its place, so that a blank on each side of it does not become two.
    this.#add(this.#isTouched && this.#endsBlank ? first.trimStart() : first)
    for (const line of others) {
      this.#finish()
      this.#add(line)
    }
  }

  leaveOut(comment: string, isFollowed: boolean): void {
    this.#isTouched = true
    if (!this.#endsBlank && isFollowed) this.#add(' ')
    if (this.#isBlank || !comment.includes('\n')) return
    this.#finish()
    this.#isTouched = true
  }

  text(): string {
    this.#finish()
    return this.#lines.join('\n')
  }

  #add(piece: string): void {
    if (piece === '') return
    this.#pieces.push(piece)
    this.#endsBlank = /\s/.test(piece.charAt(piece.length - 1))
    this.#isBlank &&= piece.trim() === ''
  }

  #finish(): void {
    const line = this.#pieces.join('')
    if (!this.#isTouched) this.#lines.push(line)
    else if (!this.#isBlank) this.#lines.push(line.trimEnd())
    this.#pieces = []
    this.#isTouched = false
    this.#isBlank = true
    this.#endsBlank = true
  }
}
