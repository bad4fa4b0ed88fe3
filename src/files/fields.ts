import type { Work } from '../domain/work.ts'
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

type Field = { readonly start: number; readonly end: number }

/**
 * Positions of the names and values of a valid JSON document, or of the cells of a table, without quotes. Confines
 * secrets to them: rules for text do not know where a value ends, and a mask must not cover the signs between values.
 */
export class FileFields implements SecretFields {
  /** The document without line breaks in its fields, which would look like those between rows. */
  singleLineText = ''
  readonly multilineFields: SecretFields['multilineFields'][number][] = []
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
      const flat = fields.add(field)
      if (flat !== undefined) {
        pieces.push(text.slice(written, field.start), flat)
        written = field.end
      }
      if (++count < stepCharacters && field.end - reached < stepCharacters) continue
      yield field.end - reached
      reached = field.end
      count = 0
    }
    fields.singleLineText = pieces.join('') + text.slice(written)
    return fields
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

  /** Adds a field and returns it with other signs instead of line breaks; undefined if it has none. */
  private add({ start, end }: Field): string | undefined {
    if (start >= end) return undefined
    this.starts.push(start)
    this.ends.push(end)
    const field = this.text.slice(start, end)
    if (!field.includes(this.isJson ? '\\n' : '\n')) return undefined
    const text = this.isJson ? field.replace(/\\./g, (found) => (found === '\\n' ? ' \n' : found)) : field
    this.multilineFields.push({ start, text })
    // An escaped line break does not end a password.
    return this.isJson ? field.replaceAll('\\n', '\\v') : field.replaceAll('\n', ' ')
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

  private clip({ start, end }: SecretMatch, index: number): readonly Field[] {
    const field = { start: this.starts[index] as number, end: this.ends[index] as number }
    const isQuoted = this.text[field.start - 1] === '"'
    // Half a number would not be JSON.
    if (this.isJson && !isQuoted) return [field]
    if (this.isName(field)) return this.findInName(field)
    const clipped = { start: Math.max(start, field.start), end: Math.min(end, field.end) }
    return [isQuoted ? this.withoutHalfEscapes(field, clipped) : clipped]
  }

  private isName({ start, end }: Field): boolean {
    nameEnd.lastIndex = end
    return this.isJson && end - start <= maxNameCharacters && nameEnd.test(this.text)
  }

  /** A name is a secret only by itself: after a value, it is none of its further values. */
  private findInName(name: Field): readonly Field[] {
    return findSecrets(this.text.slice(name.start, name.end)).map(({ start, end }) =>
      this.withoutHalfEscapes(name, { start: name.start + start, end: name.start + end }),
    )
  }

  private withoutHalfEscapes(field: Field, { start, end }: Field): Field {
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
function* findJsonFields(text: string): Generator<Field> {
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
function* findCells(text: string): Generator<Field> {
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
