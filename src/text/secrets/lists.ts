import { passwordTriggers } from './namedValues.ts'
import { type ListReader, noMatches, type SecretMatch, type SecretRule } from './rule.ts'
import { type Columns, columnName, findColumns, isColumnSecret } from './tables.ts'

type Span = { readonly start: number; readonly end: number }
const maxColumns = 60
const maxValueCharacters = 2_000
const maxRowCharacters = 20_000

/** Reads rows below the header of a table, up to the first line with fewer cells. */
class TableReader implements ListReader {
  at: number
  resumeAt: number
  isDone = false
  private readonly columns: Columns
  private readonly cell: RegExp
  private readonly delimiter: string

  constructor(columns: Columns, delimiter: string, lineBreak: string, at: number) {
    this.columns = columns
    this.cell = cellPattern(delimiter, lineBreak)
    this.delimiter = delimiter
    this.at = at
    this.resumeAt = at
  }

  read(text: string, to: number): readonly SecretMatch[] {
    const found: SecretMatch[] = []
    while (this.at < to && !this.isDone) {
      const row = readRow(text, this.at, this.cell, this.delimiter)
      const isSeparator = row !== undefined && separatorLine.test(text.slice(this.at, row.end))
      const isShort = row === undefined || row.cells.length < this.columns.count
      this.resumeAt = this.at
      this.at = row?.end ?? to
      // The end of the text may cut the row off.
      this.isDone = row === undefined || row.isLast || (isShort && !isSeparator && row.end < text.length)
      // The line after a table may be the header of another.
      if (this.isDone && isShort) this.at = this.resumeAt
      if (!isShort && !isSeparator) found.push(...this.findInRow(text, row.cells))
    }
    return found
  }

  private findInRow(text: string, cells: readonly Span[]): readonly SecretMatch[] {
    const surplus = cells.length - this.columns.count
    return this.columns.secret.flatMap((column) => {
      const own = cells.slice(column.index, column.index + surplus + 1)
      // A value may contain the delimiter.
      const whole = { start: own[0]?.start ?? 0, end: own.at(-1)?.end ?? 0 }
      for (const cell of surplus === 0 ? own : [whole, ...own]) {
        const span = trim(text, cell)
        if (isColumnSecret(text.slice(span.start, span.end), column, this.columns.isAccount))
          return [{ kind: column.kind, ...span }]
      }
      return []
    })
  }
}

const isPipe = (delimiter: string): boolean => delimiter === '|' || delimiter === '│'

const cellPatterns = new Map<string, RegExp>()

/** Pattern of a cell and of the sign that ends it. In a string, tabs and line breaks are escaped. */
function cellPattern(delimiter: string, lineBreak: string): RegExp {
  const known = cellPatterns.get(delimiter + lineBreak)
  if (known !== undefined) return known
  const [ends, breaks] = [delimiter, lineBreak].map((sign) => sign.replace(/[\\|]/g, String.raw`\$&`))
  const character = lineBreak === '\n' ? `(?!${ends})[^\n]` : String.raw`(?!${ends}|${breaks})(?:\\[^]|[^"\\\n])`
  const quoted = String.raw`(\\{0,3}")((?:(?!\2)[^]|\2\2){0,${maxValueCharacters}})\2[ \r]*`
  const bare = `${isPipe(delimiter) ? String.raw`(?:\\\||${character})` : `(?:${character})`}{0,${maxValueCharacters}}`
  const pattern = new RegExp(
    `( *)(?! )(?:${isPipe(delimiter) ? '()()(?!)' : quoted}|(${bare}))(${ends}|${breaks}|(?=["\n])|$)`,
    'y',
  )
  cellPatterns.set(delimiter + lineBreak, pattern)
  return pattern
}

type Row = { readonly cells: readonly Span[]; readonly end: number; readonly isLast: boolean }
/** Lines of signs below a header and around a table. */
const separatorLine = /^(?:[-=+|:─═┼╪├┤└┴┘╞╡┌┬┐│ \t\r\n]|\\[nr]){3,}$/

