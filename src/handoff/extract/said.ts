import type { Message } from '../../domain/entry.ts'
import { clipMiddle } from '../../text/clip.ts'

/** So many characters of a conversation are looked at, the newest, and so many of one message: a new chat is told a few thousand tokens. */
const most = { all: 1_000_000, message: 200_000 }

/** A message as it is looked at. */
export type Saying = { readonly message: Pick<Message, 'id' | 'role' | 'name'>; readonly text: string }

/** What was said, the oldest first, with what was asked of tools; as much as can be looked at in a moment. */
export function sayingsOf(messages: readonly Message[]): readonly Saying[] {
  const sayings: Saying[] = []
  let left = most.all
  for (let at = messages.length - 1; at >= 0 && left > 0; at--) {
    const message = messages[at] as Message
    const room = Math.min(most.message, left) / 2
    const text = clipMiddle(textOf(message), room, room, '\n...\n')
    left -= text.length
    if (/\S/.test(text)) sayings.push({ message, text })
  }
  return sayings.reverse()
}

function textOf({ content, calls = [] }: Message): string {
  if (calls.length === 0) return content
  const called = calls.map((call) => `${call.name} ${call.arguments}`)
  return [content, ...called].filter((text) => text !== '').join('\n')
}
