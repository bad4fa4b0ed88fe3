import type { Message, Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import type { FileState } from '../fileReferences.ts'
import { type ContextItem, compareByPriority } from '../item.ts'
import type { ProvidedContext, WorkspaceState } from '../rows.ts'
import { type TextMessage, toTextMessages, withTexts } from '../textMessage.ts'
import { type BudgetSplit, type Compression, compressTexts } from './budget.ts'
import { ExtractiveRenderer } from './extractiveRenderer.ts'
import { buildFrame, countParts, type RenderedText } from './format.ts'
import { FullRenderer } from './fullRenderer.ts'
import { findShownItems, isNote, itemToMessage } from './lines.ts'
import { MetadataSections } from './sections.ts'

/** Session before the restored one. Messages and items are given if the budget may have room for them. */
export type EarlierSession = {
  readonly session: string
  readonly summary: string
  readonly messages?: readonly Message[]
  readonly items?: readonly ContextItem[]
}

/** Everything a restored text can be made of. */
export type HandoffMaterial = {
  readonly title: string
  readonly messages: readonly Message[]
  readonly items: readonly ContextItem[]
  readonly files: readonly FileState[]
  /** Summaries of the conversation, shortest first. */
  readonly summaries: readonly string[]
  readonly workspaceState?: WorkspaceState
  /** Earlier sessions, oldest first. */
  readonly earlier: readonly EarlierSession[]
  readonly provided: readonly ProvidedContext[]
}

export type RenderOptions = {
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
 * that fits is shown in full, and earlier sessions use the remaining room. Otherwise whitespace is removed, then comments,
 * then lines: the newest request, the newest lines and the most informative ones stay.
 *
 * @example
 * renderHandoff({ title: 'Login', messages, items, files: [], summaries: [], earlier: [], provided: [] }, { budget: 4_000, tokenizer }).text
 */
export function renderHandoff(material: HandoffMaterial, options: RenderOptions): RenderedHandoff {
  const { minImportance = defaultMinImportance, maxItems = defaultMaxItems, tokenizer, budget } = options
  const items = material.items
    .filter(({ importance }) => importance >= minImportance)
    .sort(compareByPriority)
    .slice(0, maxItems)
  const conversation = toTextMessages(material.messages)
  const { notes, itemMessages } = placeExtraItems(items, conversation)
  const messages = [...itemMessages, ...conversation]
  const fullRenderer = new FullRenderer(material, notes, messages, options)
  const { texts, compression } = compressTexts(
    messages.map(({ text }) => text),
    (compressed) => tokenizer.count(fullRenderer.render(withTexts(messages, compressed)).text) <= budget,
  )
  const compressedMessages = withTexts(messages, texts)
  const isShortened = compression === 'sections'
  const own = isShortened
    ? renderExtract(material, items, compressedMessages, options)
    : fullRenderer.render(compressedMessages)
  const rendered = isShortened ? own : fullRenderer.renderWithEarlier(compressedMessages)
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
 * Places items that are in no message of the conversation: sent by a client, or from a message that is too old. Notes are listed;
 * marked items and items of several lines become messages.
 */
function placeExtraItems(
  items: readonly ContextItem[],
  conversation: readonly TextMessage[],
): { readonly notes: readonly ContextItem[]; readonly itemMessages: readonly TextMessage[] } {
  const messageIds = new Set(conversation.map(({ message }) => message.id))
  const extraItems = items.filter(({ sources }) => !sources.some((source) => messageIds.has(source)))
  return {
    notes: extraItems.filter((item) => !item.marked && isNote(item)),
    itemMessages: extraItems.filter((item) => item.marked || !isNote(item)).map(itemToMessage),
  }
}

/** Renders metadata and the best lines of a conversation that does not fit. */
function renderExtract(
  material: HandoffMaterial,
  items: readonly ContextItem[],
  messages: readonly TextMessage[],
  options: RenderOptions,
): RenderedText {
  const notes = items.filter(isNote)
  const createSections = (listed: readonly ContextItem[]): MetadataSections =>
    new MetadataSections(material, listed, options.tokenizer)
  const metadata = {
    tokens: createSections(notes).tokens,
    render: (tokens: Tokens, conversation: string): string => {
      const shownIds = findShownItems(conversation, notes)
      return createSections(notes.filter(({ id }) => !shownIds.has(id))).render(tokens)
    },
  }
  const frame = buildFrame(material.title, { ...options, isComplete: false })
  return new ExtractiveRenderer({ messages, items, isListed: isNote, metadata, frame }, options).render()
}