function readRow(text: string, at: number, cell: RegExp, delimiter: string): Row | undefined {
  const cells: Span[] = []
  cell.lastIndex = at
  for (let from = at; cells.length <= maxColumns && from - at < maxRowCharacters; from = cell.lastIndex) {
    const match = cell.exec(text)
    if (match === null) return undefined
    const { 1: space = '', 2: quote, 3: quoted = '', 4: bare = '', 5: ending = '' } = match
    const start = from + space.length + (quote?.length ?? 0)
    cells.push({ start, end: start + (quote === undefined ? bare : quoted).length })
    // A string that holds the table ends with a quotation mark.
    if (ending !== delimiter)
      return { cells, end: cell.lastIndex, isLast: ending === '' && cell.lastIndex < text.length }
  }
  return undefined
}

const marks = ['**', '`', '"', "'"]

/** Removes spaces, and quotes or emphasis on both sides. */
function trim(text: string, span: Span): Span {
  let { start, end } = span
  while (start < end && isSpace(text.charCodeAt(start))) start++
  while (start < end && isSpace(text.charCodeAt(end - 1))) end--
  for (const mark of marks)
    if (end - start > 2 * mark.length && text.startsWith(mark, start) && text.startsWith(mark, end - mark.length))
      [start, end] = [start + mark.length, end - mark.length]
  return { start, end }
}
const isSpace = (code: number): boolean => code <= 32

