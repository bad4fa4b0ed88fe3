import type { Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { splitFencedLinesInSteps } from '../../text/fences.ts'
import { type ContextItem, compareByPriority } from '../item.ts'
import { deriveTitle } from '../sessions.ts'
import { type TextMessage, toTextMessages, withTexts } from '../textMessage.ts'
import { type BudgetSplit, type Compression, compressTextsInSteps, splitBudget } from './budget.ts'
import { type ExtractiveOptions, ExtractiveRenderer } from './extractiveRenderer.ts'
import {
  addHeading,
  buildFrame,
  countParts,
  type Frame,
  formatMessages,
  headings,
  joinParts,
  type RenderedText,
  toSingleLine,
} from './format.ts'
import { findShownItems, isNote, itemToMessage } from './itemLines.ts'
import { type EarlierSession, type HandoffMaterial, MetadataSections } from './sections.ts'

type RenderOptions = {
  /** Maximum tokens of the text. */
  readonly budget: Tokens
  readonly tokenizer: Tokenizer
  /** Topic of the new chat: matching lines are preferred. */
  readonly query?: string
  /** Items of lower importance are omitted. Default 3. */
  readonly minImportance?: number
  /** Maximum number of items. Default 50. */
  readonly maxItems?: number
  /** Last line of the text, within the budget. Small budgets keep only its first sentences. */
  readonly closing?: string
}

export type RenderedHandoff = {
  readonly text: string
  /** The text without earlier sessions, for measuring the preservation of this one. */
  readonly ownText: string
  readonly tokens: Tokens
  /** Tokens used per part. */
  readonly parts: BudgetSplit
  /** Ids of items that the text shows. */
  readonly shownItems: readonly string[]
  /** Ids of items that it does not show. */
  readonly omittedItems: readonly string[]
  readonly compression: Compression
}

const defaultMinImportance = 3
const defaultMaxItems = 50

/**
 * Renders the text a new chat starts with: metadata, then the conversation. It never exceeds the budget. A conversation
 * that fits is shown in full, and earlier sessions use the remaining room. Otherwise whitespace is removed, then
 * comments, then lines: the newest request, the newest lines and the most informative ones stay.
 *
 * @example
 * renderHandoff({ title: 'Login', messages, items, files: [], summaries: [], earlier: [], provided: [] }, { budget: 4_000, tokenizer }).text
 */
export const renderHandoff = (material: HandoffMaterial, options: RenderOptions): RenderedHandoff =>
  runSync(renderHandoffInSteps(material, options))

/** `renderHandoff` as interruptible work. */
export function* renderHandoffInSteps(material: HandoffMaterial, options: RenderOptions): Work<RenderedHandoff> {
  const { minImportance = defaultMinImportance, maxItems = defaultMaxItems, tokenizer, budget } = options
  const items = material.items
    .filter(({ importance }) => importance >= minImportance)
    .sort(compareByPriority)
    .slice(0, maxItems)
  const conversation = toTextMessages(material.messages)
  const { notes, itemMessages } = placeExtraItems(items, conversation, material.isShortened === true)
  const messages = [...itemMessages, ...conversation]
  const fullRenderer = new FullRenderer(material, notes, yield* findCode(messages), options)
  const fits = function* (compressed: readonly string[]): Work<boolean> {
    const { text } = yield* fullRenderer.render(withTexts(messages, compressed))
    yield text.length
    return tokenizer.count(text) <= budget
  }
  const characters = messages.reduce((sum, { text }) => sum + text.length, 0)
  yield characters
  const { texts, compression } = yield* compressTextsInSteps(
    messages.map(({ text }) => text),
    fits,
  )
  const compressedMessages = withTexts(messages, texts)
  const isShortened = compression === 'sections'
  yield characters
  const own = isShortened
    ? yield* renderExtract(material, items, compressedMessages, options)
    : yield* fullRenderer.render(compressedMessages)
  yield characters
  const rendered = isShortened ? own : yield* fullRenderer.renderWithEarlier(compressedMessages)
  yield characters
  const shownIds = findShownItems(rendered.text, items)
  return {
    text: rendered.text,
    ownText: own.text,
    tokens: tokenizer.count(rendered.text),
    parts: countParts(rendered, tokenizer),
    shownItems: items.filter(({ id }) => shownIds.has(id)).map(({ id }) => id),
    omittedItems: material.items.filter(({ id }) => !shownIds.has(id)).map(({ id }) => id),
    compression,
  }
}

/**
 * Places items that are in no message of the conversation: sent by a client, from a message that is too old, or left
 * out of a shortened message. Notes are listed; marked items and items of several lines become messages.
 */
function placeExtraItems(
  items: readonly ContextItem[],
  conversation: readonly TextMessage[],
  isShortened: boolean,
): { readonly notes: readonly ContextItem[]; readonly itemMessages: readonly TextMessage[] } {
  const messageIds = new Set(conversation.map(({ message }) => message.id))
  const shownIds = isShortened ? findShownItems(conversation.map(({ text }) => text).join('\n'), items) : undefined
  const extraItems = items.filter(
    ({ id, sources }) => !(shownIds?.has(id) ?? sources.some((source) => messageIds.has(source))),
  )
  return {
    notes: extraItems.filter((item) => !item.marked && isNote(item)),
    itemMessages: extraItems.filter((item) => item.marked || !isNote(item)).map(itemToMessage),
  }
}

/** Renders metadata and the best lines of a conversation that does not fit. */
function* renderExtract(
  material: HandoffMaterial,
  items: readonly ContextItem[],
  messages: readonly TextMessage[],
  options: RenderOptions,
): Work<RenderedText> {
  const notes = items.filter(isNote)
  const createSections = (listed: readonly ContextItem[]): MetadataSections =>
    new MetadataSections(material, listed, options.tokenizer)
  const metadata = {
    tokens: createSections(notes).tokens,
    render: (tokens: Tokens, conversation: string): string => {
      const shownIds = findShownItems(conversation, notes)
      return createSections(notes.filter(({ id }) => !shownIds.has(id))).render(tokens, conversation, material.title)
    },
  }
  const frame = buildFrame(material.title, { ...options, isComplete: false, isTitleQuoted: isTitleQuoted(material) })
  const { recalled } = material
  const input = { messages, items, recalled, isListed: isNote, metadata, frame }
  return yield* new ExtractiveRenderer(input, options).render()
}

/** Checks whether the title is the beginning of the first user message. */
const isTitleQuoted = ({ title, messages }: HandoffMaterial): boolean => deriveTitle(messages)?.title === title

/** Tells whether a conversation has fenced code; undefined for one without messages. */
function* findCode(messages: readonly TextMessage[]): Work<boolean | undefined> {
  for (const { text } of messages) {
    const mayHaveCode = text.includes('```') || text.includes('~~~')
    if (mayHaveCode && (yield* splitFencedLinesInSteps(text)).some(({ fence }) => fence === 'inside')) return true
    yield 1
  }
  return messages.length === 0 ? undefined : false
}

/** Attempts to fit earlier sessions into the remaining budget. */
const maxAttempts = 3

/** Renders a conversation with all of its messages, and therefore without a summary. */
class FullRenderer {
  readonly #material: HandoffMaterial
  readonly #notes: readonly ContextItem[]
  readonly #options: RenderOptions
  readonly #frame: Frame & { readonly tokens: Tokens }
  /** Tokens guaranteed to the metadata. */
  readonly #minMetadataTokens: Tokens

  constructor(
    material: HandoffMaterial,
    notes: readonly ContextItem[],
    hasCode: boolean | undefined,
    options: RenderOptions,
  ) {
    this.#material = hasCode === undefined ? material : { ...material, summaries: [] }
    this.#notes = notes
    this.#options = options
    this.#frame = this.#buildFrame(material.isShortened !== true)
    const metadataShare = splitBudget(options.budget, hasCode === true).metadata - this.#frame.tokens
    this.#minMetadataTokens = Math.min(this.#metadata().tokens, metadataShare)
  }

  /**
   * Renders with as much metadata as fits. If that is less than its share, renders all of it, which exceeds the budget.
   */
  *render(messages: readonly TextMessage[]): Work<RenderedText> {
    const conversation = yield* formatMessages(messages)
    yield conversation.length
    const remaining = this.#remainingTokens(conversation)
    yield conversation.length
    const metadataTokens = remaining < this.#minMetadataTokens ? Number.POSITIVE_INFINITY : remaining
    return joinParts(this.#frame, this.#metadata().render(metadataTokens), conversation)
  }

  /** Renders with the messages of earlier sessions in the remaining budget. Sessions shown that way need no summary. */
  *renderWithEarlier(messages: readonly TextMessage[]): Work<RenderedText> {
    const { earlier } = this.#material
    const { budget, tokenizer } = this.#options
    const withoutMessages = earlier.filter(({ messages: own = [] }) => own.length === 0)
    if (withoutMessages.length === earlier.length) return yield* this.render(messages)
    const conversation = yield* formatMessages(messages)
    yield conversation.length
    // At most half of the remaining tokens, so that provided context does not use up all of them.
    const metadataTokens = Math.max(this.#minMetadataTokens, Math.floor(this.#remainingTokens(conversation) / 2))
    const incompleteFrame = this.#buildFrame(false)
    const base = joinParts(incompleteFrame, this.#metadata(withoutMessages).render(metadataTokens), conversation)
    let available = budget - tokenizer.count(base.text) - 1
    for (let attempt = 1; attempt <= maxAttempts; attempt++) {
      const { texts, sessions, isComplete } = yield* renderEarlierSessions(earlier, available, this.#options)
      if (texts.length === 0) break
      const others = earlier.filter(({ session }) => !sessions.has(session))
      const frame = { ...(isComplete ? this.#frame : incompleteFrame), earlier: texts }
      const rendered = joinParts(frame, this.#metadata(others).render(metadataTokens), conversation)
      const spare = budget - tokenizer.count(rendered.text)
      if (spare >= 0) return rendered
      available += spare
    }
    return yield* this.render(messages)
  }

  #buildFrame = (isComplete: boolean): Frame & { readonly tokens: Tokens } =>
    buildFrame(this.#material.title, { ...this.#options, isComplete, isTitleQuoted: isTitleQuoted(this.#material) })

  #remainingTokens = (conversation: string): Tokens => {
    const { budget, tokenizer } = this.#options
    return budget - this.#frame.tokens - tokenizer.count(addHeading(this.#frame.heading, conversation)) - 1
  }

  #metadata = (earlier = this.#material.earlier): MetadataSections =>
    new MetadataSections({ ...this.#material, earlier }, this.#notes, this.#options.tokenizer)
}

/** An earlier session is not started with fewer tokens. */
const minEarlierTokens = 80
/** Code of earlier sessions has changed since, while their rules and decisions still hold. */
const earlierCodeFraction = 1 / 3

/** Texts of earlier sessions, oldest first, and the ids of those sessions. */
type RenderedEarlier = {
  readonly texts: readonly string[]
  readonly sessions: ReadonlySet<string>
  /** True if no session was shortened. */
  readonly isComplete: boolean
}

/** Renders earlier sessions from the newest back while there is room, each in full if it fits. */
function* renderEarlierSessions(
  earlier: readonly EarlierSession[],
  tokens: Tokens,
  options: Omit<ExtractiveOptions, 'budget'>,
): Work<RenderedEarlier> {
  const texts: string[] = []
  const sessions = new Set<string>()
  let remaining = tokens
  let isComplete = true
  for (const session of [...earlier].reverse()) {
    if (remaining < minEarlierTokens) break
    const rendered = yield* renderEarlierSession(session, { ...options, budget: remaining })
    if (rendered.text === '') continue
    isComplete &&= !rendered.isShortened
    texts.unshift(rendered.text)
    sessions.add(session.session)
    remaining -= options.tokenizer.count(rendered.text) + 1
  }
  return { texts, sessions, isComplete }
}

function* renderEarlierSession(
  { session, messages: storedMessages = [], items = [], recalled }: EarlierSession,
  options: ExtractiveOptions,
): Work<{ readonly text: string; readonly isShortened: boolean }> {
  const messages = toTextMessages(storedMessages)
  if (messages.length === 0) return { text: '', isShortened: false }
  const heading = `${headings.before} (${toSingleLine(session)})`
  const renderAll = function* (texts: readonly string[]): Work<string> {
    return addHeading(heading, yield* formatMessages(withTexts(messages, texts)))
  }
  const fits = function* (compressed: readonly string[]): Work<boolean> {
    const text = yield* renderAll(compressed)
    yield text.length
    return options.tokenizer.count(text) <= options.budget
  }
  const { texts, compression } = yield* compressTextsInSteps(
    messages.map(({ text }) => text),
    fits,
  )
  if (compression !== 'sections') return { text: yield* renderAll(texts), isShortened: false }
  const input = {
    messages: withTexts(messages, texts),
    items: [...items].sort(compareByPriority),
    recalled,
    // An earlier session has no list of notes.
    isListed: () => false,
    codeFraction: earlierCodeFraction,
    metadata: { tokens: 0, render: () => '' },
    frame: { opening: '', heading, closing: '' },
  }
  const { text } = yield* new ExtractiveRenderer(input, options).render()
  // Without its heading, the text could be mistaken for the current conversation.
  return { text: text.startsWith(heading) ? text : '', isShortened: true }
}
