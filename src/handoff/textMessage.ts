import type { Message } from '../domain/entry.ts'
import { omissionMark } from '../selection/formatLines.ts'
import { clipMiddle } from '../text/clip.ts'

/** Limits of the analysed text: a restored text has a few thousand tokens, so older text cannot matter. */
const maxConversationChars = 1_000_000
const maxMessageChars = 200_000

/** Message reduced to its author and its text, including the arguments of tool calls. */
export type TextMessage = { readonly message: Pick<Message, 'id' | 'role' | 'name'>; readonly text: string }

/**
 * Converts messages to text, oldest first, without those of which a save kept nothing. The newest messages win if the
 * conversation exceeds the limits.
 */
export function toTextMessages(messages: readonly Message[]): readonly TextMessage[] {
  const found: TextMessage[] = []
  let remainingChars = maxConversationChars
  for (let index = messages.length - 1; index >= 0 && remainingChars > 0; index--) {
    const message = messages[index] as Message
    const halfChars = Math.min(maxMessageChars, remainingChars) / 2
    const text = clipMiddle(textOf(message), halfChars, halfChars, '\n...\n')
    remainingChars -= text.length
    if (/\S/.test(text) && text !== omissionMark) found.push({ message, text })
  }
  return found.reverse()
}

/** Returns the same messages with their texts replaced. */
export const withTexts = (messages: readonly TextMessage[], texts: readonly string[]): readonly TextMessage[] =>
  messages.map(({ message }, index) => ({ message, text: texts[index] ?? '' }))

/** Returns the text of a message, including the arguments of its tool calls. */
export function textOf({ content, toolCalls = [] }: Message): string {
  if (toolCalls.length === 0) return content
  const callTexts = toolCalls.map((call) => `${call.name} ${call.arguments}`)
  return [content, ...callTexts].filter((text) => text !== '').join('\n')
}
