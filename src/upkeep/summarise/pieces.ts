import type { Source } from '../../domain/entry.ts'
import { type AnchorKind, findAnchors, isCompoundWord } from '../../text/anchors.ts'
import { clip } from '../../text/clip.ts'
import { type FactMatch, findFacts } from '../../text/facts.ts'
import { splitFencedLines } from '../../text/fences.ts'
import { splitSentences } from '../../text/sentences.ts'
import type { Work } from '../work.ts'
import { isNameable } from './coverage.ts'
import { findInjections, overlapsAny, type Span } from './injectionCheck.ts'
import { countWords, type NamedEntity, type SummaryMessage, type SummaryText } from './summary.ts'

/** Prose, a code line, a line of tool output, a digest of tool output, or a piece of an earlier summary. */
export type PieceKind = 'prose' | 'code' | 'output' | 'gist' | 'earlier'

/** Smallest unit that a summary keeps or omits: a short turn, or a sentence of a long one, on one line. */
export type Piece = {
  readonly text: string
  readonly kind: PieceKind
  readonly speaker: string
  /** Spoken by a user or a named assistant, not by a program or an unnamed assistant. */
  readonly isPerson: boolean
  readonly sources: readonly Source[]
  readonly words: number
  /** Part of a long turn, which is mostly pasted or explanatory text. */
  readonly isFromLongTurn: boolean
  /** Starts the answer to another speaker's question. */
  readonly isAnswer: boolean
  /** The next piece is the short answer to this one, so they are kept together. */
  readonly hasShortAnswer: boolean
}

/** Tool output up to this length needs no digest. */
const maxBriefOutputWords = 40
/** An answer up to this length is unclear without its question. */
const maxShortAnswerWords = 12
/** Longer turns are most likely pasted. */
const longTurnChars = 1_000

/** Splits messages into pieces in conversation order. A turn of up to `maxTurnWords` words is one piece. */
export function* splitIntoPieces(messages: readonly SummaryMessage[], maxTurnWords: number): Work<Piece[]> {
  const pieces: Piece[] = []
  let previous: SummaryMessage | undefined
  for (const message of messages) {
    const isAnswer =
      previous !== undefined && endsWithQuestion(previous.content) && speakerLabel(previous) !== speakerLabel(message)
    const own = splitMessage(message, maxTurnWords).map((piece, at) => (at === 0 ? { ...piece, isAnswer } : piece))
    const last = pieces.at(-1)
    // The question is marked here, because only its answer shows how short the answer is.
    if (
      last !== undefined &&
      isAnswer &&
      endsWithQuestion(last.text) &&
      own.length === 1 &&
      (own[0]?.words ?? 0) <= maxShortAnswerWords
    )
      pieces[pieces.length - 1] = { ...last, hasShortAnswer: true }
    pieces.push(...own)
    if (own.length > 0) previous = message
    yield message.content.length
  }
  return pieces
}

