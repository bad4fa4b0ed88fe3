import { type Key, parseKey } from '../domain/key.ts'
import { Refusal } from './problem.ts'

/** The session of a conversation: its id is the session half, in the scope that the address or the key names. */
export function conversationKey({ scope }: Key, id: string): Key {
  if (!/^conv_[\w-]{1,120}$/.test(id)) {
    throw new Refusal(
      400,
      'invalid_conversation',
      `${JSON.stringify(id.slice(0, 80))} is no id of a conversation; POST …/conversations makes one.`,
      'conversation',
    )
  }
  return parseKey(`${scope}:${id}`)
}

/** An id nobody has yet. */
export const newConversation = (): string => `conv_${crypto.randomUUID().replaceAll('-', '')}`
