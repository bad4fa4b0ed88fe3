import { parseJson } from '../../text/json.ts'

/** After this many templates in a row that matched no later event, learning stops: no two events are alike. */
const maxUnusedTemplates = 4
const quote = 0x22
const backslash = 0x5c

/**
 * Caches the text that the events of one stream have in common. Most events differ only in one short string, the delta.
 * Its position is learned from one parsed event; from later events that match, only the delta is read. Measured: a
 * tenth of the time of parsing every event.
 */
export class SseTemplateCache {
  /** Event text before and after the delta, including the quotes around it. */
  private before = ''
  private after = ''
  /** The same with the `data: ` prefix and the empty line that ends an event; `head` is empty for multi-line events. */
  private head = ''
  private tail = ''
  private unusedTemplates = 0

  /** Returns the delta of an event that matches the template, else undefined. */
  match(event: string): string | undefined {
    const { before, after } = this
    const end = event.length - after.length
    // Measured: comparing slices takes a seventh of the time of startsWith and endsWith.
    if (before === '' || end < before.length || event.slice(0, before.length) !== before || event.slice(end) !== after)
      return undefined
    // The rest of the event is identical, so a valid string literal here is the delta; otherwise the event is of
    // another kind.
    const delta = decodeLiteral(event.slice(before.length, end))
    if (delta !== undefined) this.unusedTemplates = 0
    return delta
  }

  /**
   * Passes the deltas of consecutive matching events, starting at `start`, to `onDelta` and returns the position after
   * the last one. Stops at deltas with escape sequences; `match` handles those.
   */
  consume(text: string, start: number, onDelta: (delta: string) => void): number {
    const { head, tail } = this
    if (head === '') return start
    for (let position = start; ; this.unusedTemplates = 0) {
      const from = position + head.length
      if (text.slice(position, from) !== head) return position
      const end = findUnescapedEnd(text, from)
      if (text.slice(end, end + tail.length) !== tail) return position
      onDelta(text.slice(from, end))
      position = end + tail.length
    }
  }

  /**
   * Learns the template from an event whose other fields may be ignored when repeated; `readDelta` reads a parsed
   * event.
   */
  learn(event: string, delta: string, readDelta: (event: unknown) => unknown): void {
    if (this.unusedTemplates === maxUnusedTemplates) return
    this.unusedTemplates++
    const literal = JSON.stringify(delta)
    const position = event.lastIndexOf(literal)
    const before = event.slice(0, position + 1)
    const after = event.slice(position + literal.length - 1)
    const isFound =
      position >= 0 && (isOnlyOccurrence(literal, position, event) || isDelta(before, delta, after, readDelta))
    this.before = isFound ? before : ''
    this.after = after
    this.head = isFound && !event.includes('\n') ? `data: ${before}` : ''
    this.tail = `${after}\n\n`
  }
}

/** Decodes the inside of a JSON string literal; undefined if it is not exactly one literal. Few contain escapes. */
function decodeLiteral(characters: string): string | undefined {
  return findUnescapedEnd(characters, 0) === characters.length
    ? characters
    : (parseJson(`"${characters}"`) as string | undefined)
}

/** Finds the first character from `start` on that cannot stand unescaped in a JSON string. */
function findUnescapedEnd(text: string, start: number): number {
  for (let position = start; position < text.length; position++) {
    const code = text.charCodeAt(position)
    if (code < 0x20 || code === quote || code === backslash) return position
  }
  return text.length
}

/** Without backslashes a string has a single spelling, so a literal that occurs once is the delta. */
const isOnlyOccurrence = (literal: string, position: number, event: string): boolean =>
  event.indexOf(literal) === position && !event.includes('\\')

/**
 * Checks by substitution that the text between `before` and `after` is the delta: it may also occur in other fields.
 */
function isDelta(before: string, delta: string, after: string, readDelta: (event: unknown) => unknown): boolean {
  const other = `${delta}.`
  // `before` and `after` already contain the quotes.
  return readDelta(parseJson(before + JSON.stringify(other).slice(1, -1) + after)) === other
}
