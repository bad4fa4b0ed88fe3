import { formatMessageId, type Message } from '../../domain/entry.ts'
import { checkMessageIds, findMessageIndex, type Replacement, type SessionChange } from '../../domain/session.ts'
import {
  addExternalId,
  createMessage,
  findMessage,
  isVisibleUserMessage,
  messageAt,
  removeExternalId,
  type Session,
  type SessionContent,
} from './session.ts'
import type { MessageEdits } from './sessionTable.ts'

/** External ids and replacements of messages in RAM. */
export const messageEdits: MessageEdits = { check: checkEdits, replace: replaceMessages, find: findMessages }

function checkEdits(change: SessionChange, content: SessionContent | undefined): void {
  checkMessageIds(change, {
    hasMessage: (id) => content !== undefined && findMessage(content, id) !== undefined,
    findExternalId: (externalId) => {
      const sequence = content?.externalIds?.get(externalId)
      return sequence === undefined ? undefined : formatMessageId(sequence)
    },
  })
}

function findMessages(content: SessionContent, externalIds: readonly string[]): readonly Message[] {
  const sequences = new Set(externalIds.flatMap((id) => content.externalIds?.get(id) ?? []))
  return [...sequences].sort((a, b) => a - b).flatMap((sequence) => messageAt(content, sequence) ?? [])
}

/** Replaces messages, which must exist, and returns the old and the new ones. */
function replaceMessages(
  session: Session,
  content: SessionContent,
  replace: readonly Replacement[],
): { readonly old: readonly Message[]; readonly added: readonly Message[] } {
  if (replace.length === 0) return { old: [], added: [] }
  const old = replace.map(({ id }) => findMessage(content, id) as Message)
  for (const message of old) removeExternalId(content, message)
  const added = replace.map(({ message: input }, at) => {
    const { sequence, offset, weight } = old[at] as Message
    const message = createMessage(input, sequence, offset)
    content.messages[findMessageIndex(content.messages, sequence)] = message
    addExternalId(content, message)
    // Positions of later messages never move back.
    session.totalWeight += Math.max(0, input.weight - weight)
    return message
  })
  session.removals++
  content.lastUserMessage = content.messages.findLast(isVisibleUserMessage)
  return { old, added }
}
