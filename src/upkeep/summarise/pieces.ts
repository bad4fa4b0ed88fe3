import type { Source } from '../../domain/entry.ts'
import type { Work } from '../../domain/work.ts'
import { clip } from '../../text/clip.ts'
import { findFactsInSteps } from '../../text/facts.ts'
import { splitSentences } from '../../text/sentences.ts'
import { type Actions, findTerminalOutput, isListedCall } from './actions.ts'
import { isCodeLine, splitIntoClauses, stripMarkdown } from './clauses.ts'
import { isDangling, isPleasantry, measureLead, measureTrail } from './cues.ts'
import { findInjections, findInjectionsInSteps, overlapsAny, type Span } from './injectionCheck.ts'
import { findTally } from './outcomes.ts'
import { findQuotations } from './quotations.ts'
import { collapseWhitespace, countWords, type NamedEntity, type SummaryMessage, type SummaryText } from './summary.ts'

/**
 * Sentence of a message, result of a tool, several values in the same words, or a sentence or detail of an earlier
 * summary.
 */
export type PieceKind = 'prose' | 'output' | 'series' | 'earlier' | 'detail'

/** Smallest unit that a summary keeps or omits: a sentence on one line. */
export type Piece = {
  readonly text: string
  readonly kind: PieceKind
  readonly speaker: string
  /** Day on which it was said, such as `8 May 2023`; empty if unknown. */
  readonly day: string
  /** Spoken by a user or a named assistant, not by a program or an unnamed assistant. */
  readonly isPerson: boolean
  /** One source, or one for each item of a series. */
  readonly sources: readonly Source[]
  readonly words: number
  /** Part of a long turn, which is mostly pasted or explanatory text. */
  readonly isFromLongTurn: boolean
  /** Starts the answer to another speaker's question. */
  readonly isAnswer: boolean
  /** The next piece is the short answer to this one, so they are kept together. */
  readonly hasShortAnswer: boolean
  /** Refers to the piece before, and is unclear without it. */
  readonly needsPrevious: boolean
  /** Text between this clause and the one before it in the same sentence; empty for a new sentence. */
  readonly joint: string
  /** Greeting, thanks, stock phrase or empty introduction: kept only if there is nothing else. */
  readonly isFiller: boolean
  /** Stored as a fact, which is shown beside the summary. */
  readonly isFact?: boolean
}

/** Cost of a step that handles a piece, in characters. */
export const pieceWork = ({ text }: Pick<Piece, 'text'>): number => text.length + 20
/** Cost of a message beside its text, in characters. */
const messageWork = 80

/** Tool output up to this length is shown if it is prose. */
const maxBriefOutputWords = 40
/** An answer up to this length is unclear without its question. */
const maxShortAnswerWords = 12
/** Longer turns are most likely pasted. */
const longTurnChars = 1_000
const maxToolErrors = 2
const maxIntroductionWords = 6
/** Sentences of all messages that become pieces, which take a kilobyte of memory each. */
const maxSentences = 200_000
/** Sentences of a message that become pieces, however many messages there are. */
const minMessageSentences = 100
/** Cost of a sentence beside its characters. */
const sentenceWork = 20

/** Splits messages into pieces in conversation order. */
export function* splitIntoPieces(messages: readonly SummaryMessage[]): Work<Piece[]> {
  const pieces: Piece[] = []
  const listedCalls = new Set<string>()
  const maxOwn = Math.max(minMessageSentences, Math.floor(maxSentences / messages.length))
  let previous: SummaryMessage | undefined
  for (const message of messages) {
    for (const call of message.toolCalls ?? []) if (isListedCall(call)) listedCalls.add(call.id)
    const isAnswer =
      previous !== undefined && endsWithQuestion(previous.content) && speakerLabel(previous) !== speakerLabel(message)
    // The results of commands and changes of files are in lists.
    const isListed = message.role === 'tool' && listedCalls.has(message.toolCallId ?? '')
    const own = isListed ? [] : withoutRepeats(yield* splitMessage(message, maxOwn))
    addMessagePieces(pieces, own, isAnswer)
    if (own.length > 0) previous = message
    yield message.content.length + messageWork
  }
  return pieces
}

