import { TextBuffer, unreadableFileError } from '../limits.ts'

/** An open array or object. */
type Level = { readonly path: string; readonly closingBracket: ']' | '}'; index: number; isEmpty: boolean }

const maxDepth = 200
const tokenPattern = /\s*(?:([[\]{},:])|("[^"\\]*(?:\\.[^"\\]*)*")|(⟨secret:\d+⟩|[^\s[\]{},:"]+))/gsy
/** A masked number is a literal too. */
const literalPattern = /^(?:true|false|null|⟨secret:\d+⟩|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

/**
 * Formats each value of a JSON document as one line after its path, so that searches find it by both; returns undefined
 * if the text is not JSON. Numbers keep their notation. No object tree is built, which bounds the memory.
 *
 * @example
 * parseJsonDocument('{"orders":[{"price":12,"to":"Ann"}]}', 100) // 'orders[0].price: 12\norders[0].to: Ann\n'
 */
export function parseJsonDocument(json: string, maxCharacters: number): string | undefined {
  const flattener = new JsonFlattener(maxCharacters)
  tokenPattern.lastIndex = 0
  const end = json.trimEnd().length
  while (tokenPattern.lastIndex < end) {
    const [, punctuation, quoted, literal] = tokenPattern.exec(json) ?? []
    const isValid =
      punctuation !== undefined
        ? flattener.addPunctuation(punctuation)
        : quoted !== undefined
          ? flattener.addString(quoted)
          : flattener.addLiteral(literal)
    if (!isValid) return undefined
  }
  return flattener.result
}

/** Parses JSON token by token; every method returns false for a token that is not allowed at its position. */
class JsonFlattener {
  private readonly buffer: TextBuffer
  private readonly levels: Level[] = []
  private expected: 'value' | 'name' | 'colon' | 'end' = 'value'
  private name = ''

  constructor(maxCharacters: number) {
    this.buffer = new TextBuffer(maxCharacters)
  }

  /** The lines, or undefined if the document is incomplete. */
  get result(): string | undefined {
    return this.expected === 'end' && this.levels.length === 0 ? this.buffer.text : undefined
  }

  addPunctuation(character: string): boolean {
    if (character === '[' || character === '{') return this.expected === 'value' && this.open(character)
    if (character === ']' || character === '}') return this.close(character)
    if (character === ':') return this.advance('colon', 'value')
    const level = this.levels.at(-1)
    if (level === undefined || this.expected !== 'end') return false
    level.index++
    this.expected = level.closingBracket === '}' ? 'name' : 'value'
    return true
  }

  addString(quoted: string): boolean {
    const text = parseString(quoted)
    if (text === undefined) return false
    if (this.expected !== 'name') return this.addValue(text)
    this.name = text
    this.markNotEmpty()
    return this.advance('name', 'colon')
  }

  addLiteral(text: string | undefined): boolean {
    return text !== undefined && literalPattern.test(text) && this.addValue(text)
  }

  private addValue(text: string): boolean {
    if (this.expected !== 'value') return false
    const path = this.currentPath()
    this.buffer.write(`${path === '' ? '' : `${path}: `}${text}\n`)
    this.markNotEmpty()
    return this.advance('value', 'end')
  }

  private open(bracket: '[' | '{'): boolean {
    if (this.levels.length >= maxDepth)
      throw unreadableFileError(`is nested deeper than ${maxDepth} levels. Flatten it, or save it as text`)
    const path = this.currentPath()
    this.markNotEmpty()
    this.levels.push({ path, closingBracket: bracket === '[' ? ']' : '}', index: 0, isEmpty: true })
    this.expected = bracket === '[' ? 'value' : 'name'
    return true
  }

  private close(bracket: ']' | '}'): boolean {
    const level = this.levels.pop()
    if (level?.closingBracket !== bracket || (this.expected !== 'end' && !level.isEmpty)) return false
    this.expected = 'value'
    if (level.isEmpty) return this.addValue(bracket === ']' ? '[]' : '{}')
    return this.advance('value', 'end')
  }

  private advance(from: typeof this.expected, to: typeof this.expected): boolean {
    if (this.expected !== from) return false
    this.expected = to
    return true
  }

  private markNotEmpty(): void {
    const level = this.levels.at(-1)
    if (level !== undefined) level.isEmpty = false
  }

  private currentPath(): string {
    const level = this.levels.at(-1)
    if (level === undefined) return ''
    if (level.closingBracket === ']') return `${level.path}[${level.index}]`
    if (!/^[\p{L}\p{N}_$-]+$/u.test(this.name)) return `${level.path}[${JSON.stringify(this.name)}]`
    return level.path === '' ? this.name : `${level.path}.${this.name}`
  }
}

function parseString(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return undefined
  }
}
