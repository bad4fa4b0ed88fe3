import { runSync, type Work } from '../domain/work.ts'

/** Limits of the structure of JSON. */
export type JsonLimits = {
  /** Nested lists and objects. Recursive code could run out of stack. */
  readonly depth: number
  /** Lists, objects and their elements, which take seconds to build from a few megabytes of brackets and commas. */
  readonly values: number
  readonly fields: number
}

/** Limits of a model's reply, or of one event of it. */
export const replyLimits: JsonLimits = { depth: 64, values: 100_000, fields: 50_000 }

export type JsonFault = 'depth' | 'values' | 'fields' | 'names' | 'digits'

/** Shorter texts cannot do harm; scanning them would take as long as parsing them. */
export const minScannedCharacters = 65_536
/** Longer numbers take long to parse, and none that a program can use is as long. */
const maxDigits = 4_096
/** Different field names, about: parsing takes up to 40 ms for these in one piece, and 90 ms for a megabyte of them. */
export const maxFieldNames = 25_000
/** Slots of the set in which names are counted by a hash of their last characters. */
const nameSlots = 262_144
const hashedCharacters = 32
/** Characters scanned in a step: up to 10 ms. */
const stepCharacters = 2_000_000
/** Cost of a quote, in characters that are scanned in the same time. */
const quoteCharacters = 20
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openBracket, closeBracket, openBrace, closeBrace, zero, nine] = [0x5b, 0x5d, 0x7b, 0x7d, 0x30, 0x39]

/**
 * Finds out before parsing that JSON is too deep or too large, by counting brackets, commas and colons outside strings.
 * Short texts always pass. The text need not be valid.
 *
 * @example
 * findJsonFault('['.repeat(100_000), { depth: 64, values: 1_000, fields: 1_000 }) // 'depth'
 */
export const findJsonFault = (text: string, limits: JsonLimits): JsonFault | undefined =>
  runSync(findJsonFaultInSteps(text, limits))

/** Does the same as `findJsonFault` in steps. */
export function* findJsonFaultInSteps(text: string, limits: JsonLimits): Work<JsonFault | undefined> {
  if (text.length <= minScannedCharacters) return undefined
  let [depth, values, fields, digits] = [0, 0, 0, 0]
  let stepEnd = stepCharacters
  let isInString = false
  let stringEnd = 0
  const names = new FieldNames()
  for (let index = 0; index < text.length; index++) {
    if (index >= stepEnd) {
      stepEnd = index + stepCharacters
      yield Number.POSITIVE_INFINITY
    }
    if (isInString) {
      // Searches natively: most of a large body is text.
      const end = text.indexOf('"', index)
      if (end < 0) return undefined
      isInString = isEscaped(text, index, end)
      index = end
      stringEnd = end
      stepEnd -= quoteCharacters
      continue
    }
    const code = text.charCodeAt(index)
    if (code >= zero && code <= nine) {
      if (++digits > maxDigits) return 'digits'
      continue
    }
    digits = 0
    if (code === quote) isInString = true
    else if (code === openBracket || code === openBrace) {
      if (++depth > limits.depth) return 'depth'
      if (++values > limits.values) return 'values'
    } else if (code === closeBracket || code === closeBrace) depth--
    else if (code === comma && ++values > limits.values) return 'values'
    else if (code === colon) {
      if (++fields > limits.fields) return 'fields'
      if (names.add(text, stringEnd) > maxFieldNames) return 'names'
    }
  }
  return undefined
}

/** Counts different field names. Names that are equal in their last characters count as one. */
class FieldNames {
  private readonly seen = new Uint8Array(nameSlots)
  private count = 0

  /** Adds the name that ends before a quote and returns the number of names so far. */
  add(text: string, end: number): number {
    let hash = 0
    for (let at = end - 1; at >= 0 && at >= end - hashedCharacters && text.charCodeAt(at) !== quote; at--)
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
    const slot = (Math.imul(hash, 0x9e3779b1) >>> 8) % nameSlots
    if (this.seen[slot] === 0) {
      this.seen[slot] = 1
      this.count++
    }
    return this.count
  }
}

/** True if a quote inside a string is escaped; `start` is the start of the string or follows a quote. */
function isEscaped(text: string, start: number, quoteIndex: number): boolean {
  let first = quoteIndex
  while (first > start && text.charCodeAt(first - 1) === backslash) first--
  return (quoteIndex - first) % 2 === 1
}
