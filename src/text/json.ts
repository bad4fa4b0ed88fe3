/** Reads the value at a path of parsed JSON; returns undefined when the path does not exist. */
export function getPath(value: unknown, ...path: readonly (string | number)[]): unknown {
  let current = value
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return undefined
    current = (current as Record<string | number, unknown>)[key]
  }
  return current
}

/** Reads the string at a path of parsed JSON; returns '' for any other type. */
export function getString(value: unknown, ...path: readonly (string | number)[]): string {
  const found = getPath(value, ...path)
  return typeof found === 'string' ? found : ''
}

/** Reads the array at a path of parsed JSON; returns [] for any other type. */
export function getArray(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const found = getPath(value, ...path)
  return Array.isArray(found) ? found : []
}

/** Replaces every string value of parsed JSON; property names stay. */
export function mapJsonStrings(value: unknown, replace: (text: string) => string): unknown {
  if (typeof value === 'string') return replace(value)
  if (Array.isArray(value)) return value.map((item) => mapJsonStrings(item, replace))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, mapJsonStrings(inner, replace)]))
}

/** Lists every property name and every primitive value of parsed JSON as text. */
export function listJsonTexts(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return [String(value)]
  if (Array.isArray(value)) return value.flatMap(listJsonTexts)
  return Object.entries(value).flatMap(([name, inner]) => [name, ...listJsonTexts(inner)])
}

/** Parses JSON; returns undefined for invalid input. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Removes white space between the tokens of JSON text and changes nothing else; returns any other text unchanged. */
export function compactJson(text: string): string {
  if (!/^\s*[[{]/.test(text.slice(0, 200))) return text
  try {
    JSON.parse(text)
  } catch {
    return text
  }
  // Parsing and stringifying would change long numbers and drop repeated names.
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+/g, (part) => (part.startsWith('"') ? part : ''))
}

const maxDepth = 64
const maxCharacters = 1_000_000
/** Number of opening brackets to try: prose may contain brackets of its own. */
const maxAttempts = 32

/** Property names that could reach the prototype of an object. */
const unsafeNames: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/**
 * Parses the object or list in a model's reply; returns undefined if there is none. Accepts prose and code fences
 * around it, and comments, trailing commas, single quotes, unquoted names and Python literals in it. Of a truncated
 * reply, the complete values are kept. Objects have no prototype and no property name that could reach one.
 *
 * @example
 * repairJson("Sure!\n```json\n{theme: 'dark', urls: ['a', 'b") // { theme: 'dark', urls: ['a'] }
 */
export function repairJson(text: string): unknown {
  const input = text.slice(0, maxCharacters)
  if (/^\s*<(?!think|reason|json|answer|output|result)/i.test(input.slice(0, 200))) return undefined
  let best: { readonly value: unknown; readonly length: number } | undefined
  let from = 0
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const start = findBracket(input, from)
    if (start < 0) break
    const reader: Reader = { text: input, at: start, isBroken: false }
    const value = readValue(reader, 0)
    const isUsable = value !== undefined && (!reader.isBroken || Object.keys(value as object).length > 0)
    if (isUsable && reader.at - start > (best?.length ?? 0)) best = { value, length: reader.at - start }
    from = isUsable ? reader.at : start + 1
  }
  return best?.value
}

function findBracket(text: string, from: number): number {
  const [brace, bracket] = [text.indexOf('{', from), text.indexOf('[', from)]
  return brace < 0 || bracket < 0 ? Math.max(brace, bracket) : Math.min(brace, bracket)
}

/** Parser state. Once `isBroken`, every open object and list closes with the values read so far. */
type Reader = { readonly text: string; at: number; isBroken: boolean }

/** Marks the input as broken and returns undefined, which is not a JSON value. */
function fail(reader: Reader): undefined {
  reader.isBroken = true
  return undefined
}

function readValue(reader: Reader, depth: number): unknown {
  skipBlanks(reader)
  const sign = reader.text.charAt(reader.at)
  if (sign === '{' || sign === '[') {
    if (depth >= maxDepth) return fail(reader)
    return sign === '{' ? readObject(reader, depth) : readList(reader, depth)
  }
  return sign === '"' || sign === "'" ? readString(reader) : readWord(reader)
}

