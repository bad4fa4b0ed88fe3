import { pairsUp, type Quote, type Syntax } from './languages.ts'

export type Span = readonly [start: number, end: number]

/** Nothing begins here. */
export const none = -1
/** What is not understood: nothing is taken out of code that has it. */
export const doubt = -2

/** The end of the string, template, character or regular expression that begins here, `none` if there is none. */
export function literalEnd(code: string, at: number, syntax: Syntax, spans: readonly Span[]): number {
  const first = code.charAt(at)
  if (first === '\\') return at + 2
  for (const quote of syntax.quotes) if (code.startsWith(quote.open, at)) return quoteEnd(code, at, quote)
  if (syntax.characters && first === "'") return characterEnd(code, at)
  if (syntax.templates && first === '`') return templateEnd(code, at)
  if (syntax.expressions && first === '/' && expectsValue(code, at, spans)) return expressionEnd(code, at)
  return none
}

function quoteEnd(code: string, at: number, { open, close, escapes, spans, inner }: Quote): number {
  for (let next = at + open.length; next < code.length; ) {
    if (code.startsWith(close, next)) return next + close.length
    if (inner !== undefined && code.startsWith(inner, next)) {
      next = innerEnd(code, next + inner.length - 1)
      if (next < 0) return doubt
    } else if (escapes && code.charAt(next) === '\\') next += 2
    else if (!spans && code.charAt(next) === '\n') return doubt
    else next++
  }
  return doubt
}

/** The end of the code inside a string, by its bracket; its own quotation marks must pair up on the way. */
function innerEnd(code: string, at: number): number {
  const open = code.charAt(at)
  const close = open === '(' ? ')' : '}'
  let depth = 0
  for (let next = at; next < code.length && code.charAt(next) !== '\n'; next++) {
    const character = code.charAt(next)
    if (character === open) depth++
    if (character !== close || --depth > 0) continue
    const inside = code.slice(at, next)
    return pairsUp(inside, '"') && pairsUp(inside, "'") && pairsUp(inside, '`') ? next + 1 : doubt
  }
  return doubt
}

function characterEnd(code: string, at: number): number {
  const literal = /'(?:\\[^\n]{1,10}?|[^\\'\n]{1,2})'/y
  literal.lastIndex = at
  return literal.test(code) ? literal.lastIndex : none
}

function templateEnd(code: string, at: number): number {
  /** For each `${` that is open, the braces open inside it. */
  const braces: number[] = []
  let isText = true
  for (let next = at + 1; next < code.length; next++) {
    const character = code.charAt(next)
    if (character === '\\') next++
    else if (character === '`') {
      if (isText && braces.length === 0) return next + 1
      isText = !isText
    } else if (isText && character === '$' && code.charAt(next + 1) === '{') {
      braces.push(0)
      isText = false
      next++
    } else if (!isText) {
      if (character === '"' || character === "'") {
        const end = quoteEnd(code, next, { open: character, close: character, escapes: true })
        if (end === doubt) return doubt
        next = end - 1
      } else if (character === '{') braces.push((braces.pop() ?? 0) + 1)
      else if (character === '}') {
        const open = braces.pop() ?? 0
        if (open > 0) braces.push(open - 1)
        else isText = true
      }
    }
  }
  return doubt
}

/** Whether a slash here opens a regular expression: after an operator or a keyword, not after a value. */
function expectsValue(code: string, at: number, spans: readonly Span[]): boolean {
  let before = at - 1
  let span = spans.length - 1
  for (; before >= 0; before--) {
    const [start, end] = spans[span] ?? [-1, -1]
    if (before < end) {
      before = start
      span--
    } else if (!/\s/.test(code.charAt(before))) break
  }
  if (before < 0 || '(,=:[!&|?{};+-*%~^>'.includes(code.charAt(before))) return true
  return /(?:^|[^\w$.])(?:return|typeof|case|in|of|delete|void|throw|new|else|do|yield|await)$/.test(code.slice(Math.max(0, before - 10), before + 1))
}

function expressionEnd(code: string, at: number): number {
  let isClass = false
  for (let next = at + 1; next < at + 1_000; next++) {
    const character = code.charAt(next)
    if (character === '\n' || character === '') return none
    if (character === '\\') next++
    else if (character === '[') isClass = true
    else if (character === ']') isClass = false
    else if (character === '/' && !isClass) return next + 1
  }
  return doubt
}