/** Removes sentences that a message repeats word for word. */
function withoutRepeats(pieces: readonly Piece[]): readonly Piece[] {
  const seen = new Set<string>()
  return pieces.filter(({ text }) => !seen.has(text) && seen.add(text))
}

function addMessagePieces(pieces: Piece[], own: readonly Piece[], isAnswer: boolean): void {
  const last = pieces.at(-1)
  const isShortAnswer = isAnswer && own.length === 1 && (own[0]?.words ?? 0) <= maxShortAnswerWords
  // The question is marked here, because only its answer shows how short the answer is.
  if (last !== undefined && isShortAnswer && endsWithQuestion(last.text))
    pieces[pieces.length - 1] = { ...last, hasShortAnswer: true }
  for (const [at, piece] of own.entries()) {
    // "Yes." is an answer, not a pleasantry.
    const isFirstAnswer = isAnswer && at === 0
    pieces.push(isFirstAnswer ? { ...piece, isAnswer, isFiller: piece.isFiller && !isShortAnswer } : piece)
  }
}

const endsWithQuestion = (text: string): boolean => /\?["'”’)\]]*\s*$/.test(text.slice(-40))

/** Splits a message into pieces, of which at most `maxOwn` sentences are looked at. */
function* splitMessage(message: SummaryMessage, maxOwn: number): Work<Piece[]> {
  const injections = yield* findInjectionsInSteps(message.content)
  if (message.role === 'tool') return yield* splitToolOutput(message, injections, maxOwn)
  const skipped = [injections, yield* findTerminalOutput(message.content), yield* findQuotations(message.content)]
  yield message.content.length
  const pieces: Piece[] = []
  for (const { span, joint, isCode } of yield* splitIntoClauses(message.content, maxOwn)) {
    if (isCode || skipped.some((spans) => overlapsAny(spans, ...span))) continue
    for (const piece of sentencePiece(message, span, joint)) pieces.push(piece)
    yield span[1] - span[0] + sentenceWork
  }
  return pieces
}

function sentencePiece(message: SummaryMessage, [from, to]: Span, joint: string): Piece[] {
  const lead = joint !== '' ? 0 : measureLead(message.content.slice(from, to))
  const span: Span = [from + lead, to - measureTrail(message.content.slice(from, to))]
  const stripped = stripMarkdown(message.content.slice(...span))
  const text = lead > 0 && /^\p{Ll}+ /u.test(stripped) ? stripped.charAt(0).toUpperCase() + stripped.slice(1) : stripped
  if (!/[\p{L}\p{N}]/u.test(text) || isCodeLine(text)) return []
  const piece = messagePiece(message, 'prose', span, text)
  return [{ ...piece, joint, needsPrevious: joint !== '' || isDangling(text, piece.words) }]
}

function messagePiece(message: SummaryMessage, kind: PieceKind, span: Span, text: string): Piece {
  const words = countWords(text)
  return {
    text,
    kind,
    words,
    sources: [{ message: message.id, span }],
    speaker: speakerLabel(message),
    day: formatDay(message.at),
    isPerson: isPerson(message),
    isFromLongTurn: message.content.length > longTurnChars,
    isAnswer: false,
    hasShortAnswer: false,
    needsPrevious: false,
    joint: '',
    isFiller: kind === 'prose' && (isPleasantry(text, words) || (words <= maxIntroductionWords && text.endsWith(':'))),
  }
}

const roleLabels: Readonly<Record<string, string>> = { user: 'User', assistant: 'Assistant', tool: 'Tool' }
const reservedLabel = /^(?:commands|files|details|series|also named|system|developer)$/i

/** Label of a message's speaker. Never `System`, which a model could read as an instruction from the application. */
function speakerLabel({ role, name }: Pick<SummaryMessage, 'role' | 'name'>): string {
  const label = clip((name ?? '').replace(/[:\s]+/g, ' ').trim(), 40, '').trimEnd()
  const isUsable = /^[\p{L}\p{N}]/u.test(label) && !reservedLabel.test(label) && findInjections(label).length === 0
  return isUsable ? label : (roleLabels[role] ?? 'Note')
}

const isPerson = ({ role, name }: SummaryMessage): boolean =>
  role === 'user' || (role === 'assistant' && name !== undefined)

/** Earlier times are counters, not dates. */
const minDateMs = 1e11
const monthNames = 'January February March April May June July August September October November December'.split(' ')

function formatDay(at: number): string {
  if (!(at >= minDateMs && at < 1e14)) return ''
  const date = new Date(at)
  return `${date.getUTCDate()} ${monthNames[date.getUTCMonth()]} ${date.getUTCFullYear()}`
}

/** Reduces tool output to its errors or counts; a short output is shown as it is. */
function* splitToolOutput(message: SummaryMessage, injections: readonly Span[], maxOwn: number): Work<Piece[]> {
  const { content } = message
  const isClear = (start: number, end: number): boolean => !overlapsAny(injections, start, end)
  const errors = new Map<string, Piece>()
  for (const { text, start, end } of yield* findFactsInSteps(content)) {
    if (errors.size === maxToolErrors) break
    if (namesFailure(text) && isClear(start, end) && !errors.has(text))
      errors.set(text, messagePiece(message, 'output', [start, end], collapseWhitespace(text)))
  }
  if (errors.size > 0) return [...errors.values()]
  yield content.length
  const counts = findTally(content)
  if (counts !== undefined && injections.length === 0)
    return [messagePiece(message, 'output', [0, content.length], counts.text)]
  if (countWords(content) > maxBriefOutputWords) return []
  const pieces: Piece[] = []
  for (const { span } of yield* splitIntoClauses(content, maxOwn)) {
    if (isClear(...span))
      for (const piece of sentencePiece(message, span, '')) pieces.push({ ...piece, kind: 'output', isFiller: false })
    yield span[1] - span[0] + sentenceWork
  }
  return pieces
}

const failure = /error|exception|failure|fatal|panic|failed/i

/** True if a text names a failure and says more after it. */
function namesFailure(text: string): boolean {
  const match = failure.exec(text)
  return match !== null && /\s/.test(text.slice(match.index + match[0].length))
}

/** Pieces, with details first, and actions of an earlier summary. */
type EarlierSummary = { readonly pieces: readonly Piece[]; readonly actions: Actions }

/**
 * Splits an earlier summary into pieces. In a built-in summary each line, and each item of a list, has its own source;
 * in any other text each sentence gets all sources.
 */
export function splitEarlierSummary(previous: SummaryText | undefined): EarlierSummary {
  const { sources = [], text = '' } = previous ?? {}
  const lines = parseSummaryLines(text)
  const isBuiltin =
    sources.length === lines.reduce((sum, { items }) => sum + items.length, 0) &&
    sources.every(({ span }) => span !== undefined)
  const pieces: Piece[] = []
  const lists: Record<ListLabel, NamedEntity[]> = { Commands: [], Files: [], Details: [] }
  let next = 0
  for (const { label, speaker, day, items } of lines) {
    const own = isBuiltin ? sources.slice(next, next + items.length) : sources
    next += items.length
    if (label === undefined)
      for (const sentence of splitSentences(items[0] ?? ''))
        pieces.push(...earlierPiece(speaker, day, sentence.text, own))
    else if (label === seriesLabel) pieces.push(...earlierSeries(items, own))
    else
      for (const [at, item] of items.entries())
        if (item.trim() !== '' && findInjections(item).length === 0)
          lists[label].push({ text: item, sources: isBuiltin ? own.slice(at, at + 1) : own })
  }
  const details = lists.Details.flatMap(({ text: item, sources: own }) =>
    earlierPiece('', '', item, own).map((piece): Piece => ({ ...piece, kind: 'detail', needsPrevious: false })),
  )
  return { pieces: [...details, ...pieces], actions: { commands: lists.Commands, files: lists.Files } }
}

function earlierPiece(speaker: string, day: string, raw: string, sources: readonly Source[]): Piece[] {
  const text = stripMarkdown(raw)
  if (text === '' || findInjections(text).length > 0) return []
  return [
    {
      text,
      kind: 'earlier',
      speaker,
      day,
      isPerson: speaker !== 'Assistant' && speaker !== 'Tool' && speaker !== 'Note',
      sources,
      words: countWords(text),
      isFromLongTurn: false,
      isAnswer: false,
      hasShortAnswer: false,
      needsPrevious: isDangling(text, countWords(text)),
      joint: '',
      isFiller: false,
    },
  ]
}

const earlierSeries = (items: readonly string[], sources: readonly Source[]): Piece[] =>
  earlierPiece('', '', items.join(itemJoint), sources).map((piece) => ({ ...piece, kind: 'series' }))

type ListLabel = 'Commands' | 'Files' | 'Details'
export type SummaryList = { readonly label: ListLabel; readonly items: readonly NamedEntity[] }

const seriesLabel = 'Series'
export const itemJoint = '; '
const listLine = /^(Commands|Files|Details|Series|Also named): (.*)$/s
const speakerLine = /^([\p{L}\p{N}][^:\n]{0,59}): (.*)$/su
const dayOfLabel = /^(.*), (\d{1,2} \p{Lu}\p{Ll}{2,8})( \d{4})?$/su

/** A line of a summary with the pieces or items that it shows. */
type RenderedLine = { readonly text: string; readonly pieces: readonly Piece[]; readonly items: readonly NamedEntity[] }

/**
 * Renders the sentences of a message on one line, with the speaker before the first line of a run and the day when it
 * changes, and then the lists.
 */
export function renderLines(pieces: readonly Piece[], lists: readonly SummaryList[]): readonly RenderedLine[] {
  const lines: RenderedLine[] = []
  let [speaker, day] = ['', '']
  for (let at = 0; at < pieces.length; ) {
    const first = pieces[at] as Piece
    let end = at + 1
    while (end < pieces.length && isSameMessage(first, pieces[end] as Piece)) end++
    const own = pieces.slice(at, end)
    const text = joinSentences(own)
    const isNewDay = first.day !== '' && first.day !== day
    // A text that looks like a speaker line gets the label of its actual speaker.
    const isLabelled = first.speaker !== '' && (first.speaker !== speaker || isNewDay || speakerLine.test(text))
    const label = `${first.speaker}${isNewDay ? `, ${shortenDay(first.day, day)}` : ''}: `
    lines.push({
      text: `${first.kind === 'series' ? `${seriesLabel}: ` : isLabelled ? label : ''}${text}`,
      pieces: own,
      items: [],
    })
    speaker = first.kind === 'series' ? '' : first.speaker
    if (isLabelled && isNewDay) day = first.day
    at = end
  }
  for (const { label, items } of lists)
    if (items.length > 0)
      lines.push({ text: `${label}: ${items.map(({ text }) => text).join(itemJoint)}`, pieces: [], items })
  return lines
}

/** Omits the year if it is that of the day before. */
const shortenDay = (day: string, before: string): string =>
  day.slice(-5) === before.slice(-5) ? day.slice(0, -5) : day

const isSameMessage = (one: Piece, other: Piece): boolean =>
  one.kind !== 'series' &&
  other.kind !== 'series' &&
  one.speaker === other.speaker &&
  one.sources.length === 1 &&
  other.sources.length === 1 &&
  one.sources[0]?.message === other.sources[0]?.message &&
  one.sources[0]?.session === other.sources[0]?.session

function joinSentences(pieces: readonly Piece[]): string {
  let text = ''
  for (const [at, piece] of pieces.entries()) {
    const before = pieces[at - 1]
    const gap = (piece.sources[0]?.span?.[0] ?? 0) - (before?.sources[0]?.span?.[1] ?? 0)
    const isNext = piece.joint !== '' && gap === piece.joint.length
    const joint = isNext ? piece.joint : /[.!?…:]["'”’)\]]*$/.test(before?.text ?? '') ? ' ' : itemJoint
    text = before === undefined ? piece.text : text + joint + piece.text
  }
  return text
}

export const renderPieces = (
  pieces: readonly Piece[],
  details: readonly NamedEntity[],
  lists: readonly SummaryList[] = [],
): string =>
  renderLines(pieces, [...lists, { label: 'Details', items: details }])
    .map(({ text }) => text)
    .join('\n')

/** Returns the text with one source per line and item in their order, or with all distinct ones if one has several. */
export function buildSummaryText(pieces: readonly Piece[], lists: readonly SummaryList[]): SummaryText {
  const lines = renderLines(pieces, lists)
  const all = lines.flatMap(({ pieces: own, items }) =>
    own.length > 0
      ? own[0]?.kind === 'series' && own[0].sources.length === own[0].text.split(itemJoint).length
        ? own[0].sources.map((source) => [source])
        : [enclosingSources(own)]
      : items.map(({ sources }) => sources),
  )
  return {
    text: lines.map(({ text }) => text).join('\n'),
    sources: all.every(({ length }) => length === 1) ? all.flat() : uniqueSources(all.flat()),
  }
}

/** Returns the messages that sentences and items were taken from, with only these as their content. */
export function buildExcerpt(
  messages: readonly SummaryMessage[],
  pieces: readonly Piece[],
  lists: readonly SummaryList[],
): readonly SummaryMessage[] {
  const parts = new Map<string, string[]>()
  const add = (source: Source | undefined, text: string): void => {
    if (source !== undefined && parts.get(source.message)?.push(text) === undefined) parts.set(source.message, [text])
  }
  for (const { pieces: own, items } of renderLines(pieces, lists)) {
    if (own.length > 0) add(own[0]?.sources[0], joinSentences(own))
    for (const { text, sources } of items) add(sources[0], text)
  }
  return messages.flatMap((message) => {
    const own = parts.get(message.id)
    return own === undefined ? [] : [{ ...message, content: own.join('\n') }]
  })
}

/** Source of a line: the passage of its message from the first to the last sentence. */
function enclosingSources(pieces: readonly Piece[]): readonly Source[] {
  const all = pieces.flatMap(({ sources }) => sources)
  const [first] = all
  if (pieces.length === 1 || first === undefined || all.some(({ span }) => span === undefined))
    return uniqueSources(all)
  const spans = all.map(({ span }) => span as Span)
  return [{ ...first, span: [Math.min(...spans.map(([from]) => from)), Math.max(...spans.map(([, to]) => to))] }]
}

function uniqueSources(sources: readonly Source[]): readonly Source[] {
  return [
    ...new Map(
      sources.map((source) => [`${source.session ?? ''}\n${source.message}\n${source.span?.join('-') ?? ''}`, source]),
    ).values(),
  ]
}

type SummaryLine = {
  readonly label: ListLabel | typeof seriesLabel | undefined
  readonly speaker: string
  readonly day: string
  readonly items: readonly string[]
}

function parseSummaryLines(text: string): readonly SummaryLine[] {
  const lines: SummaryLine[] = []
  let [speaker, day] = ['', '']
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    const [, list, items = ''] = listLine.exec(line) ?? []
    if (list !== undefined) {
      // Summaries of earlier versions of the program list bare names.
      const isOld = list === 'Also named'
      const label = isOld ? 'Details' : (list as SummaryLine['label'])
      lines.push({ label, speaker: '', day: '', items: items.split(isOld ? ', ' : itemJoint) })
      if (list === seriesLabel) speaker = ''
      continue
    }
    const [, label, rest] = speakerLine.exec(line) ?? []
    const [, name, date, year = day.slice(-5)] = dayOfLabel.exec(label ?? '') ?? []
    speaker = name ?? label ?? speaker
    if (date !== undefined) day = date + year
    lines.push({ label: undefined, speaker, day, items: [rest ?? line] })
  }
  return lines
}

/** Splits a rendered summary into its lines with their speakers, and the details at its end. */
export function parseRenderedSummary(text: string): {
  readonly lines: readonly { readonly speaker: string; readonly text: string }[]
  readonly names: readonly string[]
} {
  const all = parseSummaryLines(text)
  return {
    lines: all
      .filter(({ label }) => label !== 'Details')
      .map(({ speaker, items }) => ({ speaker, text: items.join(itemJoint) })),
    names: all.flatMap(({ label, items }) => (label === 'Details' ? items : [])),
  }
}
