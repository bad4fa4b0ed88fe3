import type { Work } from './work.ts'

/** Size of a number or another short value, in characters. */
const valueCharacters = 20
/** Quotes and comma of an item of a list, which may be an empty text. */
const separatorCharacters = 3
/** Characters of a text that are written in one step. */
const maxStepCharacters = 65_536
/** Writing is faster than the work that slices are made for. */
const writingSpeed = 8

/** Levels of nesting that JSON of callers may have. */
export const maxJsonDepth = 100

/** Tells whether parsed JSON has more than a number of nested lists and objects. */
export function exceedsDepth(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  if (Array.isArray(value)) return value.some((item) => exceedsDepth(item, levels - 1))
  // Takes half as long as `Object.values` for an object of many fields.
  for (const name in value) if (exceedsDepth(value[name as keyof typeof value], levels - 1)) return true
  return false
}

/** Estimates the size of a JSON value in characters; stops at a maximum. */
export function estimateSize(value: unknown, max: number): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return valueCharacters
  let size = valueCharacters
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && size < max; index++)
      size += separatorCharacters + estimateSize(value[index], max - size)
    return size
  }
  for (const name in value) {
    if (size >= max) break
    size += name.length + estimateSize((value as Record<string, unknown>)[name], max - size)
  }
  return size
}

/** Tells whether the JSON of plain data has more than a number of characters. Writes no more than that. */
export const exceedsJsonLength = (value: unknown, max: number): boolean => subtractJsonLength(value, max) < 0

/** Returns what is left of a number of characters after those of the JSON of a value; negative if it has more. */
function subtractJsonLength(value: unknown, left: number): number {
  // Each character of a text takes one or more, each value at least one.
  if (typeof value === 'string') return value.length + 2 > left ? -1 : left - JSON.stringify(value).length
  if (typeof value !== 'object' || value === null) return left - (JSON.stringify(value) ?? 'null').length
  let rest = left - 2
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length && rest >= 0; index++)
      rest = subtractJsonLength(value[index], index === 0 ? rest : rest - 1)
    return rest
  }
  let isFirst = true
  for (const name in value) {
    if (rest < 0) break
    const field = value[name as keyof typeof value]
    if (!isJsonValue(field)) continue
    // Between a name and its value is a colon, before all fields but the first one a comma.
    rest = subtractJsonLength(field, subtractJsonLength(name, isFirst ? rest - 1 : rest - 2))
    isFirst = false
  }
  return rest
}

/** Pieces that are joined at a time: joining hundreds of thousands at once takes tens of milliseconds. */
const maxPieces = 4_096

/** A text under construction. */
export class TextPieces {
  private readonly texts: string[] = []
  private readonly pieces: string[] = []

  push(piece: string): void {
    if (this.pieces.push(piece) < maxPieces) return
    this.texts.push(this.pieces.join(''))
    this.pieces.length = 0
  }

  join(): string {
    return this.texts.join('') + this.pieces.join('')
  }
}

/** Writes plain data as `JSON.stringify` does, in steps. Leaves out the fields of a name. */
export function* stringifyInSteps(value: unknown, omittedName?: string): Work<string> {
  const pieces = new TextPieces()
  yield* write(value, pieces, omittedName)
  return pieces.join()
}

/** Writes the start of what `JSON.stringify` writes, without writing the rest. */
export function stringifyStart(value: unknown, maxCharacters: number): string {
  const pieces = new TextPieces()
  for (const _ of write(value, pieces)) if (pieces.join().length >= maxCharacters) break
  return pieces.join().slice(0, maxCharacters)
}

/** False for values that JSON has no form for: it leaves such fields out. */
export const isJsonValue = (value: unknown): boolean =>
  value !== undefined && typeof value !== 'function' && typeof value !== 'symbol'

function* write(value: unknown, pieces: TextPieces, omittedName?: string): Work<void> {
  if (typeof value === 'string' && value.length > maxStepCharacters) yield* writeText(value, pieces)
  else if (typeof value !== 'object' || value === null || 'toJSON' in value) {
    const text = JSON.stringify(value) ?? 'null'
    pieces.push(text)
    yield Math.ceil((valueCharacters + text.length) / writingSpeed)
  } else if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      pieces.push(index === 0 ? '[' : ',')
      yield 1
      yield* write(value[index], pieces, omittedName)
    }
    pieces.push(value.length === 0 ? '[]' : ']')
  } else {
    let separator = '{'
    const fields = value as Readonly<Record<string, unknown>>
    for (const name of Object.keys(fields)) {
      const field = fields[name]
      if (!isJsonValue(field) || name === omittedName) continue
      pieces.push(`${separator}${JSON.stringify(name)}:`)
      separator = ','
      yield 1
      yield* write(field, pieces, omittedName)
    }
    pieces.push(separator === '{' ? '{}' : '}')
  }
}

/** Never splits a surrogate pair, whose halves would be escaped. */
function* writeText(text: string, pieces: TextPieces): Work<void> {
  pieces.push('"')
  for (let start = 0, end = 0; start < text.length; start = end) {
    end = start + maxStepCharacters
    if (isHighSurrogate(text.charCodeAt(end - 1))) end++
    pieces.push(JSON.stringify(text.slice(start, end)).slice(1, -1))
    yield Math.ceil(maxStepCharacters / writingSpeed)
  }
  pieces.push('"')
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff
