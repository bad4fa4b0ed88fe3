import type { Source } from '../../domain/entry.ts'
import { type AnchorKind, anchorsIn, isCompound } from '../../text/anchors.ts'
import { type FoundFact, findFacts } from '../../text/facts.ts'
import { linesOf } from '../../text/fences.ts'
import { sentencesOf } from '../../text/sentences.ts'
import type { Work } from '../work.ts'
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
export function* piecesOf(messages: readonly Told[], whole: number): Work<Piece[]> {
  const pieces: Piece[] = []
  let before: Told | undefined
  for (const message of messages) {
    const isAnswer = before !== undefined && asks(before.content) && speakerOf(before) !== speakerOf(message)
    const own = piecesIn(message, whole).map((piece, at) => (at === 0 ? { ...piece, answers: isAnswer } : piece))
    const last = pieces.at(-1)
    // Only now is it known that the question before was answered, and how briefly.
    if (last !== undefined && isAnswer && asks(last.text) && own.length === 1 && (own[0]?.words ?? 0) <= shortAnswer)
      pieces[pieces.length - 1] = { ...last, isAsked: true }
    pieces.push(...own)
    if (own.length > 0) before = message
    yield message.content.length
  }
  return pieces
}

const asks = (text: string): boolean => /\?["'”’)\]]*\s*$/.test(text.slice(-40))

function piecesIn(message: Told, whole: number): Piece[] {
  const { content, role } = message
  const orders = smuggledIn(content)
  const isWhole =
    role !== 'tool' &&
    orders.length === 0 &&
    !/```|~~~/.test(content) &&
    content.length <= 12 * whole &&
    countWords(content) <= whole
  if (isWhole) return pieceOf(message, 'said', [content.length - content.trimStart().length, content.trimEnd().length])
  const lines = spansIn(content)
    .filter(({ span }) => !overlaps(orders, ...span))
    .flatMap(({ span, isCode }) => pieceOf(message, role === 'tool' ? 'output' : isCode ? 'code' : 'said', span))
  return role === 'tool' && countWords(content) > brief ? [...gistOf(message, orders), ...lines].sort(byStart) : lines
}

const byStart = (left: Piece, right: Piece): number =>
  (left.sources[0]?.span?.[0] ?? 0) - (right.sources[0]?.span?.[0] ?? 0)

function pieceOf(message: Told, kind: PieceKind, span: Span, said = message.content.slice(...span)): Piece[] {
  const text = tidy(said)
  if (!/[\p{L}\p{N}]/u.test(text)) return []
  const own = { text, kind, words: countWords(text), sources: [{ message: message.id, span }] }
  return [
    {
      ...own,
      speaker: speakerOf(message),
      isPerson: isPerson(message),
      isPart: message.content.length > lengthy,
      answers: false,
      isAsked: false,
    },
  ]
}

const isPerson = ({ role, name }: Told): boolean => role === 'user' || (role === 'assistant' && name !== undefined)

/** Sentences, and lines of fenced code. */
function spansIn(content: string): readonly { readonly span: Span; readonly isCode: boolean }[] {
  const code =
    content.includes('```') || content.includes('~~~') ? linesOf(content).filter(({ fence }) => fence === 'inside') : []
  let next = 0
  return sentencesOf(content).map(({ start, end }) => {
    while (next < code.length && (code[next] as (typeof code)[number]).end <= start) next++
    return { span: [start, end], isCode: (code[next]?.start ?? Number.POSITIVE_INFINITY) <= start }
  })
}

/** What a tool's output comes down to, on one line: its errors, and what it names. */
function gistOf(message: Told, orders: readonly Span[]): Piece[] {
  const isClear = ({ start, end }: FoundFact): boolean => !overlaps(orders, start, end)
  const errors = distinct(findFacts(message.content).filter((fact) => failure.test(fact.text) && isClear(fact))).slice(
    0,
    3,
  )
  const names = distinct(
    anchorsIn(message.content).filter((anchor) => naming.has(anchor.kind) && !isCompound(anchor) && isClear(anchor)),
  )
  const unsaid = names.filter(({ text }) => !errors.some((error) => error.text.includes(text))).slice(0, 5)
  const gist = [...errors, ...unsaid]
  const span = [Math.min(...gist.map(({ start }) => start)), Math.max(...gist.map(({ end }) => end))] as const
  return gist.length === 0 ? [] : pieceOf(message, 'gist', span, gist.map(({ text }) => text).join('; '))
}

const failure = /(?:error|exception|failure|fatal|panic|failed)[^\n]*\s/i
const naming: ReadonlySet<AnchorKind> = new Set(['url', 'path', 'identifier'])
const distinct = <T extends FoundFact>(facts: readonly T[]): T[] => [
  ...new Map(facts.map((fact) => [fact.text, fact])).values(),
]

const bold = /(?<![\w/*])\*\*([^\s*](?:[^*\n]{0,200}[^\s*])?)\*\*(?![\w/*])/g
const marks = /(?<=^|\n)[ \t]{0,16}(?:#{1,6}|[-*+•]) (?:\[[ x]\] )?/g

/** One line without marks of headings, lists and stress. */
export const tidy = (text: string): string => text.replace(marks, '').replace(bold, '$1').replace(/\s+/g, ' ').trim()
