import type { Message, SessionMetadata } from '../../domain/entry.ts'
import { MemoryError, shortenText } from '../../domain/error.ts'
import { formatKey, type Key, parseKey } from '../../domain/key.ts'
import { unpackPayload } from '../../domain/payload.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { getString } from '../../text/json.ts'
import { isLimitedToTenants } from '../auth/credential.ts'
import { HttpError } from '../http/httpError.ts'
import type { RequestContext } from '../http/requestContext.ts'
import type { MemoryRegistry } from '../memoryRegistry.ts'
import type { ParsedRequest } from '../protocols/protocol.ts'
import { findReceipt, readReplySequences } from '../receipts.ts'
import { readMessageAt } from './branches.ts'

/** The session of a conversation: its id is the session half of the key. */
export function conversationKey({ scope }: Key, id: string): Key {
  if (!/^conv_[\w-]{1,120}$/.test(id)) {
    throw new HttpError(
      400,
      'invalid_conversation',
      `${JSON.stringify(shortenText(id, 80))} is not a conversation id. Create a conversation with POST …/conversations.`,
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

/**
 * True when the client may name any response or item of the upstream. They belong to the operator's account, so a key
 * of some tenants may name only those of its own sessions.
 */
export const mayUseUpstreamIds = ({ credential, server }: RequestContext): boolean =>
  credential === undefined || server.sharesUpstreamAccount || !isLimitedToTenants(credential)

/** True when a request names a response, a conversation or items that were stored before. */
export const refersToUpstream = (request: ParsedRequest): boolean =>
  request.previousResponseId !== undefined || request.conversationId !== undefined || request.references.length > 0

export const foreignIds = (): HttpError =>
  new HttpError(
    403,
    'account_endpoint',
    'This key is limited to some tenants and can name stored responses and items only within a session. Put the session into the path or the header x-threadkeep-key.',
  )

/** Messages searched for the items that a request refers to. */
const maxMessagesSearched = 4_096

/** Throws unless the referenced items are part of a reply of the session. */
export async function checkReferences(memory: Memory, key: Key, references: readonly string[]): Promise<void> {
  if (references.length === 0) return
  const known = await readReplyItemIds(memory, key)
  const missing = references.find((id) => !known.has(id))
  if (missing === undefined) return
  throw new HttpError(
    404,
    'item_not_found',
    `There is no item ${JSON.stringify(shortenText(missing, 80))} in this session. Send the item itself.`,
    'input',
  )
}

/**
 * Ids that the upstream gave to the items of its replies. Only replies have receipts; the ids of other messages were
 * chosen by the client, which could name the items of other tenants.
 */
async function readReplyItemIds(memory: Memory, key: Key): Promise<ReadonlySet<string>> {
  const replies = await readReplySequences(internalsOf(memory).sessions, key)
  const messages = await memory.transcript(key, { limit: maxMessagesSearched, newest: true })
  const items = messages.flatMap(({ sequence, content, packedPayload }) => {
    if (packedPayload === undefined || !replies.has(sequence)) return []
    const payload = unpackPayload(packedPayload, content)
    return payload?.protocol === 'responses' ? payload.items : []
  })
  return new Set(items.map((item) => getString(item, 'id')).filter(Boolean))
}

/** Throws for a session that has moved to another key. */
export function checkNotTransferred(key: Key, metadata: SessionMetadata | undefined): void {
  if (metadata?.movedTo === undefined) return
  const to = `${key.scope}:${metadata.movedTo}`
  throw new MemoryError('moved', `Session ${formatKey(key)} was transferred to ${to}. Use that key.`, {
    to,
    param: 'key',
  })
}

/** The reply that a request continues from. */
export type PreviousReply = { readonly message: Message | undefined; readonly isStoredUpstream: boolean }

/** Finds the stored reply that `previous_response_id` names. */
export async function findPrevious(
  memory: Memory,
  key: Key,
  responseId: string | undefined,
): Promise<PreviousReply | undefined> {
  if (responseId === undefined) return undefined
  const receipt = await findReceipt(internalsOf(memory).sessions, key, { response: responseId })
  const isStoredUpstream = receipt?.isStoredUpstream === true
  const id = JSON.stringify(shortenText(responseId, 80))
  // A response that ran in the background has no reply here; only the upstream can continue it.
  if (receipt?.sequence == null && isStoredUpstream) return { message: undefined, isStoredUpstream }
  if (receipt?.sequence == null)
    throw responseNotFound(
      `There is no response ${id} in this session. Continue from one of its own, or send the conversation as input.`,
    )
  // An edit of the conversation may have cut the reply into a branch.
  const message = await readMessageAt(memory, key, receipt.sequence)
  if (message !== undefined || isStoredUpstream) return { message, isStoredUpstream }
  throw responseNotFound(
    `Response ${id} is no longer part of this session: the conversation continued from an earlier one.`,
  )
}

const responseNotFound = (message: string): HttpError =>
  new HttpError(404, 'previous_response_not_found', message, 'previous_response_id')
