import { type Key, parseKey } from '../../domain/key.ts'
import { internalsOf } from '../../memory.ts'
import { HttpError } from '../http/httpError.ts'
import type { MemoryRegistry } from '../memoryRegistry.ts'

/** The session of a conversation: its id is the session half of the key. */
export function conversationKey({ scope }: Key, id: string): Key {
  if (!/^conv_[\w-]{1,120}$/.test(id)) {
    throw new HttpError(
      400,
      'invalid_conversation',
      `${JSON.stringify(id.slice(0, 80))} is not a conversation id. Create a conversation with POST …/conversations.`,
      'conversation',
    )
  }
  return parseKey(`${scope}:${id}`)
}

/** Throws unless the conversation was created: a turn never creates one, so that a deleted one does not come back. */
export async function checkConversationExists(memories: MemoryRegistry, key: Key): Promise<void> {
  const { memory } = await memories.resolve(key)
  const { revision } = await internalsOf(memory).sessions.readHead(key, 0)
  if (revision > 0) return
  throw new HttpError(
    404,
    'conversation_not_found',
    `There is no conversation ${key.id}. Create one with POST …/conversations.`,
    'conversation',
  )
}

export const newConversationId = (): string => `conv_${crypto.randomUUID().replaceAll('-', '')}`
