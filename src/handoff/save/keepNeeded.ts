import { hash } from 'node:crypto'
import { measureMessage } from '../../context/measureMessage.ts'
import type { MessageInput, ParsedMessage } from '../../domain/chat.ts'
import { formatMessageId, type Message, type Tokens } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import type { Work } from '../../domain/work.ts'
import type { Memory } from '../../memory.ts'
import { LineAnalyzer } from '../../selection/conversationLines.ts'
import { omissionMark } from '../../selection/formatLines.ts'
import { selectPassagesInSteps } from '../../selection/selectPassages.ts'
import { formatCount } from '../../text/formatCount.ts'
import type { SessionDraft, Summary } from '../rows.ts'
import type { HandoffDeps } from '../settings.ts'
import { textOf } from '../textMessage.ts'
import { isClientItem } from './request.ts'

// A save that keeps only what is needed stores every message, but of its text only the lines that a restore is likely
// to show. Messages keep their places, so that derived rows still name their sources and forgetting one erases both.

/** Messages that are shortened by a save, and the tokens left out of them. */
export type LeftOut = { readonly messages: number; readonly tokens: Tokens }

/** Cost of a message beside its characters. */
const messageWork = 20

/** Formats the parts that a save left out as a sentence. */
export const formatLeftOut = ({ messages, tokens }: LeftOut): string =>
  messages === 0
    ? 'Nothing was left out: everything is needed.'
    : `Left out ${formatCount(tokens, 'token')} of ${formatCount(messages, 'message')}.`

/** Converts messages that are not stored yet, with the ids they would get after the stored ones. */
export async function toMessages(
  memory: Memory,
  key: Key,
  stored: readonly Message[],
  added: readonly ParsedMessage[],
): Promise<readonly Message[]> {
  const lastSequence = stored.at(-1)?.sequence ?? 0
  return Promise.all(
    added.map(async (message, index) => ({
      kind: 'message' as const,
      id: formatMessageId(lastSequence + 1 + index),
      sequence: lastSequence + 1 + index,
      offset: 0,
      ...measureMessage(memory.tokenizer, await memory.maskMessage(key, message)),
    })),
  )
}

/** Shortens messages to the lines that a restore with this budget would show. Interruptible work. */
export function* shortenMessages(
  { memory, settings }: Pick<HandoffDeps, 'memory' | 'settings'>,
  messages: readonly Message[],
): Work<{ readonly shortened: readonly MessageInput[]; readonly leftOut: LeftOut }> {
  const { tokenizer } = memory
  const selectable = messages.map((message) => ({ role: message.role, text: textOf(message) }))
  const selecting = selectPassagesInSteps(selectable, { budget: settings.budget }, new LineAnalyzer(tokenizer))
  const excerpts = new Map((yield* selecting).map((excerpt) => [excerpt.index, excerpt]))
  const leftOut = { messages: 0, tokens: 0 }
  const shorten = (message: Message, index: number): MessageInput => {
    const { role, name, at, content, toolCalls = [], toolCallId } = message
    const excerpt = excerpts.get(index)
    const common = { role, at, ...(name && { name }), ...(toolCallId && { tool_call_id: toolCallId }) }
    const calls = toolCalls.map(({ id, name: tool, arguments: args }) => ({
      id,
      function: { name: tool, arguments: args },
    }))
    if (excerpt?.isWhole) return { ...common, content, ...(calls.length > 0 && { tool_calls: calls }) }
    const text = excerpt?.text ?? omissionMark
    const tokens = tokenizer.count(textOf(message)) - tokenizer.count(text)
    if (tokens <= 0 && calls.length === 0) return { ...common, content }
    leftOut.messages++
    leftOut.tokens += Math.max(0, tokens)
    return { ...common, content: text }
  }
  const shortened: MessageInput[] = []
  for (const [index, message] of messages.entries()) {
    shortened.push(shorten(message, index))
    yield message.content.length + messageWork
  }
  return { shortened, leftOut }
}

/** Names an append by its content and place, so that a repeated save stores the messages once. */
export const shortenedOperationId = (messages: readonly MessageInput[], lastSequence: number): string =>
  `handoff-needed-${hash('sha256', JSON.stringify([lastSequence, messages])).slice(0, 32)}`

/** Reduces a draft to what a restore can show, and replaces the ids of its sources by those of the stored messages. */
export function toNeededDraft(
  { settings }: Pick<HandoffDeps, 'settings'>,
  draft: SessionDraft,
  messages: readonly Message[],
  stored: { readonly ids: readonly string[]; readonly hashes: readonly string[] },
): SessionDraft {
  const newIds = new Map(messages.map(({ id }, index) => [id, stored.ids[index] ?? id]))
  const rename = (ids: readonly string[]): readonly string[] => ids.map((id) => newIds.get(id) ?? id)
  const renameSummary = (summary: Summary): Summary => ({ ...summary, sources: rename(summary.sources) })
  const isGiven = (item: SessionDraft['items'][number]): boolean => isClientItem(draft.id, item)
  const shown = draft.items
    .filter((item) => !isGiven(item) && item.importance >= settings.importance)
    .slice(0, settings.items)
  return {
    ...draft,
    keep: 'needed',
    titleSources: rename(draft.titleSources),
    summaries: draft.summaries.map(renameSummary),
    items: [...draft.items.filter(isGiven), ...shown.map((item) => ({ ...item, sources: rename(item.sources) }))],
    messageHashes: { messages: stored.ids, hashes: stored.hashes },
  }
}
