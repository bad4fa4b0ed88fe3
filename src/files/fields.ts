import { runSync, type Work } from '../domain/work.ts'
import { mergeRanges, type SecretRange } from '../memory/secretRanges.ts'
import type { SecretFields } from '../memory/secretScan.ts'
import type { SecretMatch } from '../text/secrets/rule.ts'
import { findSecrets } from '../text/secrets.ts'
import { detectDelimiter } from './parsers/csv.ts'

/** Characters read or fields found in one step. */
const stepCharacters = 8_192
const escapeCharacters = 2
const unicodeEscapeCharacters = 6
/** Longer names are searched like values. */
const maxNameCharacters = 1_000
const nameEnd = /"\s{0,1000}:/y
const quoteCode = 0x22
const backslashCode = 0x5c

/**
 * Positions of the names and values of a valid JSON document, or of the cells of a table, without quotes. Confines
 * secrets to them: rules for text do not know where a value ends, and a mask must not cover the signs between values.
 */
export class FileFields implements SecretFields {
  /** The document without line breaks in its fields, which would look like those between rows. */
  singleLineText = ''
  readonly escapedFields: SecretRange[] = []
  private readonly text: string
  private readonly isJson: boolean
  private readonly starts: number[] = []
  private readonly ends: number[] = []

  private constructor(text: string, isJson: boolean) {
    this.text = text
    this.isJson = isJson
  }

  /** Locates the fields of a document that the parser of its kind has accepted. */
  static *locate(kind: 'json' | 'csv', text: string): Work<FileFields> {
    const fields = new FileFields(text, kind === 'json')
    const pieces: string[] = []
    let [reached, written, count] = [0, 0, 0]
    for (const field of kind === 'json' ? findJsonFields(text) : findCells(text)) {
      fields.add(field)
      if (fields.hasLineBreak(field)) {
        pieces.push(text.slice(written, field.start))
        for (const piece of fields.splitField(field)) {
          pieces.push(fields.withoutLineBreaks(piece))
          yield piece.length
        }
        written = field.end
        reached = field.end
      }
      if (++count < stepCharacters && field.end - reached < stepCharacters) continue
      yield field.end - reached
      reached = field.end
      count = 0
    }
    fields.singleLineText = pieces.join('') + text.slice(written)
    return fields
  }

  *valueOf(field: SecretRange): Work<string> {
    const pieces: string[] = []
    for (const piece of this.splitField(field)) {
      pieces.push(this.isJson ? (JSON.parse(`"${piece}"`) as string) : piece.replaceAll('""', '"'))
      yield piece.length
    }
    return pieces.join('')
  }

  *positionsIn(field: SecretRange, ranges: readonly SecretRange[]): Work<readonly SecretRange[]> {
    const positions: number[] = []
    let [position, index, reached] = [field.start, 0, field.start]
    for (const target of ranges.flatMap(({ start, end }) => [start, end])) {
      for (; index < target; index++) {
        position = this.endOfSign(position)
        if (position - reached < stepCharacters) continue
        yield position - reached
        reached = position
      }
      positions.push(position)
    }
    return ranges.map((_, at) => ({ start: positions[2 * at] as number, end: positions[2 * at + 1] as number }))
  }

  /** Returns the part of a match in the field where it begins. A private key may continue in the following fields. */
  confine(match: SecretMatch): readonly SecretMatch[] {
    const confined: SecretMatch[] = []
    for (let index = this.indexOf(match.start); (this.starts[index] ?? Number.POSITIVE_INFINITY) < match.end; index++) {
      for (const { start, end } of this.clip(match, index))
        if (start < end) confined.push({ kind: match.kind, start, end })
      if (match.kind !== 'pem') break
    }
    return confined
  }

  private add(field: SecretRange): void {
    if (field.start >= field.end) return
    this.starts.push(field.start)
    this.ends.push(field.end)
    if (this.isEscaped(field)) this.escapedFields.push(field)
  }

  private isEscaped({ start, end }: SecretRange): boolean {
    const field = this.text.slice(start, end)
    if (this.isJson) return field.includes('\\')
    // A quotation mark after the closing one of a cell is a plain sign.
    const isQuoted = this.text[start - 1] === '"' && this.text[end] === '"'
    return isQuoted && (field.includes('\n') || field.includes('""'))
  }

  private hasLineBreak({ start, end }: SecretRange): boolean {
    return this.text.slice(start, end).includes(this.isJson ? '\\n' : '\n')
  }

