import type { ConversationLine } from '../../selection/conversationLines.ts'
import type { TextMessage } from '../textMessage.ts'

/** Part of a message that matters to the question of a new chat. */
export type RecalledPassage = { readonly messageId: string; readonly text: string }

const removeSpace = (text: string): string => text.replace(/\s+/g, '')

/**
 * Finds the line indexes of each passage, in the order of the passages. Lines are compared without white space, because
 * the texts may have been compressed.
 */
export function findRecalledLines(
  recalled: readonly RecalledPassage[],
  lines: readonly ConversationLine[],
  messages: readonly TextMessage[],
): readonly (readonly number[])[] {
  if (recalled.length === 0) return []
  const indexesByMessage = new Map<string, number[]>()
  for (const [index, { message }] of lines.entries()) {
    const { id } = (messages[message] as TextMessage).message
    const indexes = indexesByMessage.get(id)
    if (indexes === undefined) indexesByMessage.set(id, [index])
    else indexes.push(index)
  }
  return recalled.flatMap(({ messageId, text }) => {
    const passage = removeSpace(text)
    const found = (indexesByMessage.get(messageId) ?? []).filter((index) =>
      passage.includes(removeSpace((lines[index] as ConversationLine).text)),
    )
    return found.length === 0 ? [] : [found]
  })
}
