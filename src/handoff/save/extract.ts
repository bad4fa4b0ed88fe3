import type { Message, Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { type Anchor, anchorsIn } from '../../text/anchors.ts'
import { clip } from '../../text/clip.ts'
import {
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
import { type FoundItem, findBlocks, findFailures, findFiles, findNotes, findQuestions } from './findItems.ts'

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

/**
 * Extracts the context items of a conversation, most important first and without duplicates. Deterministic.
 *
 * @example
 * extractItems(messages, { tokenizer }).map(({ category, content }) => `${category} ${content}`) // ['task - [ ] Fix src/login.ts', 'file src/login.ts']
 */
export function extractItems(messages: readonly Message[], options: ExtractOptions): readonly ContextItem[] {
  const textMessages = toTextMessages(messages)
  const anchors = textMessages.map(({ text }) => anchorsIn(text))
  const mentionCounts = countMentions(anchors)
  const tokensAfter = createTokensAfter(textMessages, options.tokenizer)
  const drafts = new Map<string, ItemDraft>()
  for (const [index, textMessage] of textMessages.entries()) {
    const messageAnchors = anchors[index] ?? []
    const { id: messageId } = textMessage.message
    const isMarked = options.marked?.has(messageId) === true
    const isLast = index === textMessages.length - 1
    const found = [
      ...findItems(textMessage, messageAnchors, isLast),
      ...(isMarked ? [markedMessageItem(textMessage)] : []),
    ]
    for (const item of found) {
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
  }
  return [...drafts.values()]
    .map((draft) => rankItem(draft, mentionCounts, options))
    .sort(compareByPriority)
    .slice(0, maxItems)
    .map((item) => ({ ...item, tokens: options.tokenizer.count(item.content) }))
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

function findItems({ message, text }: TextMessage, anchors: readonly Anchor[], isLast: boolean): readonly FoundItem[] {
  const { blocks, otherLines } = findBlocks(text)
  const isBinding = message.role === 'user' || message.role === 'system'
  return [
    ...blocks,
    ...findNotes(text, otherLines, anchors, isBinding),
    ...findFailures(text),
    ...findFiles(anchors),
    // Questions of earlier messages have been answered.
    ...(isLast ? findQuestions(text) : []),
  ]
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
function createTokensAfter(
  textMessages: readonly TextMessage[],
  tokenizer: Tokenizer,
): (index: number, offset: number) => Tokens {
  const tokens = textMessages.map(({ text }) => tokenizer.count(text))
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
