import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Work } from '../domain/work.ts'
import { clip } from '../text/clip.ts'
import { closingFence, splitFencedLinesInSteps } from '../text/fences.ts'
import { splitSentences } from '../text/sentences.ts'
import { extractTerms } from '../text/words.ts'
import { findIdentifiers } from './identifiers.ts'

/** Longer lines of prose are split into sentences; longer sentences and lines of code are split at a space. */
const maxLineChars = 240
const minPieceChars = 3
/** Longer info strings of fences are cut. */
const maxFenceChars = 600
const lineBreakTokens = 1
/** Work per line beside its characters. */
const lineOverheadChars = 16
/** Work of finding a line. */
const spanWork = 2

/**
 * Name, path or number in a line. At the start or end of its line, it needs the previous or the next line as context.
 */
export type Mention = { readonly name: string; readonly needsPrevious: boolean; readonly needsNext: boolean }

/** Fenced code block: its fences and their cost. */
export type CodeBlock = { readonly open: string; readonly close: string; readonly tokens: Tokens }

/** Line of a message, or part of a long line: the unit of selection. */
export type Line = {
  /** `text` is the part of the message's text from `start` to `end`. */
  readonly text: string
  readonly start: number
  readonly end: number
  /** True for a part of a long line that continues the previous one. */
  readonly isContinuation: boolean
  readonly tokens: Tokens
  /** Code block it belongs to; undefined for prose. */
  readonly block: CodeBlock | undefined
  readonly mentions: readonly Mention[]
  /** Distinct search terms. */
  readonly terms: readonly string[]
}

/**
 * Splits the text of a message into lines, without those that start before `from`. Blank lines and fences are dropped;
 * they are written again when needed.
 */
export function* splitLinesInSteps(text: string, tokenizer: Tokenizer, from = 0): Work<readonly Line[]> {
  const spans = (yield* findSpans(text, tokenizer)).filter(({ start }) => start >= from)
  const lines: Line[] = []
  for (const [index, span] of spans.entries()) {
    const line = text.slice(span.start, span.end)
    lines.push({
      ...span,
      text: line,
      tokens: tokenizer.count(line) + lineBreakTokens,
      mentions: findMentions(line, index === 0, index === spans.length - 1),
      terms: [...new Set(extractTerms(line))],
    })
    yield line.length + lineOverheadChars
  }
  return lines
}

type Span = Pick<Line, 'start' | 'end' | 'isContinuation' | 'block'>

function* findSpans(text: string, tokenizer: Tokenizer): Work<readonly Span[]> {
  const spans: Span[] = []
  let block: CodeBlock | undefined
  for (const { start, end, fence } of yield* splitFencedLinesInSteps(text)) {
    yield spanWork
    const line = text.slice(start, end).trimEnd()
    if (fence === 'open') block = createBlock(line.trim(), tokenizer)
    else if (fence === 'close') block = undefined
    else if (line.length > maxLineChars) {
      // One by one: a line may have more sentences than a call can have arguments.
      for (const span of splitLongLine(line, start, block)) {
        spans.push(span)
        yield span.end - span.start
      }
    } else if (line !== '') spans.push({ start, end: start + line.length, isContinuation: false, block })
  }
  return spans
}

/** Fence inside a line: at the start of a line of its own it would open or close a block. */
const leadingFence = /^(?:`{3,}|~{3,})\s*/

function* splitLongLine(line: string, lineStart: number, block: CodeBlock | undefined): Generator<Span> {
  const sentences = block === undefined ? splitSentences(line) : [{ start: 0, end: line.length }]
  let isContinuation = false
  for (const sentence of sentences) {
    const fence =
      block === undefined ? (leadingFence.exec(line.slice(sentence.start, sentence.end))?.[0].length ?? 0) : 0
    for (let start = sentence.start + fence; start < sentence.end; ) {
      const end = findPieceEnd(line, start, sentence.end)
      if (/\S/.test(line.slice(start, end))) {
        yield { start: lineStart + start, end: lineStart + end, isContinuation, block }
        isContinuation = true
      }
      start = line.charAt(end) === ' ' ? end + 1 : end
    }
  }
}

function findPieceEnd(line: string, start: number, sentenceEnd: number): number {
  if (sentenceEnd - start <= maxLineChars) return sentenceEnd
  // Only the piece is searched: without a space, a search of the whole line would make splitting quadratic.
  const space = start + line.slice(start, start + maxLineChars + 1).lastIndexOf(' ')
  if (space > start) return space
  const length = clip(line.slice(start, sentenceEnd), maxLineChars, '').length
  // A run of marks is one character to `clip`, which leaves its first mark: pieces of one mark would be too many.
  if (length >= minPieceChars) return start + length
  const end = start + maxLineChars
  return /[\udc00-\udfff]/.test(line.charAt(end)) ? end - 1 : end
}

function createBlock(openingLine: string, tokenizer: Tokenizer): CodeBlock {
  const close = closingFence(openingLine)
  // Keeps all backticks of the fence: with fewer, a line inside could close it.
  const open = close + clip(openingLine.slice(close.length), maxFenceChars, '')
  return { open, close, tokens: tokenizer.count(open) + tokenizer.count(close) + 2 * lineBreakTokens }
}

function findMentions(line: string, isFirst: boolean, isLast: boolean): readonly Mention[] {
  const text = line.trim()
  const firstWordEnd = /\s/.exec(text)?.index ?? text.length
  const lastWordStart = text.length - (/(?<!\S)\S+$/.exec(text)?.[0].length ?? 0)
  const mentions = new Map<string, Mention>()
  for (const { name, start, end } of findIdentifiers(text)) {
    const needsPrevious = start < firstWordEnd && !isFirst
    const needsNext = end > lastWordStart && !isLast
    if (!mentions.has(name) || !(needsPrevious || needsNext)) mentions.set(name, { name, needsPrevious, needsNext })
  }
  return [...mentions.values()]
}
