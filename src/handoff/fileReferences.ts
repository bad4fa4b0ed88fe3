import { hash } from 'node:crypto'
import type { Message, Millis } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import { runSync, type Work } from '../domain/work.ts'
import { findAnchorsInSteps } from '../text/anchors.ts'
import { clip } from '../text/clip.ts'

/** Result of reading a file: its text, or the reason there is none. */
export type FileInspection =
  | { readonly status: 'there'; readonly text: string; readonly size: number; readonly modified: Millis }
  | { readonly status: 'missing' }
  | { readonly status: 'refused' }

/** Reads a file. A missing or forbidden file is a result, not an error. */
export type ReadFile = (path: string) => Promise<FileInspection>

/** State of a file when it was mentioned. Its text is not stored: `lines` holds short hashes of its lines. */
export type FileReference = {
  readonly path: string
  readonly hash: string
  readonly last_modified: string
  readonly size: number
  readonly lines: string
}

/** Current state of a referenced file. */
export type FileState = {
  readonly path: string
  readonly status: 'unchanged' | 'changed' | 'missing' | 'refused' | 'unseen'
  readonly note?: string
}

/**
 * Creates a reference to a file in its current state; undefined if it cannot be read.
 *
 * @example
 * const reference = await createFileReference('src/app.ts', (path) => files.look('ann', path))
 */
export async function createFileReference(path: string, readFile: ReadFile): Promise<FileReference | undefined> {
  const file = await readFile(path)
  if (file.status !== 'there') return undefined
  const { text, size, modified } = file
  return {
    path,
    hash: hash('sha256', text),
    last_modified: new Date(modified).toISOString(),
    size,
    lines: hashLines(text),
  }
}

/**
 * Compares a referenced file with its current state. The note of a changed file quotes it, so the caller must mask
 * secrets.
 *
 * @example
 * await resolveFileReference(reference, readFile) // { path: 'src/app.ts', status: 'changed', note: '+1 −0 lines around 12: first changed lines: "retries: 3,"' }
 */
export async function resolveFileReference(reference: FileReference, readFile: ReadFile): Promise<FileState> {
  const { path } = reference
  const file = await readFile(path)
  if (file.status !== 'there') return { path, status: file.status }
  if (hash('sha256', file.text) === reference.hash) return { path, status: 'unchanged' }
  const note = describeLineChanges(reference.lines, file.text) ?? describeSizeChange(reference, file.size)
  return { path, status: 'changed', note }
}

/** Fallback without line hashes. If a client gave only path and hash, the previous size is unknown too. */
function describeSizeChange({ size, hash: previousHash }: FileReference, currentSize: number): string {
  const isSizeKnown = size > 0 || previousHash === hash('sha256', '')
  return isSizeKnown ? `${size} bytes then, ${currentSize} bytes now` : 'previous content unknown'
}

/** Characters per line hash. 30 bits detect a changed line without identifying its content. */
const lineHashChars = 5
/** Longer files are compared as a whole. */
const maxHashedLines = 5_000
/** Above this product of changed lines, order is ignored when counting common lines. */
const maxLinePairs = 1_000_000
const maxQuotedLines = 3
const maxQuotedChars = 100

/**
 * Concatenates the hashes of a text's lines; empty if there are too many lines. Line endings and trailing whitespace
 * are ignored.
 *
 * @example
 * hashLines('one\ntwo').length // 10
 */
export function hashLines(text: string): string {
  const lines = splitLines(text)
  return lines.length > maxHashedLines ? '' : lines.map(hashLine).join('')
}

/**
 * Describes the difference between a text known by its `hashLines` and the current text; undefined if it cannot be
 * determined.
 *
 * @example
 * describeLineChanges(hashLines('a\nb\nc'), 'a\nB!\nc') // '+1 −1 lines around 2: first changed lines: "B!"'
 */
export function describeLineChanges(previousHashes: string, text: string): string | undefined {
  const lines = splitLines(text)
  if (previousHashes === '' || lines.length > maxHashedLines) return undefined
  const previous = previousHashes.match(new RegExp(`.{${lineHashChars}}`, 'g')) ?? []
  const current = lines.map(hashLine)
  const { head, tail } = countCommonEnds(previous, current)
  const [removed, added] = [previous.slice(head, previous.length - tail), current.slice(head, current.length - tail)]
  if (removed.length === 0 && added.length === 0) return 'only line endings or trailing whitespace changed'
  const common = countCommonLines(removed, added)
  const range = formatRange(head + 1, head + Math.max(1, added.length))
  const counts = `+${added.length - common} −${removed.length - common} lines around ${range}`
  const quotes = indexesOfNewLines(removed, added)
    .map((index) => quoteLine(lines[head + index] ?? ''))
    .filter((line) => line !== '""')
    .slice(0, maxQuotedLines)
  return quotes.length === 0 ? counts : `${counts}: first changed lines: ${quotes.join(', ')}`
}

const splitLines = (text: string): string[] => (text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/))
const hashLine = (line: string): string => hash('sha256', line.trimEnd(), 'base64').slice(0, lineHashChars)
const formatRange = (first: number, last: number): string => (first === last ? `${first}` : `${first}–${last}`)
const quoteLine = (line: string): string => JSON.stringify(clip(line.trim(), maxQuotedChars, '…'))

