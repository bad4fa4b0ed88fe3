import type { Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { anchorsIn } from '../../text/anchors.ts'
import { clip } from '../../text/clip.ts'
import { linesOf as fencedLinesOf } from '../../text/fences.ts'
import { sentencesOf } from '../../text/sentences.ts'
import type { Saying } from '../extract/said.ts'
import { closingOf } from './told.ts'

/** A longer line of prose is told sentence by sentence; a longer sentence, or line of code, by its beginning. */
const longest = 600
/** What a line break costs. */
const breakTokens = 1

/** A name, path or number in a line; one that its line begins or ends with says little without the line before or after. */
export type Mention = { readonly name: string; readonly before: boolean; readonly after: boolean }

/** Fenced code: how it opens and closes, and what that costs. */
export type Block = { readonly open: string; readonly close: string; readonly tokens: Tokens }

/** A line of the conversation, which is told or left out as a whole. */
export type Line = {
  readonly text: string
  readonly tokens: Tokens
  /** The place of its message among those that are told. */
  readonly saying: number
  /** The code it belongs to; what has none is conversation. */
  readonly block: Block | undefined
  readonly mentions: readonly Mention[]
}

/** The lines of a conversation in their order; blank ones and fences are written anew where they are needed. */
export function linesIn(sayings: readonly Saying[], tokenizer: Tokenizer): readonly Line[] {
  return sayings.flatMap(({ text }, saying) => {
    const pieces = piecesOf(text, tokenizer)
    return pieces.map(({ text: line, block }, at) => ({
      text: line,
      tokens: tokenizer.count(line) + breakTokens,
      saying,
      block,
      mentions: mentionsIn(line, at === 0, at === pieces.length - 1),
    }))
  })
}

/** At the start of a line it would open or close a fence, in the midst of one it did not. */
const fenceMark = /^(?:`{3,}|~{3,})\s*/

type Piece = { readonly text: string; readonly block: Block | undefined }

function piecesOf(text: string, tokenizer: Tokenizer): readonly Piece[] {
  const pieces: Piece[] = []
  let block: Block | undefined
  for (const { start, end, fence } of fencedLinesOf(text)) {
    const line = text.slice(start, end).trimEnd()
    if (fence === 'open') block = blockOf(line.trim(), tokenizer)
    else if (fence === 'close') block = undefined
    else if (block !== undefined || line.length <= longest) {
      if (line !== '') pieces.push({ text: clip(line, longest), block })
    } else
      for (const sentence of sentencesOf(line))
        pieces.push({ text: clip(sentence.text.replace(fenceMark, '') || '...', longest), block })
  }
  return pieces
}

function blockOf(line: string, tokenizer: Tokenizer): Block {
  const close = closingOf(line)
  // with fewer strokes than it had, a line inside could close it
  const open = close + clip(line.slice(close.length), longest, '')
  return { open, close, tokens: tokenizer.count(open) + tokenizer.count(close) + 2 * breakTokens }
}

function mentionsIn(line: string, isFirst: boolean, isLast: boolean): readonly Mention[] {
  const text = line.trim()
  const firstEnd = /\s/.exec(text)?.index ?? text.length
  const lastStart = /\S+$/.exec(text)?.index ?? 0
  const mentions = new Map<string, Mention>()
  for (const { kind, text: name, start, end } of anchorsIn(text)) {
    if (kind === 'constraint') continue
    const mention = { name, before: start < firstEnd && !isFirst, after: end > lastStart && !isLast }
    if (!mentions.has(name) || isWhole(mention)) mentions.set(name, mention)
  }
  return [...mentions.values()]
}

const isWhole = ({ before, after }: Mention): boolean => !before && !after

/** The room a line is told in. */
export const kindOf = ({ block }: Pick<Line, 'block'>): 'code' | 'conversation' =>
  block === undefined ? 'conversation' : 'code'
