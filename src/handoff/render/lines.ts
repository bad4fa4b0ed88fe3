import type { Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { findAnchors } from '../../text/anchors.ts'
import { clip } from '../../text/clip.ts'
import { stripComments } from '../../text/comments.ts'
import { squeezeSpace } from '../../text/compress.ts'
import { closingFence, fenceText, splitFencedLines } from '../../text/fences.ts'
import { splitSentences } from '../../text/sentences.ts'
import type { ContextItem } from '../item.ts'
import type { TextMessage } from '../textMessage.ts'

/** Longer lines of prose are split into sentences; longer sentences and lines of code are clipped. */
const maxLineChars = 600
const lineBreakTokens = 1

/**
 * Name, path or number in a line. At the start or end of its line, it needs the previous or the next line as context.
 */
export type Mention = { readonly name: string; readonly needsPrevious: boolean; readonly needsNext: boolean }

/** Fenced code block: its fences and their cost. */
export type CodeBlock = { readonly open: string; readonly close: string; readonly tokens: Tokens }

/** Line of a conversation: the unit of selection. */
export type ConversationLine = {
  readonly text: string
  readonly tokens: Tokens
  /** Index of its message. */
  readonly message: number
  /** Code block it belongs to; undefined for prose. */
  readonly block: CodeBlock | undefined
  readonly mentions: readonly Mention[]
}

/** Part of the budget that pays for a line. */
export const lineKind = ({ block }: Pick<ConversationLine, 'block'>): 'code' | 'conversation' =>
  block === undefined ? 'conversation' : 'code'

/** Splits messages into lines. Blank lines and fences are dropped; they are written again when needed. */
export function splitLines(messages: readonly TextMessage[], tokenizer: Tokenizer): readonly ConversationLine[] {
  return messages.flatMap(({ text }, message) => {
    const pieces = splitText(text, tokenizer)
    return pieces.map(({ text: line, block }, index) => ({
      text: line,
      tokens: tokenizer.count(line) + lineBreakTokens,
      message,
      block,
      mentions: findMentions(line, index === 0, index === pieces.length - 1),
    }))
  })
}

/** Fence inside a line: at the start of a line of its own it would open or close a block. */
const leadingFence = /^(?:`{3,}|~{3,})\s*/

type TextPiece = { readonly text: string; readonly block: CodeBlock | undefined }

function splitText(text: string, tokenizer: Tokenizer): readonly TextPiece[] {
  const pieces: TextPiece[] = []
  let block: CodeBlock | undefined
  for (const { start, end, fence } of splitFencedLines(text)) {
    const line = text.slice(start, end).trimEnd()
    if (fence === 'open') block = createBlock(line.trim(), tokenizer)
    else if (fence === 'close') block = undefined
    else if (block !== undefined || line.length <= maxLineChars) {
      if (line !== '') pieces.push({ text: clip(line, maxLineChars), block })
    } else
      for (const sentence of splitSentences(line))
        pieces.push({ text: clip(sentence.text.replace(leadingFence, '') || '...', maxLineChars), block })
  }
  return pieces
}

function createBlock(openingLine: string, tokenizer: Tokenizer): CodeBlock {
  const close = closingFence(openingLine)
  // Keeps all backticks of the fence: with fewer, a line inside could close it.
  const open = close + clip(openingLine.slice(close.length), maxLineChars, '')
  return { open, close, tokens: tokenizer.count(open) + tokenizer.count(close) + 2 * lineBreakTokens }
}

function findMentions(line: string, isFirst: boolean, isLast: boolean): readonly Mention[] {
  const text = line.trim()
  const firstWordEnd = /\s/.exec(text)?.index ?? text.length
  const lastWordStart = /\S+$/.exec(text)?.index ?? 0
  const mentions = new Map<string, Mention>()
  for (const { kind, text: name, start, end } of findAnchors(text)) {
    if (kind === 'constraint') continue
    const needsPrevious = start < firstWordEnd && !isFirst
    const needsNext = end > lastWordStart && !isLast
    if (!mentions.has(name) || !(needsPrevious || needsNext)) mentions.set(name, { name, needsPrevious, needsNext })
  }
  return [...mentions.values()]
}

/** Maximum lines required by one line. */
const maxRequiredLines = 4

/** Lines to select together with a line: all `required`, including itself, and one of `neighbours`, best first. */
export type LineDependencies = { readonly required: readonly number[]; readonly neighbours: readonly number[] }

/**
 * Finds the dependencies of each line. A bracket requires the previous line, a line ending in a colon or an open
 * bracket the next one, a diff line the header of its hunk, and a line of code one neighbour. Undefined for a line that
 * contains no word even with its dependencies.
 */
export function findDependencies(lines: readonly ConversationLine[]): readonly (LineDependencies | undefined)[] {
  const hunkHeaders = findHunkHeaders(lines)
  return lines.map((_, index) => {
    const required = findRequired(lines, index)
    if ([...required].every((at) => isWordless(lines[at]))) return undefined
    const code = [...required].filter((at) => lines[at]?.block !== undefined && !isWordless(lines[at]))
    const neighbours = code.length === 1 ? findNeighbours(lines, code[0] as number, required) : []
    const header = hunkHeaders[index]
    return { required: header === undefined ? [...required] : [...required, header], neighbours }
  })
}

function findRequired(lines: readonly ConversationLine[], index: number): Set<number> {
  const required = new Set([index])
  for (const at of required) {
    if (required.size >= maxRequiredLines) break
    const line = lines[at] as ConversationLine
    if (isWordless(line) && isSameBlock(line, lines[at - 1])) required.add(at - 1)
    if (introducesNext(line) && lines[at + 1]?.message === line.message) required.add(at + 1)
  }
  return required
}

const isWordless = (line: ConversationLine | undefined): boolean =>
  line !== undefined && !/[\p{L}\p{N}]/u.test(line.text)

/** A signature without its body would look like an empty function. */
const introducesNext = ({ text, block }: ConversationLine): boolean =>
  block === undefined ? text.endsWith(':') : /[[({:]$/.test(text)

const isSameBlock = (line: ConversationLine, other: ConversationLine | undefined): boolean =>
  other?.message === line.message && other.block === line.block

/** Returns the neighbours of a line of code, preferring one that introduces it. */
function findNeighbours(
  lines: readonly ConversationLine[],
  index: number,
  required: ReadonlySet<number>,
): readonly number[] {
  const line = lines[index] as ConversationLine
  const neighbours = [index + 1, index - 1].filter((at) => isSameBlock(line, lines[at]) && !required.has(at))
  const rank = (at: number): number => {
    const neighbour = lines[at] as ConversationLine
    if (isWordless(neighbour)) return 3
    return introducesNext(neighbour) ? (at < index ? 0 : 2) : 1
  }
  return neighbours.sort((left, right) => rank(left) - rank(right))
}

const hunkHeader = /^@@ -\d/
const diffLine = /^(?:[-+ \\]|@@)/

/** Returns for each line of a diff the index of its hunk header. */
function findHunkHeaders(lines: readonly ConversationLine[]): readonly (number | undefined)[] {
  let header: number | undefined
  return lines.map((line, index) => {
    if (hunkHeader.test(line.text)) header = index
    else if (header !== undefined && !(isSameBlock(line, lines[header]) && diffLine.test(line.text))) header = undefined
    return header === index ? undefined : header
  })
}

/**
 * Checks whether an item is listed under Notes. Code and items of several lines are shown in the conversation instead.
 */
export const isNote = ({ category, content }: ContextItem): boolean => category !== 'code' && !content.includes('\n')

/** Converts an item to a message that precedes the conversation. */
export function itemToMessage({ id, category, content }: ContextItem): TextMessage {
  const isFenced = splitFencedLines(content)[0]?.fence === 'open'
  return {
    message: { id, role: 'tool', name: `saved ${category}` },
    text: isFenced || category !== 'code' ? content : fenceText(content, ''),
  }
}

/** Finds the line indexes of each item, in the order of the items; empty for items that are not found. */
export function findItemLines(
  items: readonly ContextItem[],
  lines: readonly ConversationLine[],
  messages: readonly TextMessage[],
): readonly (readonly number[])[] {
  const indexesByMessage = new Map<string, Map<string, number>>()
  for (const [index, line] of lines.entries()) {
    const { id } = (messages[line.message] as TextMessage).message
    const indexes = indexesByMessage.get(id) ?? new Map<string, number>()
    if (indexes.size === 0) indexesByMessage.set(id, indexes)
    indexes.set(line.text.trim(), index)
  }
  return items.map(({ id, content, sources }) => {
    // The newest source, or the message made from the item itself.
    const source = sources.findLast((messageId) => indexesByMessage.has(messageId)) ?? id
    const found = normalizeRows(content).flatMap((row) => indexesByMessage.get(source)?.get(row) ?? [])
    return [...new Set(found)].sort((left, right) => left - right)
  })
}

/** Returns the ids of items that a text shows: a note as a substring, other items by each of their lines. */
export function findShownItems(text: string, items: readonly ContextItem[]): ReadonlySet<string> {
  // Rows with and without comments both show an item.
  const rows = new Set([...text.split('\n').map((row) => row.trim()), ...normalizeRows(text)])
  const flatText = text.replace(/\s+/g, ' ')
  const isShown = (item: ContextItem): boolean => {
    if (isNote(item)) return flatText.includes(item.content.replace(/\s+/g, ' '))
    const itemRows = normalizeRows(item.content)
    return itemRows.length > 0 && itemRows.every((row) => rows.has(row))
  }
  return new Set(items.filter(isShown).map(({ id }) => id))
}

/**
 * Splits an item into rows without whitespace, comments and fences, and without rows next to a `...`, which may be cut.
 */
function normalizeRows(content: string): readonly string[] {
  const rows = stripComments(squeezeSpace(content))
    .split('\n')
    .map((row) => row.trim())
  const isCut = (index: number): boolean => [rows[index - 1], rows[index], rows[index + 1]].includes('...')
  return rows.filter((row, index) => row !== '' && !isCut(index) && !/^(?:`{3,}|~{3,})/.test(row))
}
