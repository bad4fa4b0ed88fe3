import type { Message, Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { type Anchor, findAnchorsInSteps, isCompoundWord } from '../../text/anchors.ts'
import { clip, clipMiddle } from '../../text/clip.ts'
import { type FencedLine, splitFencedLinesInSteps } from '../../text/fences.ts'
import { splitSentencesInSteps } from '../../text/sentences.ts'
import {
  type Category,
  type CategoryWeights,
  type ContextItem,
  compareByPriority,
  computeImportance,
  evenWeights,
  type Factors,
  frequencyFactor,
  recencyFactor,
  specificityFactor,
  typeFactors,
} from '../item.ts'
import { shortHash } from '../rows.ts'
import { type TextMessage, toTextMessages } from '../textMessage.ts'
import { findOutcomesInSteps, isFailure, type Outcomes } from './outcomes.ts'

export type ExtractOptions = {
  readonly tokenizer: Tokenizer
  readonly weights?: CategoryWeights
  /** Ids of messages marked by the user. */
  readonly marked?: ReadonlySet<string>
  /** Similarity of a content to the current topic, from 0 to 1. */
  readonly similarity?: (content: string) => number
}

/** Items stored per conversation; a restore shows 50 by default. */
const maxItems = 300
/** Characters stored of a marked message. */
const maxMarkedChars = 4_000
/** Cost of an item, in characters. */
const itemWork = 20
/** Costs of a message and of a line beside their characters. */
const messageWork = 40
const lineWork = 4

/**
 * Extracts the context items of a conversation, most important first and without duplicates. Deterministic.
 *
 * @example
 * extractItems(messages, { tokenizer }).map(({ category, content }) => `${category} ${content}`) // ['task - [ ] Fix src/login.ts', 'file src/login.ts']
 */
export const extractItems = (messages: readonly Message[], options: ExtractOptions): readonly ContextItem[] =>
  runSync(extractItemsInSteps(messages, options))

/** `extractItems` as interruptible work. */
export function* extractItemsInSteps(
  messages: readonly Message[],
  options: ExtractOptions,
): Work<readonly ContextItem[]> {
  const textMessages = toTextMessages(messages)
  const anchors: (readonly Anchor[])[] = []
  for (const { text } of textMessages) {
    anchors.push(yield* findAnchorsInSteps(text))
    yield text.length + messageWork
  }
  const outcomes = yield* findOutcomesInSteps(textMessages.map(({ text }) => text))
  const mentionCounts = countMentions(anchors)
  const tokensAfter = yield* createTokensAfter(textMessages, options.tokenizer)
  const drafts = new Map<string, ItemDraft>()
  for (const [index, textMessage] of textMessages.entries()) {
    const messageAnchors = anchors[index] ?? []
    const { id: messageId } = textMessage.message
    const isMarked = options.marked?.has(messageId) === true
    const isLast = index === textMessages.length - 1
    const items = yield* findItems(textMessage, messageAnchors, isLast)
    const current = items.filter((item) => isCurrent(item, index, outcomes))
    const found = [
      ...current,
      ...findNewestResult(textMessage, index, outcomes, current),
      ...(isMarked ? [markedMessageItem(textMessage)] : []),
    ]
    yield textMessage.text.length + messageWork
    for (const item of found) {
      yield itemWork
      const id = shortHash(`${item.category}\n${item.content}`)
      const { sources = new Set<string>(), marked = false } = drafts.get(id) ?? {}
      drafts.set(id, {
        id,
        item,
        sources: sources.add(messageId),
        names: namesWithin(messageAnchors, item),
        tokensAgo: tokensAfter(index, item.end),
        marked: marked || isMarked,
      })
    }
    yield textMessage.text.length
  }
  const ranked: Omit<ContextItem, 'tokens'>[] = []
  for (const draft of drafts.values()) {
    ranked.push(rankItem(draft, mentionCounts, options))
    yield itemWork
  }
  const items: ContextItem[] = []
  for (const item of ranked.sort(compareByPriority).slice(0, maxItems)) {
    items.push({ ...item, tokens: options.tokenizer.count(item.content) })
    yield itemWork + item.content.length
  }
  return items
}

/** Found item with its sources; names and distance are those of its newest occurrence. */
type ItemDraft = {
  readonly id: string
  readonly item: FoundItem
  readonly sources: Set<string>
  readonly names: ReadonlySet<string>
  readonly tokensAgo: Tokens
  readonly marked: boolean
}

function* findItems(
  { message, text }: TextMessage,
  anchors: readonly Anchor[],
  isLast: boolean,
): Work<readonly FoundItem[]> {
  const { blocks, otherLines } = yield* findBlocks(text)
  const isBinding = message.role === 'user' || message.role === 'system'
  return [
    ...blocks,
    ...(yield* findNotes(text, otherLines, anchors, isBinding)),
    ...(yield* findFailures(text)),
    ...findFiles(anchors),
    // Questions of earlier messages have been answered.
    ...(isLast ? yield* findQuestions(text) : []),
  ]
}

/** Longer items are about more than the outcomes in them. */
const maxOutcomeLines = 12

/** Checks whether an item states something that was not settled later in the conversation. */
const isCurrent = ({ category, content, start, end }: FoundItem, message: number, { isSettled }: Outcomes): boolean =>
  (category !== 'data' && category !== 'task') ||
  content.split('\n').length > maxOutcomeLines ||
  !isSettled({ message, start, end })

/** Returns the result of the newest test run if it is in this message and in none of its items. */
function findNewestResult(
  { text }: TextMessage,
  message: number,
  { newestResult }: Outcomes,
  items: readonly FoundItem[],
): readonly FoundItem[] {
  if (newestResult?.message !== message) return []
  const { start, end } = newestResult
  const isKnown = items.some((item) => item.category !== 'file' && item.start <= start && item.end >= end)
  return isKnown ? [] : [{ category: 'data', content: text.slice(start, end).trim(), start, end }]
}

/** Keeps a marked message verbatim, in addition to the items found in it. */
const markedMessageItem = ({ text }: TextMessage): FoundItem => ({
  category: 'concept',
  content: clip(text.trim(), maxMarkedChars, '\n...'),
  start: 0,
  end: text.length,
})

const isName = ({ kind }: Anchor): boolean => kind !== 'constraint'

/** Counts the messages that mention each name. */
function countMentions(anchors: readonly (readonly Anchor[])[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const messageAnchors of anchors)
    for (const name of new Set(messageAnchors.filter(isName).map(({ text }) => text)))
      counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** Creates a function that estimates the tokens between an offset in a message and the end of the conversation. */
function* createTokensAfter(
  textMessages: readonly TextMessage[],
  tokenizer: Tokenizer,
): Work<(index: number, offset: number) => Tokens> {
  const tokens: Tokens[] = []
  for (const { text } of textMessages) {
    tokens.push(tokenizer.count(text))
    yield text.length
  }
  const tokensAfterMessage: Tokens[] = []
  let sum = 0
  for (let index = textMessages.length - 1; index >= 0; index--) {
    tokensAfterMessage[index] = sum
    sum += tokens[index] ?? 0
  }
  return (index, offset) => {
    const length = textMessages[index]?.text.length ?? 1
    return (tokensAfterMessage[index] ?? 0) + ((tokens[index] ?? 0) * (length - offset)) / length
  }
}

/** Returns the names inside an item. Anchors are sorted by start, so the first candidate is found by binary search. */
function namesWithin(anchors: readonly Anchor[], { start, end }: FoundItem): ReadonlySet<string> {
  let [low, high] = [0, anchors.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((anchors[middle] as Anchor).start < start) low = middle + 1
    else high = middle
  }
  const names = new Set<string>()
  for (let index = low; index < anchors.length && (anchors[index] as Anchor).start < end; index++)
    if (isName(anchors[index] as Anchor)) names.add((anchors[index] as Anchor).text)
  return names
}

/** Computes an item's importance. Tokens are counted later, only for items that are kept. */
function rankItem(
  { id, item: { category, content }, sources, names, tokensAgo, marked }: ItemDraft,
  mentionCounts: ReadonlyMap<string, number>,
  { similarity, weights = evenWeights }: ExtractOptions,
): Omit<ContextItem, 'tokens'> {
  let messageCount = sources.size
  for (const name of names) messageCount = Math.max(messageCount, mentionCounts.get(name) ?? 0)
  const factors: Factors = {
    recency: recencyFactor(tokensAgo),
    frequency: frequencyFactor(messageCount),
    specificity: specificityFactor(names.size),
    type: typeFactors[category],
    marking: marked ? 1 : 0,
    // An embedder may return NaN, hence `|| 0`.
    ...(similarity === undefined ? {} : { similarity: Math.max(0, Math.min(1, similarity(content))) || 0 }),
  }
  const importance = computeImportance(factors, weights[category])
  return { id, category, content, importance, marked, factors, sources: [...sources] }
}

/** Item found in a message at `text.slice(start, end)`; `content` is clipped if it is long. */
type FoundItem = {
  readonly category: Category
  readonly content: string
  readonly start: number
  readonly end: number
}

/** Characters stored of the start and the end of a block. */
const blockHeadChars = 3_000
const blockTailChars = 1_000
/** Header, rule and one row. */
const minTableLines = 3
/** Lines after a command that count as its output. */
const maxCommandOutputLines = 8
/** Longer lines are not notes. */
const maxNoteChars = 600

const dataLanguages = new Set(
  'json json5 jsonc jsonl csv tsv yaml yml toml ini log output console terminal text txt md markdown mdc'.split(' '),
)

/** Finds fenced code, diffs, tables, commands with their output, and JSON. `otherLines` are in none of these. */
function* findBlocks(text: string): Work<{
  readonly blocks: readonly FoundItem[]
  readonly otherLines: readonly FencedLine[]
}> {
  const json = findJson(text)
  if (json !== undefined) return { blocks: [json], otherLines: [] }
  const lines = yield* splitFencedLinesInSteps(text)
  const blocks: FoundItem[] = []
  const otherLines: FencedLine[] = []
  for (let index = 0; index < lines.length; ) {
    yield lineWork
    const block = findBlockEnd(text, lines, index)
    if (block === undefined) otherLines.push(lines[index++] as FencedLine)
    else {
      blocks.push(toBlock(text, lines.slice(index, block.end), block.category))
      index = block.end
    }
  }
  return { blocks, otherLines }
}

/** Returns the index after the block that starts at `index`; undefined if none starts there. */
function findBlockEnd(
  text: string,
  lines: readonly FencedLine[],
  index: number,
): { readonly end: number; readonly category: Category } | undefined {
  const line = lines[index] as FencedLine
  const lineAt = (at: number): string => text.slice(lines[at]?.start, lines[at]?.end)
  const endWhile = (matches: (line: string) => boolean, maxLines = Number.POSITIVE_INFINITY): number => {
    let end = index + 1
    while (end < lines.length && end - index <= maxLines && lines[end]?.fence === 'none' && matches(lineAt(end))) end++
    return end
  }
  if (line.fence === 'open') {
    let end = index + 1
    while (lines[end]?.fence === 'inside') end++
    const isEmpty = end === index + 1
    const category = dataLanguages.has(line.language) || isCommand(lineAt(index + 1)) ? 'data' : 'code'
    return isEmpty ? undefined : { end: lines[end]?.fence === 'close' ? end + 1 : end, category }
  }
  if (line.fence !== 'none') return undefined
  const first = lineAt(index)
  if (isDiffStart(first)) return { end: endWhile(isDiffLine), category: 'code' }
  if (isTableRow(first) && endWhile(isTableRow) - index >= minTableLines)
    return { end: endWhile(isTableRow), category: 'data' }
  return isCommand(first)
    ? { end: endWhile((next) => /\S/.test(next) && !isCommand(next), maxCommandOutputLines), category: 'data' }
    : undefined
}

const isDiffStart = (line: string): boolean => /^(?:diff --git |@@ -\d)/.test(line)
const isDiffLine = (line: string): boolean =>
  /^(?:[-+ @\\]|diff --git |index |new file|deleted file|similarity|rename )/.test(line)
const isTableRow = (line: string): boolean => /^\s{0,8}\|/.test(line)
/** Matches a shell prompt with a command: `$ npm test`, `ann@host src % npm test`. */
const isCommand = (line: string): boolean =>
  /^\s{0,8}(?:[\w.@:~/#-]{1,60} ){0,2}(?:[\w.@:~/#-]{0,60}\$|[%❯]) \S/.test(line)

const clipBlock = (text: string): string => clipMiddle(text, blockHeadChars, blockTailChars, '\n...\n')

function toBlock(text: string, lines: readonly FencedLine[], category: Category): FoundItem {
  const [start, end] = [lines[0]?.start ?? 0, lines.at(-1)?.end ?? 0]
  return { category, content: clipBlock(text.slice(start, end).trimEnd()), start, end }
}

function findJson(text: string): FoundItem | undefined {
  const json = text.trim()
  if (!/^[[{]/.test(json) || !/[\]}]$/.test(json.slice(-1))) return undefined
  try {
    JSON.parse(json)
    return { category: 'data', content: clipBlock(json), start: 0, end: text.length }
  } catch {
    return undefined
  }
}

const taskLine = /^\s*(?:[-*+]|\d{1,3}[.)])? ?\[ \] |\b(?:TODO|FIXME)\b/
const taskHeading =
  /^[\s#*_>-]{0,12}(?:next steps?|remaining|open questions?|to[- ]?dos?|still (?:to do|open)|blocked|follow[- ]?ups?)\b[^.!?]{0,40}$/i
const listItem = /^\s*(?:[-*+]|\d{1,3}[.)]) \S/
const decisionLine =
  /\b(?:decided|decision|agreed|settled on|going with|opted for|we(?:['’]ll| will) (?:use|go with|keep|stick)|let['’]?s (?:use|go with|keep|stick|call)|instead of|rather than)\b/i
const definitionLine = /^\s*(?:[-*+] |\d{1,3}[.)] )?(?:\*\*[^*\n]{2,60}\*\*|`[^`\n]{2,60}`)\s?(?::|[-–—] )\s?\S/

/** Finds lines with tasks, decisions, definitions, or values such as figures, URLs and ids. */
function* findNotes(
  text: string,
  lines: readonly FencedLine[],
  anchors: readonly Anchor[],
  isBinding: boolean,
): Work<readonly FoundItem[]> {
  const found: FoundItem[] = []
  let isUnderTaskHeading = false
  let firstAnchor = 0
  for (const { start, end, fence } of lines) {
    const line = text.slice(start, end)
    yield lineWork + Math.min(line.length, maxNoteChars)
    if (fence !== 'none' || line.length > maxNoteChars || !/\S/.test(line)) continue
    while (firstAnchor < anchors.length && (anchors[firstAnchor] as Anchor).start < start) firstAnchor++
    let endAnchor = firstAnchor
    while (endAnchor < anchors.length && (anchors[endAnchor] as Anchor).start < end) endAnchor++
    if (taskHeading.test(line)) isUnderTaskHeading = true
    else if (!listItem.test(line)) isUnderTaskHeading = false
    const category =
      isUnderTaskHeading && listItem.test(line)
        ? 'task'
        : classifyLine(line, anchors.slice(firstAnchor, endAnchor), isBinding)
    if (category !== undefined) found.push({ category, content: line.trim(), start, end })
  }
  return found
}

/** Classifies a line. `isBinding` is true if its author may set constraints. */
function classifyLine(line: string, anchors: readonly Anchor[], isBinding: boolean): Category | undefined {
  if (taskLine.test(line)) return 'task'
  // Program output is not a constraint, whatever it contains.
  if (isFailure(line)) return 'data'
  const isConstraint = isBinding && anchors.some(({ kind }) => kind === 'constraint')
  if (isConstraint || decisionLine.test(line) || definitionLine.test(line)) return 'concept'
  return anchors.some(isValue) ? 'data' : undefined
}

/** A figure with its unit, a URL or an id. */
const isValue = ({ kind, text }: Anchor): boolean =>
  kind === 'url' || kind === 'number' || (kind === 'identifier' && /^#?\w*\d{2}/.test(text))

/** Finds failure lines inside fenced output, such as that of a test run. */
function* findFailures(text: string): Work<readonly FoundItem[]> {
  const found: FoundItem[] = []
  for (const { start, end, fence } of yield* splitFencedLinesInSteps(text)) {
    if (fence !== 'inside' || end - start > maxNoteChars) continue
    const line = text.slice(start, end)
    if (isFailure(line)) found.push({ category: 'data', content: line.trim(), start, end })
    yield lineWork + line.length
  }
  return found
}

function* findQuestions(text: string): Work<readonly FoundItem[]> {
  return (yield* splitSentencesInSteps(text))
    .filter(({ text: sentence }) => /\?["'”’)*_]*$/.test(sentence))
    .map(({ text: question, start, end }) => ({ category: 'task', content: clip(question, maxNoteChars), start, end }))
}

function findFiles(anchors: readonly Anchor[]): readonly FoundItem[] {
  return anchors
    .filter((anchor) => anchor.kind === 'path' && !isCompoundWord(anchor))
    .map(({ text: content, start, end }) => ({ category: 'file', content, start, end }))
}