/** Ends the name of a column: spaces, and a delimiter or the end of the line. */
const columnEnd = new RegExp(
  String.raw`(?:${columnName})(?:["'\`*\]]|\\+")*[ \t]{0,80}(?:[,;|│]|(?<=\t)|\\{1,4}t|(?:\r|\\{1,4}r)?(?:\n|\\{1,4}n))`,
  'iy',
)
/** Characters of a header before and after a name. */
const maxHeaderCharacters = 500
/** Beginning of a string that holds a table: `"stdout": "`. */
const stringStart = /^.*[:=([][ \t]?\\{0,3}["'`](?![,;])/
/** Cells of a header are names of up to three words, of up to two in text with spaces after its commas. */
const headerCell = /^[\p{L}\p{M}\p{N}_.#/-]{1,40}(?: [\p{L}\p{M}\p{N}_.#/-]{1,40}){0,2}$/u
const spacedCell = /^[\p{L}\p{M}\p{N}_.#/-]{1,40}(?: [\p{L}\p{M}\p{N}_.#/-]{1,40})?$/u
const statementStart = /^(?:select|from|insert|import|return|const|let|var|use|and|or)\b/i

/** Opens the table whose header has a name at an index. */
function openTable(text: string, at: number): readonly SecretMatch[] | number | ListReader {
  columnEnd.lastIndex = at
  if (!columnEnd.test(text)) return noMatches
  const after = text.slice(at, at + maxHeaderCharacters)
  const ending = /\n|\\{1,4}n/.exec(after)
  if (ending === null) return at + after.length
  const [lineBreak, lineEnd] = [ending[0], at + ending.index]
  const before = text.slice(Math.max(0, at - maxHeaderCharacters), at)
  const breakAt = before.lastIndexOf(lineBreak)
  const line = breakAt < 0 ? before : before.slice(breakAt + lineBreak.length)
  const lead = stringStart.exec(line)?.[0].length ?? 0
  if (line.length === maxHeaderCharacters && lead === 0) return lineEnd
  const header = text.slice(at - line.length + lead, lineEnd)
  const tab = lineBreak === '\n' ? '\t' : lineBreak.replace('n', 't')
  const delimiter = ['|', '│', tab, ';', ','].find((sign) => header.includes(sign))
  if (delimiter === undefined) return lineEnd
  const names = header.split(delimiter).map((name) => name.replace(/(?<!\\)\\+r$|[\\\s"'`*[\]]/g, ' ').trim())
  const columns = findColumns(names)
  const cellForm = header.includes(', ') ? spacedCell : headerCell
  const isTable =
    isPipe(delimiter) || (names.every((name) => cellForm.test(name)) && !statementStart.test(names[0] ?? ''))
  if (!isTable || columns.secret.length === 0 || columns.count > maxColumns) return lineEnd
  return new TableReader(columns, delimiter, lineBreak, lineEnd + lineBreak.length)
}

const parseNames = (list: string): readonly string[] => list.split(',').map((name) => name.replace(/[\\\s"'`[\]]/g, ''))

const copyStart =
  /copy\s{1,3}[\w.$"-]{1,120}\s{0,3}\(([^()]{1,2000})\)\s{1,3}from\s{1,3}stdin[^\n\\]{0,80}(\n|\\{1,4}n)/iy

/** Opens the rows of a dump: `COPY users (name, password) FROM stdin;`. */
function openCopy(text: string, at: number): readonly SecretMatch[] | ListReader {
  copyStart.lastIndex = at
  const match = copyStart.exec(text)
  if (match === null) return noMatches
  const { 1: names = '', 2: lineBreak = '' } = match
  const columns = findColumns(parseNames(names))
  if (columns.secret.length === 0) return noMatches
  const delimiter = lineBreak === '\n' ? '\t' : lineBreak.replace('n', 't')
  return new TableReader({ ...columns, isAccount: true }, delimiter, lineBreak, copyStart.lastIndex)
}

const gap = String.raw`(?:\s|\\[nrt]|["'+\\]){0,40}`
const insertStart = new RegExp(
  String.raw`(?:insert|replace|upsert)(?:\s{1,3}(?:or\s)?(?:ignore|replace))?\s{1,3}into\s{1,4}[\w.$"\`[\]\\-]{1,120}\s{0,40}\(([^()]{1,2000})\)${gap}(?:overriding \w{4,6} value${gap})?values?(?=${gap}\()`,
  'iy',
)
const tupleStart = new RegExp(String.raw`(?:${gap},)?${gap}\(`, 'y')
const tupleToken = new RegExp(
  String.raw`(\\{0,3})(["'])((?:(?!(?<!\\)\1\2)[^]|\1\2\1\2){0,${maxValueCharacters}})\1\2|([(,)])|[^"'(),\\]+|["'\\]`,
  'y',
)

const boundParameter = /^[:@][a-z_]+$|^%\(\w+\)s$/i

/** Reads the rows of an `INSERT`. */
class TupleReader implements ListReader {
  at: number
  resumeAt: number
  isDone = false
  private readonly columns: Columns

  constructor(columns: Columns, at: number) {
    this.columns = columns
    this.at = at
    this.resumeAt = at
  }

  read(text: string, to: number): readonly SecretMatch[] {
    const found: SecretMatch[] = []
    while (this.at < to && !this.isDone) {
      tupleStart.lastIndex = this.at
      this.isDone = !tupleStart.test(text)
      this.resumeAt = this.at
      this.at = Math.max(this.at, tupleStart.lastIndex)
      if (!this.isDone) found.push(...this.findInTuple(text))
    }
    return found
  }

  private findInTuple(text: string): readonly SecretMatch[] {
    const found: SecretMatch[] = []
    let [column, levels] = [0, 1]
    tupleToken.lastIndex = this.at
    const end = this.at + maxRowCharacters
    while (levels > 0 && this.at < end) {
      const match = tupleToken.exec(text)
      if (match === null) break
      const { 1: escapes = '', 2: quote, 3: value = '', 4: sign } = match
      if (sign === ',' && levels === 1) column++
      levels += sign === '(' ? 1 : sign === ')' ? -1 : 0
      const secret = quote === undefined ? undefined : this.columns.secret.find(({ index }) => index === column)
      const start = this.at + escapes.length + 1
      this.at = tupleToken.lastIndex
      if (secret !== undefined && !boundParameter.test(value) && isColumnSecret(value, secret, true))
        found.push({ kind: secret.kind, start, end: start + value.length })
    }
    this.isDone = levels > 0 && this.at < text.length
    return found
  }
}

/** Opens the rows of `INSERT INTO users (name, password) VALUES`. */
function openInsert(text: string, at: number): readonly SecretMatch[] | ListReader {
  insertStart.lastIndex = at
  const columns = findColumns(parseNames(insertStart.exec(text)?.[1] ?? ''))
  return columns.secret.length === 0 ? noMatches : new TupleReader(columns, insertStart.lastIndex)
}

/** Finds the secrets of tables, dumps and statements that name the columns first. */
export const listRules: readonly SecretRule[] = [
  {
    name: 'table',
    triggers: [...passwordTriggers, 'secret', 'token', 'key'],
    find: openTable,
  },
  { name: 'COPY', triggers: ['copy '], find: openCopy },
  { name: 'INSERT', triggers: ['insert', 'replace into', 'upsert'], find: openInsert },
]
