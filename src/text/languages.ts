/** A string literal: whether a backslash escapes, whether it may span lines, and what opens code inside it. */
export type Quote = { readonly open: string; readonly close: string; readonly escapes?: true; readonly spans?: true; readonly inner?: string }
export type LineComment = { readonly mark: string; readonly when: (code: string, at: number) => boolean }
export type BlockComment = { readonly open: string; readonly close: string; readonly nested?: true; readonly keep?: string }

/** How a language writes comments, and everything that could be mistaken for one. */
export type Syntax = {
  readonly line: readonly LineComment[]
  readonly blocks: readonly BlockComment[]
  /** Longest opening first. */
  readonly quotes: readonly Quote[]
  /** `'` opens a character, not a string: it may as well be a lifetime or a prime. */
  readonly characters?: true
  /** Has `…${…}…` between backticks, /regular expressions/ or <tags>. */
  readonly templates?: true
  readonly expressions?: true
  readonly tags?: true
  /** What is not understood here: code that has it is left as it is. */
  readonly doubt?: RegExp
}

const lineStart = (code: string, at: number): boolean => {
  for (let before = at - 1; before >= 0 && code.charAt(before) !== '\n'; before--) if (!isSpace(code.charAt(before))) return false
  return true
}
const isSpace = (character: string): boolean => character === ' ' || character === '\t' || character === '\n' || character === '\r' || character === ''
const isSymbol = (character: string): boolean => character !== '' && '!#$%&*+./<=>?@\\^|-~:'.includes(character)

const always = (): boolean => true
const notInUrl = (code: string, at: number): boolean => code.charAt(at - 1) !== ':'
const afterGap = (code: string, at: number): boolean => isSpace(code.charAt(at - 1))
const notAttribute = (code: string, at: number): boolean => afterGap(code, at) && code.charAt(at + 1) !== '['
/** `deploy --task #42` is meant as it looks, whatever a shell makes of it. */
const looseHash = (code: string, at: number): boolean => afterGap(code, at) && (isSpace(code.charAt(at + 1)) || lineStart(code, at))
/** An apostrophe opens a string or is one: a comment stands where those before it on its line pair up. */
const yamlHash = (code: string, at: number): boolean => {
  if (!looseHash(code, at)) return false
  const before = code.slice(Math.max(0, at - 300), at)
  const line = before.slice(before.lastIndexOf('\n') + 1)
  return line.length < 300 && pairsUp(line, '"') && pairsUp(line, "'")
}
/** `5 --1` is a subtraction to some databases. */
const sqlDash = (code: string, at: number): boolean => isSpace(code.charAt(at + 2)) || code.charAt(at + 2) === '-' || lineStart(code, at)
/** `-->` and `|--` are operators. */
const haskellDash = (code: string, at: number): boolean => !isSymbol(code.charAt(at - 1)) && !/[^-]/.test(symbolsFrom(code, at))

function symbolsFrom(code: string, at: number): string {
  let end = at
  while (end - at < 100 && isSymbol(code.charAt(end))) end++
  return code.slice(at, end)
}

/** Whether a mark occurs an even number of times. */
export function pairsUp(text: string, mark: string): boolean {
  let even = true
  for (let at = text.indexOf(mark); at >= 0; at = text.indexOf(mark, at + mark.length)) even = !even
  return even
}

const slashes: LineComment = { mark: '//', when: notInUrl }
const hash: LineComment = { mark: '#', when: always }
const spacedHash: LineComment = { mark: '#', when: looseHash }
const lineHash: LineComment = { mark: '#', when: lineStart }
const slashStar: BlockComment = { open: '/*', close: '*/' }

const double: Quote = { open: '"', close: '"', escapes: true }
const single: Quote = { open: "'", close: "'", escapes: true }
const tripleDouble: Quote = { open: '"""', close: '"""', escapes: true, spans: true }
const tripleSingle: Quote = { open: "'''", close: "'''", escapes: true, spans: true }
const spanning = (quote: Quote): Quote => ({ ...quote, spans: true })
const raw = (mark: string): Quote => ({ open: mark, close: mark })
const around = (quote: Quote, inner: string): Quote => ({ ...quote, inner })

