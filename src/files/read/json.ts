import { unreadable } from '../unreadable.ts'
import { Paper } from './paper.ts'

/** An open list or object: where in it we are, and the path to it. */
type Level = { readonly path: string; readonly closes: ']' | '}'; index: number; isEmpty: boolean }

const deepest = 200
const token = /\s*(?:([[\]{},:])|("[^"\\]*(?:\\.[^"\\]*)*")|([^\s[\]{},:"]+))/gsy
const literal = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/

/**
 * Every value of a JSON text on a line of its own, after the path to it, so that it can be found by both; undefined if it is no
 * JSON. Numbers stay as they are written, and nothing but the lines is ever built of them.
 *
 * @example
 * jsonText('{"orders":[{"price":12,"to":"Ann"}]}', 100) // 'orders[0].price: 12\norders[0].to: Ann\n'
 */
export function jsonText(json: string, most: number): string | undefined {
  const lines = new Lines(most)
  token.lastIndex = 0
  const end = json.trimEnd().length
  while (token.lastIndex < end) {
    const [, sign, text, bare] = token.exec(json) ?? []
    const isTaken = sign !== undefined ? lines.sign(sign) : text !== undefined ? lines.text(text) : lines.bare(bare)
    if (!isTaken) return undefined
  }
  return lines.whole
}

/** Lines as they are read, from token to token. Each step tells whether the token may stand where it does. */
class Lines {
  private readonly paper: Paper
  private readonly levels: Level[] = []
  private expects: 'value' | 'name' | 'colon' | 'end' = 'value'
  private name = ''

  constructor(most: number) {
    this.paper = new Paper(most)
  }

  /** The lines, if everything that was opened is closed. */
  get whole(): string | undefined {
    return this.expects === 'end' && this.levels.length === 0 ? this.paper.text : undefined
  }

  sign(sign: string): boolean {
    if (sign === '[' || sign === '{') return this.expects === 'value' && this.open(sign)
    if (sign === ']' || sign === '}') return this.close(sign)
    if (sign === ':') return this.go('colon', 'value')
    const level = this.levels.at(-1)
    if (level === undefined || this.expects !== 'end') return false
    level.index++
    this.expects = level.closes === '}' ? 'name' : 'value'
    return true
  }

  text(quoted: string): boolean {
    const text = unquoted(quoted)
    if (text === undefined) return false
    if (this.expects !== 'name') return this.value(text)
    this.name = text
    this.touched()
    return this.go('name', 'colon')
  }

  bare(text: string | undefined): boolean {
    return text !== undefined && literal.test(text) && this.value(text)
  }

  private value(text: string): boolean {
    if (this.expects !== 'value') return false
    const path = this.path()
    this.paper.write(`${path === '' ? '' : `${path}: `}${text}\n`)
    this.touched()
    return this.go('value', 'end')
  }

  private open(sign: '[' | '{'): boolean {
    if (this.levels.length >= deepest)
      throw unreadable(`is nested deeper than ${deepest} levels. Flatten it, or save it as text`)
    const path = this.path()
    this.touched()
    this.levels.push({ path, closes: sign === '[' ? ']' : '}', index: 0, isEmpty: true })
    this.expects = sign === '[' ? 'value' : 'name'
    return true
  }

  private close(sign: ']' | '}'): boolean {
    const level = this.levels.pop()
    if (level?.closes !== sign || (this.expects !== 'end' && !level.isEmpty)) return false
    this.expects = 'value'
    if (level.isEmpty) return this.value(sign === ']' ? '[]' : '{}')
    return this.go('value', 'end')
  }

  private go(from: typeof this.expects, to: typeof this.expects): boolean {
    if (this.expects !== from) return false
    this.expects = to
    return true
  }

  private touched(): void {
    const level = this.levels.at(-1)
    if (level !== undefined) level.isEmpty = false
  }

  private path(): string {
    const level = this.levels.at(-1)
    if (level === undefined) return ''
    if (level.closes === ']') return `${level.path}[${level.index}]`
    if (!/^[\p{L}\p{N}_$-]+$/u.test(this.name)) return `${level.path}[${JSON.stringify(this.name)}]`
    return level.path === '' ? this.name : `${level.path}.${this.name}`
  }
}

function unquoted(quoted: string): string | undefined {
  try {
    return JSON.parse(quoted) as string
  } catch {
    return undefined
  }
}
