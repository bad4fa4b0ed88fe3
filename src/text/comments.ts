/** How a language writes comments that stand on lines of their own, and what may hold text that only looks like one. */
type Syntax = {
  readonly line?: string
  readonly block?: readonly [open: string, close: string]
  /** False where the mark means something else behind code. */
  readonly trailing?: boolean
  /** Opens and closes text that spans lines. */
  readonly spans?: readonly string[]
  /** Code that has this is not understood, and left as it is. */
  readonly doubt?: RegExp
}

const slashes: Syntax = { line: '//', block: ['/*', '*/'], doubt: /^[ \t]*\/\/.*\\$|R"|"""/m }
const script: Syntax = { ...slashes, spans: ['`'], doubt: /^[ \t]*\/\/.*\\$/m }
const style: Syntax = { block: ['/*', '*/'] }
const hash: Syntax = { line: '#', doubt: /<<|^=begin|[|>][+-]?\s*$|"""|'''/m }
const python: Syntax = { line: '#', spans: ['"""', "'''"] }
const sql: Syntax = { line: '--', block: ['/*', '*/'], doubt: /^[^'\n\r\u2028\u2029]*'[^'\n\r\u2028\u2029]*$/m }
const lua: Syntax = { line: '--', block: ['--[[', ']]'], doubt: /=\s*\[\[/ }
const haskell: Syntax = { line: '-- ', block: ['{- ', '-}'] }
const markup: Syntax = { block: ['<!--', '-->'], doubt: /<script|<style|<textarea|<!--\[|<!\[CDATA/i }

const languages: readonly (readonly [names: string, Syntax])[] = [
  ['js javascript jsx mjs cjs ts typescript tsx go golang', script],
  ['java c h cc cpp c++ cxx hpp cs csharp c# rs rust swift kt kotlin scala dart php scss less', slashes],
  ['css', style],
  ['sh bash zsh shell rb ruby yaml yml toml make makefile r', hash],
  ['dockerfile perl pl', { ...hash, trailing: false }],
  ['py python', python],
  ['sql', sql],
  ['lua', lua],
  ['hs haskell', haskell],
  ['html xml svg vue svelte', markup],
]
const syntaxes = new Map(languages.flatMap(([names, syntax]) => names.split(' ').map((name) => [name, syntax])))

/**
 * Code without its comments: those that have lines of their own, and those behind code on a line that holds nothing
 * they could be the inside of. Where only a parser could tell them from a string they stay. Unchanged where the
 * language, or the code, is not understood.
 */
export function uncomment(code: string, language: string): string {
  const syntax = syntaxes.get(language.toLowerCase())
  if (syntax === undefined || syntax.doubt?.test(code)) return code
  const kept: string[] = []
  let closing: string | undefined
  let span: string | undefined
  for (const line of code.split('\n')) {
    if (closing !== undefined) {
      const end = line.indexOf(closing)
      if (end < 0) continue
      const rest = line.slice(end + closing.length)
      closing = undefined
      if (rest.trim() !== '') kept.push(rest)
      continue
    }
    const comment = span === undefined ? commentAt(line, syntax, kept.length === 0) : undefined
    if (comment === undefined) {
      kept.push(span === undefined ? withoutTrailing(line, syntax) : line)
      span = spanAfter(line, syntax.spans ?? [], span)
    } else if (comment !== 'line') {
      if (comment.rest.trim() !== '') kept.push(comment.rest)
      closing = comment.closing
    }
  }
  // a comment that nobody closes may be no comment at all
  return closing === undefined ? kept.join('\n') : code
}

type Found = { readonly rest: string; readonly closing: string | undefined }

/** The comment a line begins with: to its end, or up to a closing mark on this line or a later one. */
function commentAt(line: string, { line: mark, block }: Syntax, first: boolean): 'line' | Found | undefined {
  const text = line.trimStart()
  if (block !== undefined && text.startsWith(block[0]) && !text.startsWith('/*+')) {
    const end = text.indexOf(block[1], block[0].length)
    return end < 0 ? { rest: '', closing: block[1] } : { rest: text.slice(end + block[1].length), closing: undefined }
  }
  if (mark === undefined || !text.startsWith(mark) || (first && text.startsWith('#!')) || text.startsWith('#['))
    return undefined
  return 'line'
}

/** Quotation marks, escapes, slashes and tags may hold what looks like a comment: behind them it is left alone. */
const uncertain = /["'`\\/<]/

/** The line without a comment to its end that stands behind code. */
function withoutTrailing(line: string, { line: mark, trailing = true }: Syntax): string {
  if (mark === undefined || !trailing) return line
  const at = line.indexOf(` ${mark.trim()} `)
  const before = line.slice(0, Math.max(0, at))
  return at < 0 || before.trim() === '' || uncertain.test(before) ? line : before.trimEnd()
}

/** The mark that is still open after this line: it closes only where the same mark stands again. */
function spanAfter(line: string, marks: readonly string[], open: string | undefined): string | undefined {
  let current = open
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '\\') {
      at++
      continue
    }
    const mark = marks.find((one) => line.startsWith(one, at))
    if (mark === undefined) continue
    if (current === undefined) current = mark
    else if (current === mark) current = undefined
    at += mark.length - 1
  }
  return current
}
