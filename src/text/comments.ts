import { type FencedLine, splitFencedLines } from './fences.ts'

/** Comment syntax of a language. */
type Syntax = {
  /** Starts a comment that ends with the line. */
  readonly line?: string
  readonly block?: readonly [open: string, close: string]
  /** False if the line mark can mean something else after code. */
  readonly trailing?: boolean
  /** Delimiters of strings that span lines. */
  readonly spans?: readonly string[]
  /** Constructs that need a real parser; code that has one is left unchanged. */
  readonly unsupported?: RegExp
}

const slashes: Syntax = { line: '//', block: ['/*', '*/'], unsupported: /^[ \t]*\/\/.*\\$|R"|"""/m }
const script: Syntax = { ...slashes, spans: ['`'], unsupported: /^[ \t]*\/\/.*\\$/m }
const style: Syntax = { block: ['/*', '*/'] }
const hash: Syntax = { line: '#', unsupported: /<<|^=begin|[|>][+-]?\s*$|"""|'''/m }
const python: Syntax = { line: '#', spans: ['"""', "'''"] }
const sql: Syntax = { line: '--', block: ['/*', '*/'], unsupported: /^[^'\n\r\u2028\u2029]*'[^'\n\r\u2028\u2029]*$/m }
const lua: Syntax = { line: '--', block: ['--[[', ']]'], unsupported: /=\s*\[\[/ }
const haskell: Syntax = { line: '-- ', block: ['{- ', '-}'] }
const markup: Syntax = { block: ['<!--', '-->'], unsupported: /<script|<style|<textarea|<!--\[|<!\[CDATA/i }

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
 * Removes comments from the fenced code of a text. With a language, the whole text is code of that language. Code in an
 * unknown language is left unchanged.
 *
 * @example
 * stripComments('```js\n// now\nrun()\n```') // '```js\nrun()\n```'
 */
export function stripComments(text: string, language?: string): string {
  if (language !== undefined) return uncomment(text, language)
  if (!text.includes('```') && !text.includes('~~~')) return text
  const lines = splitFencedLines(text)
  const result: string[] = []
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] as FencedLine
    if (line.fence !== 'inside') {
      result.push(text.slice(line.start, line.end))
      continue
    }
    let last = index
    while (lines[last + 1]?.fence === 'inside') last++
    const block = text.slice(line.start, lines[last]?.end)
    const stripped = uncomment(block, line.language)
    if (stripped !== '' || block === '') result.push(stripped)
    index = last
  }
  return result.join('\n')
}

/**
 * Removes comments that have lines of their own, and trailing comments on lines without anything that could contain the
 * mark. A comment that only a parser could tell from a string stays.
 */
function uncomment(code: string, language: string): string {
  const syntax = syntaxes.get(language.toLowerCase())
  if (syntax === undefined || syntax.unsupported?.test(code)) return code
  const result: string[] = []
  let closing: string | undefined
  let span: string | undefined
  for (const line of code.split('\n')) {
    if (closing !== undefined) {
      const end = line.indexOf(closing)
      if (end < 0) continue
      const rest = line.slice(end + closing.length)
      closing = undefined
      if (rest.trim() !== '') result.push(rest)
      continue
    }
    const comment = span === undefined ? findLeadingComment(line, syntax, result.length === 0) : undefined
    if (comment === undefined) {
      result.push(span === undefined ? dropTrailingComment(line, syntax) : line)
      span = findOpenSpan(line, syntax.spans ?? [], span)
    } else if (comment !== 'line') {
      if (comment.rest.trim() !== '') result.push(comment.rest)
      closing = comment.closing
    }
  }
  // An unclosed comment may not be a comment at all.
  return closing === undefined ? result.join('\n') : code
}

type BlockComment = { readonly rest: string; readonly closing: string | undefined }

/**
 * Finds the comment a line begins with: `line`, or a block that ends on this line or (with `closing`) on a later one.
 */
function findLeadingComment(
  line: string,
  { line: mark, block }: Syntax,
  isFirstLine: boolean,
): 'line' | BlockComment | undefined {
  const text = line.trimStart()
  if (block !== undefined && text.startsWith(block[0]) && !text.startsWith('/*+')) {
    const end = text.indexOf(block[1], block[0].length)
    return end < 0 ? { rest: '', closing: block[1] } : { rest: text.slice(end + block[1].length), closing: undefined }
  }
  if (mark === undefined || !text.startsWith(mark) || (isFirstLine && text.startsWith('#!')) || text.startsWith('#['))
    return undefined
  return 'line'
}

/** Strings, escapes, regular expressions and tags may contain a comment mark; after them, a comment is left alone. */
const mayContainMark = /["'`\\/<]/

function dropTrailingComment(line: string, { line: mark, trailing = true }: Syntax): string {
  if (mark === undefined || !trailing) return line
  const index = line.indexOf(` ${mark.trim()} `)
  const before = line.slice(0, Math.max(0, index))
  return index < 0 || before.trim() === '' || mayContainMark.test(before) ? line : before.trimEnd()
}

/** Returns the delimiter still open after this line; only the same delimiter closes it. */
function findOpenSpan(line: string, delimiters: readonly string[], open: string | undefined): string | undefined {
  let current = open
  for (let index = 0; index < line.length; index++) {
    if (line[index] === '\\') {
      index++
      continue
    }
    const delimiter = delimiters.find((candidate) => line.startsWith(candidate, index))
    if (delimiter === undefined) continue
    if (current === undefined) current = delimiter
    else if (current === delimiter) current = undefined
    index += delimiter.length - 1
  }
  return current
}
