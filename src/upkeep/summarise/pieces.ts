import type { Source } from '../../domain/entry.ts'
import { findFacts } from '../../text/facts.ts'
import { linesOf } from '../../text/fences.ts'
import { sentencesOf } from '../../text/sentences.ts'
import { overlaps, type Span, smuggledIn } from './smuggled.ts'
import { countWords, speakerOf, type Told } from './told.ts'

/** Prose, a line of code, a line of what a tool has put out, the gist of that, or a piece of an earlier summary. */
export type PieceKind = 'said' | 'code' | 'output' | 'gist' | 'earlier'

/** Something a summary keeps or leaves out as a whole: a short turn, or a sentence of a long one, on one line. */
export type Piece = {
  readonly text: string
  readonly kind: PieceKind
  readonly speaker: string
  /** Somebody in the conversation, rather than a program or a nameless assistant. */
  readonly isPerson: boolean
  readonly sources: readonly Source[]
  readonly words: number
  /** Stands in a turn so long that most of it was pasted or explained. */
  readonly isPart: boolean
  /** Begins the answer to a question of somebody else. */
  readonly answers: boolean
  /** The next piece is the short answer to this one: they stay together. */
  readonly isAsked: boolean
}

/** A tool's output up to this many words speaks for itself. */
const brief = 40
/** An answer up to this many words says little without its question. */
const shortAnswer = 12
/** A turn of more characters was hardly typed. */
const lengthy = 1_000

/** The pieces of a conversation in its order; a turn up to so many words is one piece. */
export function piecesOf(messages: readonly Told[], whole: number): Piece[] {
  const pieces: Piece[] = []
  let before: Told | undefined
  for (const message of messages) {
    const own = piecesIn(message, whole, asks(before) && speakerOf(before as Told) !== speakerOf(message))
    const [first] = own
    const last = pieces.at(-1)
    // The question is known to be one only now that somebody else has answered it, briefly.
    if (last !== undefined && first?.answers === true && own.length === 1 && first.words <= shortAnswer && asks(last))
      pieces[pieces.length - 1] = { ...last, isAsked: true }
    pieces.push(...own)
    if (own.length > 0) before = message
  }
  return pieces
}

const asks = (said: { readonly text: string } | { readonly content: string } | undefined): boolean =>
  said !== undefined && /\?["'”’)\]]*\s*$/.test(('text' in said ? said.text : said.content).slice(-40))

function piecesIn(message: Told, whole: number, answers: boolean): Piece[] {
  const { content, role } = message
  const orders = smuggledIn(content)
  const pieceOf = (kind: PieceKind, [start, end]: Span, isFirst: boolean): Piece[] => {
    const text = tidy(content.slice(start, end))
    if (!/[\p{L}\p{N}]/u.test(text) || overlaps(orders, start, end)) return []
    const sources = [{ message: message.id, span: [start, end] as const }]
    return [
      {
        text,
        kind,
        speaker: speakerOf(message),
        isPerson: isPerson(message),
        sources,
        words: countWords(text),
        isPart: content.length > lengthy,
        answers: answers && isFirst,
        isAsked: false,
      },
    ]
  }
  if (role !== 'tool' && orders.length === 0 && !/```|~~~/.test(content) && content.length <= 12 * whole && countWords(content) <= whole) {
    const start = content.length - content.trimStart().length
    return pieceOf('said', [start, content.trimEnd().length], true)
  }
  const lines = spansIn(content).flatMap(({ span, isCode }, at) => pieceOf(role === 'tool' ? 'output' : isCode ? 'code' : 'said', span, at === 0))
  return role === 'tool' && countWords(content) > brief ? [...gistOf(message, orders), ...lines] : lines
}

const isPerson = ({ role, name }: Told): boolean => role === 'user' || (role === 'assistant' && name !== undefined)

/** Sentences, and lines of fenced code. */
function spansIn(content: string): readonly { readonly span: Span; readonly isCode: boolean }[] {
  const code = content.includes('```') || content.includes('~~~') ? linesOf(content).filter(({ fence }) => fence === 'inside') : []
  let next = 0
  return sentencesOf(content).map(({ start, end }) => {
    while (next < code.length && (code[next] as (typeof code)[number]).end <= start) next++
    return { span: [start, end], isCode: (code[next]?.start ?? Number.POSITIVE_INFINITY) <= start }
  })
}

/** What a tool's output comes down to: its errors. */
function gistOf(message: Told, orders: readonly Span[]): Piece[] {
  const errors = findFacts(message.content).filter(({ text }) => /(?:error|exception|failure|fatal|panic|failed)/i.test(text) && /\s/.test(text))
  const kept = [...new Map(errors.map((error) => [error.text, error])).values()].filter(({ start, end }) => !overlaps(orders, start, end)).slice(0, 3)
  const text = tidy(kept.map((error) => error.text).join('; '))
  const [first, last] = [kept[0], kept.at(-1)]
  if (first === undefined || last === undefined || text === '') return []
  const sources = [{ message: message.id, span: [first.start, last.end] as const }]
  return [{ text, kind: 'gist', speaker: speakerOf(message), isPerson: false, sources, words: countWords(text), isPart: false, answers: false, isAsked: false }]
}

const bold = /(?<![\w/*])\*\*([^\s*](?:[^*\n]{0,200}[^\s*])?)\*\*(?![\w/*])/g
const marks = /(?<=^|\n)[ \t]{0,16}(?:#{1,6}|[-*+•]) (?:\[[ x]\] )?/g

/** One line without marks of headings, lists and stress. */
export const tidy = (text: string): string => text.replace(marks, '').replace(bold, '$1').replace(/\s+/g, ' ').trim()