const endsWithQuestion = (text: string): boolean => /\?["'”’)\]]*\s*$/.test(text.slice(-40))

function splitMessage(message: SummaryMessage, maxTurnWords: number): Piece[] {
  const { content, role } = message
  const injections = findInjections(content)
  const isWhole =
    role !== 'tool' &&
    injections.length === 0 &&
    !/```|~~~/.test(content) &&
    content.length <= 12 * maxTurnWords &&
    countWords(content) <= maxTurnWords
  if (isWhole)
    return messagePiece(message, 'prose', [content.length - content.trimStart().length, content.trimEnd().length])
  const lines = sentenceSpans(content)
    .filter(({ span }) => !overlapsAny(injections, ...span))
    .flatMap(({ span, isCode }) => messagePiece(message, role === 'tool' ? 'output' : isCode ? 'code' : 'prose', span))
  return role === 'tool' && countWords(content) > maxBriefOutputWords
    ? [...toolOutputGist(message, injections), ...lines].sort(byStart)
    : lines
}

const byStart = (left: Piece, right: Piece): number =>
  (left.sources[0]?.span?.[0] ?? 0) - (right.sources[0]?.span?.[0] ?? 0)

function messagePiece(
  message: SummaryMessage,
  kind: PieceKind,
  span: Span,
  raw = message.content.slice(...span),
): Piece[] {
  const text = stripMarkdown(raw)
  if (!/[\p{L}\p{N}]/u.test(text)) return []
  return [
    {
      text,
      kind,
      words: countWords(text),
      sources: [{ message: message.id, span }],
      speaker: speakerLabel(message),
      isPerson: isPerson(message),
      isFromLongTurn: message.content.length > longTurnChars,
      isAnswer: false,
      hasShortAnswer: false,
    },
  ]
}

const roleLabels: Readonly<Record<string, string>> = { user: 'User', assistant: 'Assistant', tool: 'Tool' }
const reservedLabel = /^(?:also named|system|developer)$/i

/** Label of a message's speaker. Never `System`, which a model could read as an instruction from the application. */
function speakerLabel({ role, name }: Pick<SummaryMessage, 'role' | 'name'>): string {
  const label = clip((name ?? '').replace(/[:\s]+/g, ' ').trim(), 40, '').trimEnd()
  const isUsable = /^[\p{L}\p{N}]/u.test(label) && !reservedLabel.test(label) && findInjections(label).length === 0
  return isUsable ? label : (roleLabels[role] ?? 'Note')
}

const isPerson = ({ role, name }: SummaryMessage): boolean =>
  role === 'user' || (role === 'assistant' && name !== undefined)

/** Spans of sentences and of lines of fenced code. */
function sentenceSpans(content: string): readonly { readonly span: Span; readonly isCode: boolean }[] {
  const code =
    content.includes('```') || content.includes('~~~')
      ? splitFencedLines(content).filter(({ fence }) => fence === 'inside')
      : []
  let next = 0
  return splitSentences(content).map(({ start, end }) => {
    while (next < code.length && (code[next] as (typeof code)[number]).end <= start) next++
    return { span: [start, end], isCode: (code[next]?.start ?? Number.POSITIVE_INFINITY) <= start }
  })
}

/** Reduces tool output to one line: its errors and the names in it. */
function toolOutputGist(message: SummaryMessage, injections: readonly Span[]): Piece[] {
  const isClear = ({ start, end }: FactMatch): boolean => !overlapsAny(injections, start, end)
  const errors = uniqueByText(
    findFacts(message.content).filter((fact) => failure.test(fact.text) && isClear(fact)),
  ).slice(0, 3)
  const names = uniqueByText(
    findAnchors(message.content).filter(
      (anchor) => nameKinds.has(anchor.kind) && !isCompoundWord(anchor) && isClear(anchor),
    ),
  )
  const others = names.filter(({ text }) => !errors.some((error) => error.text.includes(text))).slice(0, 5)
  const gist = [...errors, ...others]
  const span = [Math.min(...gist.map(({ start }) => start)), Math.max(...gist.map(({ end }) => end))] as const
  return gist.length === 0 ? [] : messagePiece(message, 'gist', span, gist.map(({ text }) => text).join('; '))
}

const failure = /(?:error|exception|failure|fatal|panic|failed)[^\n]*\s/i
const nameKinds: ReadonlySet<AnchorKind> = new Set(['url', 'path', 'identifier'])
const uniqueByText = <T extends FactMatch>(facts: readonly T[]): T[] => [
  ...new Map(facts.map((fact) => [fact.text, fact])).values(),
]

const bold = /(?<![\w/*])\*\*([^\s*](?:[^*\n]{0,200}[^\s*])?)\*\*(?![\w/*])/g
const blockMarks = /(?<=^|\n)[ \t]{0,16}(?:#{1,6}|[-*+•]) (?:\[[ x]\] )?/g

/** Joins a text to one line and removes Markdown for headings, lists and bold. */
const stripMarkdown = (text: string): string =>
  text.replace(blockMarks, '').replace(bold, '$1').replace(/\s+/g, ' ').trim()

/** Pieces of an earlier summary and all names in it. */
type EarlierSummary = { readonly pieces: readonly Piece[]; readonly names: readonly NamedEntity[] }

/**
 * Splits an earlier summary into pieces. In a built-in summary each line has its own source; in any other text each
 * sentence gets all sources.
 */
export function splitEarlierSummary(previous: SummaryText | undefined): EarlierSummary {
  if (previous === undefined) return { pieces: [], names: [] }
  const { lines, names } = parseRenderedSummary(previous.text)
  const isBuiltin =
    lines.length + names.length === previous.sources.length && previous.sources.every(({ span }) => span !== undefined)
  const sourcesAt = (index: number): readonly Source[] =>
    isBuiltin ? previous.sources.slice(index, index + 1) : previous.sources
  const pieces = lines.flatMap(({ speaker, text }, at) =>
    (isBuiltin ? [text] : splitSentences(text).map((sentence) => sentence.text)).flatMap((sentence) =>
      earlierPiece(speaker, sentence, sourcesAt(at)),
    ),
  )
  const named = names
    .map((text, at) => ({ text, sources: sourcesAt(lines.length + at) }))
    .filter(({ text }) => isUsableName(text))
  // Names in pieces are listed too: a piece may be omitted this time.
  const shown = pieces.flatMap(({ text, sources }) =>
    findAnchors(text).flatMap((anchor) => (isNameable(anchor) ? [{ text: anchor.text, sources }] : [])),
  )
  return { pieces, names: [...named, ...shown] }
}

const isUsableName = (text: string): boolean => text.trim() !== '' && findInjections(text).length === 0

function earlierPiece(speaker: string, raw: string, sources: readonly Source[]): Piece[] {
  const text = stripMarkdown(raw)
  if (text === '' || findInjections(text).length > 0) return []
  return [
    {
      text,
      kind: 'earlier',
      speaker,
      isPerson: speaker !== 'Assistant' && speaker !== 'Tool' && speaker !== 'Note',
      sources,
      words: countWords(text),
      isFromLongTurn: false,
      isAnswer: false,
      hasShortAnswer: false,
    },
  ]
}

const tailLabel = 'Also named: '
const speakerLine = /^([\p{L}\p{N}][^:\n]{0,39}): (.*)$/su

/** Renders one line per piece, with the speaker before the first line of a run, and a last line with the tail names. */
export function renderPieces(pieces: readonly Piece[], tail: readonly NamedEntity[]): string {
  const lines: string[] = []
  let speaker = ''
  for (const piece of pieces) {
    // A text that looks like a speaker line gets the label of its actual speaker.
    const isLabelled = piece.speaker !== '' && (piece.speaker !== speaker || speakerLine.test(piece.text))
    lines.push(isLabelled ? `${piece.speaker}: ${piece.text}` : piece.text)
    speaker = piece.speaker
  }
  if (tail.length > 0) lines.push(tailLabel + tail.map(({ text }) => text).join(', '))
  return lines.join('\n')
}

/**
 * Renders a summary with one source per piece and name in their order, or with all distinct sources if a piece has
 * several.
 */
export function buildSummaryText(pieces: readonly Piece[], tail: readonly NamedEntity[]): SummaryText {
  const all = [...pieces, ...tail].map(({ sources }) => sources)
  return {
    text: renderPieces(pieces, tail),
    sources: all.every(({ length }) => length === 1) ? all.flat() : uniqueSources(all.flat()),
  }
}

function uniqueSources(sources: readonly Source[]): readonly Source[] {
  return [
    ...new Map(
      sources.map((source) => [`${source.session ?? ''}\n${source.message}\n${source.span?.join('-') ?? ''}`, source]),
    ).values(),
  ]
}

/** Splits a rendered summary into its lines with their speakers, and the names at its end. */
export function parseRenderedSummary(text: string): {
  readonly lines: readonly { readonly speaker: string; readonly text: string }[]
  readonly names: readonly string[]
} {
  const lines: { speaker: string; text: string }[] = []
  const names: string[] = []
  let speaker = ''
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    if (line.startsWith(tailLabel)) {
      names.push(...line.slice(tailLabel.length).split(', '))
      continue
    }
    const [, label, rest] = speakerLine.exec(line) ?? []
    speaker = label ?? speaker
    lines.push({ speaker, text: rest ?? line })
  }
  return { lines, names }
}
