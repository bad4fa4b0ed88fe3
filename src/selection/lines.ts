import type { Tokens } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { clip } from '../text/clip.ts'
import { closingFence, splitFencedLines } from '../text/fences.ts'
import { splitSentences } from '../text/sentences.ts'
import { extractTerms } from '../text/words.ts'
import { findIdentifiers } from './identifiers.ts'

/** Longer lines of prose are split into sentences; longer sentences and lines of code are split at a space. */
const maxLineChars = 240
/** Longer info strings of fences are cut. */
const maxFenceChars = 600
const lineBreakTokens = 1

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
export function splitLines(text: string, tokenizer: Tokenizer, from = 0): readonly Line[] {
  const spans = findSpans(text, tokenizer).filter(({ start }) => start >= from)
  return spans.map((span, index) => {
    const line = text.slice(span.start, span.end)
    return {
      ...span,
      text: line,
      tokens: tokenizer.count(line) + lineBreakTokens,
      mentions: findMentions(line, index === 0, index === spans.length - 1),
      terms: [...new Set(extractTerms(line))],
    }
  })
}

type Span = Pick<Line, 'start' | 'end' | 'isContinuation' | 'block'>

function findSpans(text: string, tokenizer: Tokenizer): readonly Span[] {
  const spans: Span[] = []
  let block: CodeBlock | undefined
  for (const { start, end, fence } of splitFencedLines(text)) {
    const line = text.slice(start, end).trimEnd()
    if (fence === 'open') block = createBlock(line.trim(), tokenizer)
    else if (fence === 'close') block = undefined
    else if (line.length > maxLineChars) {
      // One by one: a line may have more sentences than a call can have arguments.
      for (const span of splitLongLine(line, start, block)) spans.push(span)
    } else if (line !== '') spans.push({ start, end: start + line.length, isContinuation: false, block })
  }
  return spans
}

/** Fence inside a line: at the start of a line of its own it would open or close a block. */
const leadingFence = /^(?:`{3,}|~{3,})\s*/

function splitLongLine(line: string, lineStart: number, block: CodeBlock | undefined): readonly Span[] {
  const sentences = block === undefined ? splitSentences(line) : [{ start: 0, end: line.length }]
  const spans: Span[] = []
  for (const sentence of sentences) {
    const fence =
      block === undefined ? (leadingFence.exec(line.slice(sentence.start, sentence.end))?.[0].length ?? 0) : 0
    for (let start = sentence.start + fence; start < sentence.end; ) {
      const end = findPieceEnd(line, start, sentence.end)
      if (/\S/.test(line.slice(start, end)))
        spans.push({ start: lineStart + start, end: lineStart + end, isContinuation: spans.length > 0, block })
      start = line.charAt(end) === ' ' ? end + 1 : end
    }
  }
  return spans
}

function findPieceEnd(line: string, start: number, sentenceEnd: number): number {
  if (sentenceEnd - start <= maxLineChars) return sentenceEnd
  const space = line.lastIndexOf(' ', start + maxLineChars)
  return space > start ? space : start + clip(line.slice(start, sentenceEnd), maxLineChars, '').length
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
  const lastWordStart = text.length - (/\S+$/.exec(text)?.[0].length ?? 0)
  const mentions = new Map<string, Mention>()
  for (const { name, start, end } of findIdentifiers(text)) {
    const needsPrevious = start < firstWordEnd && !isFirst
    const needsNext = end > lastWordStart && !isLast
    if (!mentions.has(name) || !(needsPrevious || needsNext)) mentions.set(name, { name, needsPrevious, needsNext })
  }
  return [...mentions.values()]
}
