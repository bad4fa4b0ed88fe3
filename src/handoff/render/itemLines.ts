import type { ConversationLine } from '../../selection/conversationLines.ts'
import { stripComments } from '../../text/comments.ts'
import { squeezeSpace } from '../../text/compress.ts'
import { fenceText, splitFencedLines } from '../../text/fences.ts'
import type { ContextItem } from '../item.ts'
import type { TextMessage } from '../textMessage.ts'

/**
 * Checks whether an item is listed under Notes. Code and items of several lines are shown in the conversation instead.
 */
export const isNote = ({ category, content }: ContextItem): boolean => category !== 'code' && !content.includes('\n')

/** Converts an item to a message that precedes the conversation. */
export function itemToMessage({ id, category, content }: ContextItem): TextMessage {
  const isFenced = splitFencedLines(content)[0]?.fence === 'open'
  return {
    message: { id, role: 'tool', name: `saved ${category}` },
    text: isFenced || category !== 'code' ? content : fenceText(content, ''),
  }
}

/** Finds the line indexes of each item, in the order of the items; empty for items that are not found. */
export function findItemLines(
  items: readonly ContextItem[],
  lines: readonly ConversationLine[],
  messages: readonly TextMessage[],
): readonly (readonly number[])[] {
  if (items.length === 0) return []
  const indexesByMessage = new Map<string, Map<string, number>>()
  for (const [index, line] of lines.entries()) {
    const { id } = (messages[line.message] as TextMessage).message
    const indexes = indexesByMessage.get(id) ?? new Map<string, number>()
    if (indexes.size === 0) indexesByMessage.set(id, indexes)
    indexes.set(line.text.trim(), index)
  }
  return items.map(({ id, content, sources }) => {
    // The newest source, or the message made from the item itself.
    const source = sources.findLast((messageId) => indexesByMessage.has(messageId)) ?? id
    const found = normalizeRows(content).flatMap((row) => indexesByMessage.get(source)?.get(row) ?? [])
    return [...new Set(found)].sort((left, right) => left - right)
  })
}

/** Returns the ids of items that a text shows: a note as a substring, other items by each of their lines. */
export function findShownItems(text: string, items: readonly ContextItem[]): ReadonlySet<string> {
  // Rows with and without comments both show an item.
  const rows = new Set([...text.split('\n').map((row) => row.trim()), ...normalizeRows(text)])
  const flatText = text.replace(/\s+/g, ' ')
  const isShown = (item: ContextItem): boolean => {
    if (isNote(item)) return flatText.includes(item.content.replace(/\s+/g, ' '))
    const itemRows = normalizeRows(item.content)
    return itemRows.length > 0 && itemRows.every((row) => rows.has(row))
  }
  return new Set(items.filter(isShown).map(({ id }) => id))
}

/**
 * Splits an item into rows without whitespace, comments and fences, and without rows next to a `...`, which may be cut.
 */
function normalizeRows(content: string): readonly string[] {
  const rows = stripComments(squeezeSpace(content))
    .split('\n')
    .map((row) => row.trim())
  const isCut = (index: number): boolean => [rows[index - 1], rows[index], rows[index + 1]].includes('...')
  return rows.filter((row, index) => row !== '' && !isCut(index) && !/^(?:`{3,}|~{3,})/.test(row))
}
