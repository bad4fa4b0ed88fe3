import { type Key, parseKey } from '../../domain/key.ts'
import type { Memories } from '../memoryRegistry.ts'
import { Refusal } from '../http/problem.ts'

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

/** A conversation is begun by its own request, never by a turn: one that was deleted does not come back. */
export async function checkBegun(memories: Memories, key: Key): Promise<void> {
  const { memory } = await memories.of(key)
  const { revision } = await memory.parts.sessions.head(key, 0)
  if (revision > 0) return
  throw new Refusal(
    404,
    'conversation_not_found',
    `There is no conversation ${key.id}; POST …/conversations makes one.`,
    'conversation',
  )
}

/** An id nobody has yet. */
export const newConversation = (): string => `conv_${crypto.randomUUID().replaceAll('-', '')}`