  /** An escaped line break does not end a password. */
  private withoutLineBreaks(piece: string): string {
    return this.isJson ? piece.replaceAll('\\n', '\\v') : piece.replaceAll('\n', ' ')
  }

  /** Splits a field into pieces that end outside of escape sequences. */
  private *splitField({ start, end }: SecretRange): Generator<string> {
    for (let from = start; from < end; ) {
      let to = from
      while (to < end && to - from < stepCharacters) to = this.endOfSign(to)
      yield this.text.slice(from, to)
      from = to
    }
  }

  /** Returns the end of the character or escape sequence that begins at a position. */
  private endOfSign(position: number): number {
    const code = this.text.charCodeAt(position)
    if (this.isJson && code === backslashCode)
      return position + (this.text[position + 1] === 'u' ? unicodeEscapeCharacters : escapeCharacters)
    const isDoubled = !this.isJson && code === quoteCode && this.text.charCodeAt(position + 1) === quoteCode
    return position + (isDoubled ? escapeCharacters : 1)
  }

  /** Returns the index of the first field that ends after a position. */
  private indexOf(position: number): number {
    let [low, high] = [0, this.ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.ends[middle] as number) > position) high = middle
      else low = middle + 1
    }
    return low
  }

  private clip({ start, end }: SecretMatch, index: number): readonly SecretRange[] {
    const field = { start: this.starts[index] as number, end: this.ends[index] as number }
    const isQuoted = this.text[field.start - 1] === '"'
    // Half a number would not be JSON.
    if (this.isJson && !isQuoted) return [field]
    if (this.isName(field)) return this.findInName(field)
    const clipped = { start: Math.max(start, field.start), end: Math.min(end, field.end) }
    return [isQuoted ? this.withoutHalfEscapes(field, clipped) : clipped]
  }

  private isName({ start, end }: SecretRange): boolean {
    nameEnd.lastIndex = end
    return this.isJson && end - start <= maxNameCharacters && nameEnd.test(this.text)
  }

  /** A name is a secret only by itself: after a value, it is none of its further values. */
  private findInName(name: SecretRange): readonly SecretRange[] {
    return runSync(this.positionsIn(name, mergeRanges(findSecrets(runSync(this.valueOf(name))))))
  }

  private withoutHalfEscapes(field: SecretRange, { start, end }: SecretRange): SecretRange {
    return { start: this.endOfEscape(field.start, start), end: this.endOfEscape(field.start, end) }
  }

  /** Returns the end of the escape sequence around a position, or the position if it is in none. */
  private endOfEscape(fieldStart: number, position: number): number {
    const sign = this.isJson ? '\\' : '"'
    const earliest = Math.max(fieldStart, position - unicodeEscapeCharacters + 1)
    for (let start = position - 1; start >= earliest; start--) {
      if (this.text[start] !== sign) continue
      let first = start
      while (first > fieldStart && this.text[first - 1] === sign) first--
      // An escaped sign begins no escape sequence.
      if ((start - first) % 2 === 1) return position
      const isUnicode = this.isJson && this.text[start + 1] === 'u'
      return Math.max(position, start + (isUnicode ? unicodeEscapeCharacters : escapeCharacters))
    }
    return position
  }
}

/** Finds the strings and literals of valid JSON. */
function* findJsonFields(text: string): Generator<SecretRange> {
  const fieldStart = /"|[^\s[\]{},:"]+/g
  for (let match = fieldStart.exec(text); match !== null; match = fieldStart.exec(text)) {
    if (match[0] !== '"') yield { start: match.index, end: fieldStart.lastIndex }
    else {
      const end = findStringEnd(text, match.index + 1)
      yield { start: match.index + 1, end }
      fieldStart.lastIndex = end + 1
    }
  }
}

function findStringEnd(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === quoteCode) return at
    if (code === backslashCode) at++
  }
  return text.length
}

/** Finds the cells of a table as the CSV parser does: quotes are relaxed. */
function* findCells(text: string): Generator<SecretRange> {
  const delimiter = detectDelimiter(text)
  for (let at = 0; at < text.length; at++) {
    let start = at
    if (text[at] === '"') {
      const quote = findClosingQuote(text, at + 1)
      yield { start: at + 1, end: quote }
      start = quote + 1
    }
    at = start
    while (at < text.length && text[at] !== '\n' && text[at] !== delimiter) at++
    if (start <= at) yield { start, end: at }
  }
}

function findClosingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2)) if (text[at + 1] !== '"') return at
  return text.length
}