/** Counts equal lines at the start and at the end. */
function countCommonEnds(
  previous: readonly string[],
  current: readonly string[],
): { readonly head: number; readonly tail: number } {
  const shorter = Math.min(previous.length, current.length)
  let head = 0
  while (head < shorter && previous[head] === current[head]) head++
  let tail = 0
  while (tail < shorter - head && previous.at(-1 - tail) === current.at(-1 - tail)) tail++
  return { head, tail }
}

/** Length of the longest common subsequence, or of the multiset intersection if that is too expensive. */
function countCommonLines(removed: readonly string[], added: readonly string[]): number {
  if (removed.length * added.length > maxLinePairs) return added.length - indexesOfNewLines(removed, added).length
  let previousRow = new Uint16Array(added.length + 1)
  for (const line of removed) {
    const row = new Uint16Array(added.length + 1)
    for (let index = 1; index < row.length; index++)
      row[index] =
        added[index - 1] === line
          ? (previousRow[index - 1] ?? 0) + 1
          : Math.max(previousRow[index] ?? 0, row[index - 1] ?? 0)
    previousRow = row
  }
  return previousRow.at(-1) ?? 0
}

/** Indexes of added lines that are not among the removed ones; each removed line matches once. */
function indexesOfNewLines(removed: readonly string[], added: readonly string[]): number[] {
  const remaining = new Map<string, number>()
  for (const line of removed) remaining.set(line, (remaining.get(line) ?? 0) + 1)
  return added.flatMap((line, index) => {
    const count = remaining.get(line) ?? 0
    if (count > 0) remaining.set(line, count - 1)
    return count > 0 ? [] : [index]
  })
}

const maxPaths = 200
const maxScannedChars = 1_000_000
const maxPathChars = 1_024

/** A file has an extension or a well-known name. */
const filePath =
  /(?:^|[/\\])(?:[^/\\]*[^./\\]\.[A-Za-z][A-Za-z0-9_-]{0,15}|Makefile|Dockerfile|Procfile|Gemfile|LICENSE|README|\.[A-Za-z][\w.-]{1,30})$/
/**
 * Names without a folder need a known extension: prose also contains members and hosts (`console.log`, `example.com`).
 */
const bareFileName =
  /^(?:[\w@.+-]+\.(?:[cm]?[jt]sx?|json|mdc?|txt|ya?ml|toml|ini|lock|py|rb|go|rs|java|kt|swift|cc|cpp|php|sh|sql|html?|s?css|vue|csv|xml)|Makefile|Dockerfile|Procfile|Gemfile)$/i
/** Fields of tool arguments that hold a path. */
const pathField = /^(?:(?:file|target|absolute|relative|notebook|old|new)_?)?(?:path|file|filename|uri)$/i

/**
 * Finds the file paths in messages and tool arguments, most recently mentioned first.
 *
 * @example
 * findPaths([{ content: 'See src/app.ts:12 and https://example.com/a.ts.' }]) // ['src/app.ts']
 */
export const findPaths = (messages: readonly Pick<Message, 'content' | 'toolCalls'>[]): string[] =>
  runSync(findPathsInSteps(messages))

/** `findPaths` as interruptible work. */
export function* findPathsInSteps(messages: readonly Pick<Message, 'content' | 'toolCalls'>[]): Work<string[]> {
  const paths = new Set<string>()
  let remainingChars = maxScannedChars
  for (const { content, toolCalls = [] } of messages.toReversed()) {
    if (remainingChars <= 0 || paths.size >= maxPaths) break
    const text = content.slice(0, remainingChars)
    remainingChars -= text.length
    const inArguments = toolCalls.flatMap(({ arguments: json }) => {
      const scanned = json.length > remainingChars ? '' : json
      remainingChars -= scanned.length
      return findPathsInArguments(scanned)
    })
    for (const path of [...inArguments, ...(yield* findPathsInText(text)).toReversed()]) paths.add(path)
  }
  return [...paths].slice(0, maxPaths)
}

function* findPathsInText(text: string): Work<string[]> {
  return (yield* findAnchorsInSteps(text))
    .filter(({ kind }) => kind === 'path')
    .map((anchor) => anchor.text)
    .filter((path) => path.length <= maxPathChars && (/[/\\]/.test(path) ? filePath : bareFileName).test(path))
}

/** Paths in tool arguments are verbatim: they may contain spaces and letters of any script. */
function findPathsInArguments(json: string): string[] {
  return Object.entries(parseArguments(json)).flatMap(([name, value]) => {
    if (!pathField.test(name) || typeof value !== 'string' || value.length > maxPathChars) return []
    const path = value.replace(/^file:\/\/(?=\/)/, '').trim()
    return path !== '' && !path.includes('://') && filePath.test(path) ? [path] : []
  })
}

function parseArguments(json: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(json)
    return isObject(value) ? value : {}
  } catch {
    // Truncated arguments: a path in them may be incomplete.
    return {}
  }
}