const script: Syntax = { line: [slashes], blocks: [slashStar], quotes: [double, single], templates: true, expressions: true, tags: true }
const braces: Syntax = { line: [slashes], blocks: [slashStar], quotes: [double], characters: true }
const c: Syntax = { ...braces, doubt: /R"|\\\r?\n/ }
const csharp: Syntax = { ...braces, quotes: [around({ ...double, open: '$"' }, '{'), double], doubt: /@\$?"|"""/ }
const go: Syntax = { ...braces, quotes: [double, spanning(raw('`'))] }
const java: Syntax = { ...braces, quotes: [tripleDouble, double] }
const nested: Syntax = { ...braces, blocks: [{ ...slashStar, nested: true }] }
const rust: Syntax = { ...nested, quotes: [spanning(double)], doubt: /(?<!\w)[bc]?r#{0,5}"/ }
const kotlin: Syntax = { ...nested, quotes: [spanning(raw('"""')), around(double, '${')] }
const swift: Syntax = { ...nested, quotes: [tripleDouble, around(double, '\\(')], doubt: /#"/ }
const php: Syntax = {
  line: [slashes, { mark: '#', when: notAttribute }],
  blocks: [slashStar],
  quotes: [around(spanning(double), '{$'), spanning(single)],
  doubt: /<<<|\?>/,
}
const css: Syntax = { line: [], blocks: [slashStar], quotes: [double, single, { open: 'url(', close: ')' }] }
const scss: Syntax = { ...css, line: [slashes] }

const python: Syntax = {
  line: [hash],
  blocks: [],
  quotes: [
    { ...tripleDouble, open: 'f"""' },
    { ...tripleSingle, open: "f'''" },
    around({ ...double, open: 'f"' }, '{'),
    around({ ...single, open: "f'" }, '{'),
    tripleDouble,
    tripleSingle,
    double,
    single,
  ],
  doubt: /(?<![\w"'])(?:F|[rR][fF]|[fF][rR])["']/,
}
const shell: Syntax = {
  line: [spacedHash],
  blocks: [],
  quotes: [{ ...spanning(single), open: "$'" }, spanning(raw("'")), around(spanning(double), '$('), { open: '`', close: '`', escapes: true }],
  doubt: /(?<!<)<<(?!<)|\$\{[^}\n]{0,100}\s#/,
}
const ruby: Syntax = {
  line: [spacedHash],
  blocks: [],
  quotes: [around(double, '#{'), single, around({ open: '`', close: '`', escapes: true }, '#{')],
  expressions: true,
  doubt: /<<[~-]?['"`A-Za-z_]|^=begin|%[qQwWiIrsx]?[({[<|!]|\?["'#`]|\w \/[^ \n]|^__END__/m,
}
const yaml: Syntax = { line: [{ mark: '#', when: yamlHash }], blocks: [], quotes: [], doubt: /[|>][-+\d]{0,2}[ \t]*(?:#.*)?$|:[ \t]+["'][^"'\n]*$/m }
const toml: Syntax = { line: [hash], blocks: [], quotes: [tripleDouble, spanning(raw("'''")), double, raw("'")] }
const make: Syntax = { line: [spacedHash], blocks: [], quotes: [around(double, '$('), raw("'")] }
const docker: Syntax = { line: [lineHash], blocks: [], quotes: [], doubt: /<</ }
const perl: Syntax = { line: [lineHash], blocks: [], quotes: [], doubt: /^=\w|<<|\bq[qwrx]?\s?[^\w\s,;=)]|^__(?:END|DATA)__/m }
const r: Syntax = { line: [hash], blocks: [], quotes: [spanning(double), spanning(single), raw('`')], doubt: /\b[rR]["']/ }

const sql: Syntax = {
  line: [{ mark: '--', when: sqlDash }],
  blocks: [{ ...slashStar, open: '/*!', keep: '/*!' }, { ...slashStar, open: '/*+', keep: '/*+' }, slashStar],
  quotes: [spanning(raw("'")), raw('"'), raw('`')],
  doubt: /\\'|\$\w{0,60}\$/,
}
const lua: Syntax = {
  line: [{ mark: '--', when: always }],
  blocks: [{ open: '--[[', close: ']]' }],
  quotes: [double, single, { open: '[[', close: ']]', spans: true }],
  doubt: /\[=+\[/,
}
const haskell: Syntax = {
  line: [{ mark: '--', when: haskellDash }],
  blocks: [
    { open: '{-#', close: '#-}', keep: '{-#' },
    { open: '{-', close: '-}', nested: true },
  ],
  quotes: [double],
  characters: true,
  doubt: /\[\w{0,60}\|/,
}

const families: readonly (readonly [names: string, syntax: Syntax])[] = [
  ['js javascript jsx mjs cjs ts typescript tsx mts cts jsonc json5', script],
  ['c h cpp c++ cc cxx hpp objc', c],
  ['cs csharp c#', csharp],
  ['go golang', go],
  ['java', java],
  ['kotlin kt kts', kotlin],
  ['rust rs', rust],
  ['swift', swift],
  ['php', php],
  ['css', css],
  ['scss less', scss],
  ['py python python3', python],
  ['sh bash zsh shell', shell],
  ['rb ruby', ruby],
  ['yaml yml', yaml],
  ['toml', toml],
  ['make makefile', make],
  ['dockerfile docker', docker],
  ['perl pl', perl],
  ['r', r],
  ['sql mysql postgres postgresql sqlite', sql],
  ['lua', lua],
  ['haskell hs', haskell],
]

/** The syntax of each language known by name. */
export const syntaxes: ReadonlyMap<string, Syntax> = new Map(families.flatMap(([names, syntax]) => names.split(' ').map((name) => [name, syntax] as const)))
export const markup: ReadonlySet<string> = new Set('html htm xhtml xml svg vue svelte'.split(' '))