function readObject(reader: Reader, depth: number): unknown {
  const object: Record<string, unknown> = Object.create(null)
  reader.at++
  while (!skipToNextItem(reader, '}')) {
    const name = readName(reader)
    skipBlanks(reader)
    if (name === undefined || reader.text.charAt(reader.at) !== ':') return fail(reader) ?? object
    reader.at++
    const value = readValue(reader, depth + 1)
    if (value !== undefined && !unsafeNames.has(name)) object[name] = value
    if (reader.isBroken) break
  }
  return object
}

function readList(reader: Reader, depth: number): unknown {
  const list: unknown[] = []
  reader.at++
  while (!skipToNextItem(reader, ']')) {
    const value = readValue(reader, depth + 1)
    if (value !== undefined) list.push(value)
    if (reader.isBroken) break
  }
  return list
}

/**
 * Skips commas, also superfluous ones; consumes the closing bracket, or the end of the input, and then returns true.
 */
function skipToNextItem(reader: Reader, bracket: string): boolean {
  for (;;) {
    skipBlanks(reader)
    const sign = reader.text.charAt(reader.at)
    if (sign === '' || sign === bracket) {
      if (sign === '') reader.isBroken = true
      else reader.at++
      return true
    }
    if (sign !== ',') return false
    reader.at++
  }
}

function readName(reader: Reader): string | undefined {
  const sign = reader.text.charAt(reader.at)
  if (sign === '"' || sign === "'") return readString(reader)
  return readPattern(reader, /[\p{L}_$][\p{L}\p{N}_$.-]{0,200}/uy)
}

function readPattern(reader: Reader, pattern: RegExp): string | undefined {
  pattern.lastIndex = reader.at
  const found = pattern.exec(reader.text)?.[0]
  reader.at += found?.length ?? 0
  return found
}

const literals: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...Object.entries({ true: true, True: true, false: false, False: false, null: null, None: null, undefined: null }),
  ...['NaN', 'Infinity', '-Infinity'].map((word) => [word, null] as const),
])

/** Reads a number or a literal. A word at the end of the text may be truncated and is rejected. */
function readWord(reader: Reader): unknown {
  const word = readPattern(reader, /[-+]?[\w.][\w.+-]{0,400}/y) ?? ''
  if (word === '' || reader.at >= reader.text.length) return fail(reader)
  if (literals.has(word)) return literals.get(word)
  return /^[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?$/i.test(word) ? toFinite(Number(word)) : fail(reader)
}

const toFinite = (number: number): number | null => (Number.isFinite(number) ? number : null)

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

function readString(reader: Reader): string | undefined {
  const { text } = reader
  const quote = text.charAt(reader.at)
  let string = ''
  let from = reader.at + 1
  for (let at = from; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '\\') {
      const { character, length } = readEscape(text, at)
      string += text.slice(from, at) + character
      at += length - 1
      from = at + 1
    } else if (sign === quote && (quote === '"' || isStringEnd(text, at + 1))) {
      reader.at = at + 1
      return string + text.slice(from, at)
    }
  }
  reader.at = text.length
  return fail(reader)
}

function readEscape(text: string, at: number): { readonly character: string; readonly length: number } {
  const code = /^[\da-f]{4}$/i.exec(text.slice(at + 2, at + 6))?.[0]
  const sign = text.charAt(at + 1)
  if (sign === 'u' && code !== undefined)
    return { character: String.fromCharCode(Number.parseInt(code, 16)), length: 6 }
  return { character: Object.hasOwn(escapes, sign) ? (escapes[sign] ?? '') : sign, length: 2 }
}

/** Tells whether a single quote ends its string: in `'it's'` only the last one does. */
function isStringEnd(text: string, from: number): boolean {
  let at = from
  while (/^\s$/.test(text.charAt(at))) at++
  return ['', ',', ':', '}', ']'].includes(text.charAt(at))
}

/** Skips white space and comments. */
function skipBlanks(reader: Reader): void {
  const { text } = reader
  for (;;) {
    while (/^\s$/.test(text.charAt(reader.at))) reader.at++
    const sign = text.slice(reader.at, reader.at + 2)
    if (sign === '/*') reader.at = findEndOf(text, '*/', reader.at + 2)
    else if (sign === '//' || sign.startsWith('#')) reader.at = findEndOf(text, '\n', reader.at)
    else return
  }
}

function findEndOf(text: string, mark: string, from: number): number {
  const index = text.indexOf(mark, from)
  return index < 0 ? text.length : index + mark.length
}
