/** The deepest nesting that is read, and the longest text. */
const deepest = 64
const longest = 1_000_000
/** How many beginnings of an object or a list are tried: prose may hold brackets of its own. */
const tries = 32

/** Names through which plain data could reach the prototype of an object. */
const unsafe: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype'])

/**
 * The object or the list in a model's answer, or undefined if there is none. Around it there may be prose and code fences;
 * in it comments, trailing commas, single quotes, names without quotes and the words of Python. Of an answer that
 * breaks off, what is complete is kept. Objects have no prototype, and no name that could reach one.
 *
 * @example
 * repairJson("Sure!\n```json\n{theme: 'dark', urls: ['a', 'b") // { theme: 'dark', urls: ['a'] }
 */
export function repairJson(text: string): unknown {
  const given = text.slice(0, longest)
  if (/^\s*<(?!think|reason|json|answer|output|result)/i.test(given.slice(0, 200))) return undefined
  let best: { readonly value: unknown; readonly length: number } | undefined
  let from = 0
  for (let tried = 0; tried < tries; tried++) {
    const start = nextBracket(given, from)
    if (start < 0) break
    const reading: Reading = { text: given, at: start, isBroken: false }
    const value = readValue(reading, 0)
    const isSomething = value !== undefined && (!reading.isBroken || Object.keys(value as object).length > 0)
    if (isSomething && reading.at - start > (best?.length ?? 0)) best = { value, length: reading.at - start }
    from = isSomething ? reading.at : start + 1
  }
  return best?.value
}

function nextBracket(text: string, from: number): number {
  const [brace, bracket] = [text.indexOf('{', from), text.indexOf('[', from)]
  return brace < 0 || bracket < 0 ? Math.max(brace, bracket) : Math.min(brace, bracket)
}

/** Where reading has come to. Once it is broken, everything that is open closes with what it has. */
type Reading = { readonly text: string; at: number; isBroken: boolean }

/** Not to be told from a value that JSON has: nothing complete stands here. */
function broken(reading: Reading): undefined {
  reading.isBroken = true
  return undefined
}

function readValue(reading: Reading, depth: number): unknown {
  skipBlanks(reading)
  const sign = reading.text.charAt(reading.at)
  if (sign === '{' || sign === '[') {
    if (depth >= deepest) return broken(reading)
    return sign === '{' ? readObject(reading, depth) : readList(reading, depth)
  }
  return sign === '"' || sign === "'" ? readString(reading) : readWord(reading)
}

function readObject(reading: Reading, depth: number): unknown {
  const object: Record<string, unknown> = Object.create(null)
  reading.at++
  while (!closes(reading, '}')) {
    const name = readName(reading)
    skipBlanks(reading)
    if (name === undefined || reading.text.charAt(reading.at) !== ':') return broken(reading) ?? object
    reading.at++
    const value = readValue(reading, depth + 1)
    if (value !== undefined && !unsafe.has(name)) object[name] = value
    if (reading.isBroken) break
  }
  return object
}

function readList(reading: Reading, depth: number): unknown {
  const list: unknown[] = []
  reading.at++
  while (!closes(reading, ']')) {
    const value = readValue(reading, depth + 1)
    if (value !== undefined) list.push(value)
    if (reading.isBroken) break
  }
  return list
}

/** Moves over commas, one too many included, and over the closing bracket if it is there. */
function closes(reading: Reading, bracket: string): boolean {
  for (;;) {
    skipBlanks(reading)
    const sign = reading.text.charAt(reading.at)
    if (sign === '' || sign === bracket) {
      if (sign === '') reading.isBroken = true
      else reading.at++
      return true
    }
    if (sign !== ',') return false
    reading.at++
  }
}

function readName(reading: Reading): string | undefined {
  const sign = reading.text.charAt(reading.at)
  if (sign === '"' || sign === "'") return readString(reading)
  return take(reading, /[\p{L}_$][\p{L}\p{N}_$.-]{0,200}/uy)
}

function take(reading: Reading, pattern: RegExp): string | undefined {
  pattern.lastIndex = reading.at
  const found = pattern.exec(reading.text)?.[0]
  reading.at += found?.length ?? 0
  return found
}

const words: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ...Object.entries({ true: true, True: true, false: false, False: false, null: null, None: null, undefined: null }),
  ...['NaN', 'Infinity', '-Infinity'].map((word) => [word, null] as const),
])

/** A number or one of the few words. What the text ends with may be cut off, so it is not believed. */
function readWord(reading: Reading): unknown {
  const word = take(reading, /[-+]?[\w.][\w.+-]{0,400}/y) ?? ''
  if (word === '' || reading.at >= reading.text.length) return broken(reading)
  if (words.has(word)) return words.get(word)
  return /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i.test(word) ? finite(Number(word)) : broken(reading)
}

const finite = (number: number): number | null => (Number.isFinite(number) ? number : null)

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }

function readString(reading: Reading): string | undefined {
  const { text } = reading
  const quote = text.charAt(reading.at)
  let string = ''
  let from = reading.at + 1
  for (let at = from; at < text.length; at++) {
    const sign = text.charAt(at)
    if (sign === '\\') {
      const { is, length } = escaped(text, at)
      string += text.slice(from, at) + is
      at += length - 1
      from = at + 1
    } else if (sign === quote && (quote === '"' || ends(text, at + 1))) {
      reading.at = at + 1
      return string + text.slice(from, at)
    }
  }
  reading.at = text.length
  return broken(reading)
}

function escaped(text: string, at: number): { readonly is: string; readonly length: number } {
  const code = /^[\da-f]{4}$/i.exec(text.slice(at + 2, at + 6))?.[0]
  const sign = text.charAt(at + 1)
  if (sign === 'u' && code !== undefined) return { is: String.fromCharCode(Number.parseInt(code, 16)), length: 6 }
  return { is: Object.hasOwn(escapes, sign) ? (escapes[sign] ?? '') : sign, length: 2 }
}

/** Whether a single quote ends its string: in `'it's'` only the last one does. */
function ends(text: string, from: number): boolean {
  let at = from
  while (/^\s$/.test(text.charAt(at))) at++
  return ['', ',', ':', '}', ']'].includes(text.charAt(at))
}

/** Moves over white space and comments. */
function skipBlanks(reading: Reading): void {
  const { text } = reading
  for (;;) {
    while (/^\s$/.test(text.charAt(reading.at))) reading.at++
    const sign = text.slice(reading.at, reading.at + 2)
    if (sign === '/*') reading.at = after(text, '*/', reading.at + 2)
    else if (sign === '//' || sign.startsWith('#')) reading.at = after(text, '\n', reading.at)
    else return
  }
}

function after(text: string, mark: string, from: number): number {
  const place = text.indexOf(mark, from)
  return place < 0 ? text.length : place + mark.length
}
