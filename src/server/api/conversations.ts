import type { MessageInput } from '../../domain/chat.ts'
import type { Message } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import { internalsOf, type Memory } from '../../memory.ts'
import { resolveKey } from '../auth/identity.ts'
import { HttpError, notFound } from '../http/httpError.ts'
import { type Handler, type Handlers, type RequestContext, readNumber, sendJson } from '../http/requestContext.ts'
import { readPathKey } from '../http/router.ts'
import type { FilePart } from '../protocols/protocol.ts'
import { isReference, itemsToMessages, validateItems } from '../protocols/responsesItems.ts'
import { conversationKey, newConversationId } from '../turn/conversation.ts'
import { beginSession, endSession, type SessionAccess, withSession } from './access.ts'
import { conversationUpdate, newConversation, newItems } from './bodies.ts'
import { type ConversationItem, isAfter, parseItemCursor, parseItemId, toItems } from './conversationItems.ts'
import { checkSingle, invalidParameter, readBody } from './input.ts'

/** OpenAI's conversations; each is a session. */
export const conversationRoutes: Handlers = {
  ...withAndWithoutKey('POST', '', createConversation),
  ...withAndWithoutKey('GET', '/{conversation}', conversationHandler(getConversation)),
  ...withAndWithoutKey('POST', '/{conversation}', conversationHandler(updateConversation)),
  ...withAndWithoutKey('DELETE', '/{conversation}', conversationHandler(deleteConversation)),
  ...withAndWithoutKey('GET', '/{conversation}/items', conversationHandler(listItems)),
  ...withAndWithoutKey('POST', '/{conversation}/items', conversationHandler(addItems)),
  ...withAndWithoutKey('GET', '/{conversation}/items/{item}', conversationHandler(getItem)),
  ...withAndWithoutKey('DELETE', '/{conversation}/items/{item}', conversationHandler(deleteItem)),
}

function withAndWithoutKey(method: string, path: string, handler: Handler): Handlers {
  return { [`${method} /v1/conversations${path}`]: handler, [`${method} /v1/{key}/conversations${path}`]: handler }
}

function conversationHandler(handle: (context: RequestContext, session: SessionAccess) => Promise<void>): Handler {
  return async (context) => {
    const key = conversationKey(resolveOwner(context), context.params.conversation ?? '')
    await withSession(context.server, key, (session) => handle(context, session))
  }
}

/** The key that owns the conversation, from the path or a header. */
function resolveOwner({ params, request, credential, server }: RequestContext): Key {
  const header = request.headers['x-threadkeep-key']
  const key = resolveKey({
    path: readPathKey(params),
    header: typeof header === 'string' ? header : undefined,
    credential,
    defaultScope: server.defaultScope,
  })
  if (key !== undefined) return key
  const message =
    'The key of the conversation is missing. Use /v1/{key}/conversations, or send the header x-threadkeep-key.'
  throw new HttpError(400, 'missing_key', message, 'x-threadkeep-key')
}

async function createConversation(context: RequestContext): Promise<void> {
  const { server, client } = context
  const key = conversationKey(resolveOwner(context), newConversationId())
  const { metadata, items } = await readBody(context, newConversation)
  const messages = parseItems(server.memories.sessions, items ?? [])
  await beginSession(server, key, { metadata: metadata ?? {} })
  await withSession(server, key, async (session) => {
    await session.memory.append(key, messages)
    sendJson(client.response, 200, conversationView(session))
  })
}

async function getConversation({ client }: RequestContext, session: SessionAccess): Promise<void> {
  sendJson(client.response, 200, conversationView(session))
}

async function updateConversation(context: RequestContext, session: SessionAccess): Promise<void> {
  const body = await readBody(context, conversationUpdate)
  const metadata = await session.memory.setMetadata(session.key, { metadata: body.metadata ?? {} })
  sendJson(context.client.response, 200, conversationView({ ...session, metadata }))
}

async function deleteConversation({ server, client }: RequestContext, session: SessionAccess): Promise<void> {
  await endSession(server, session)
  sendJson(client.response, 200, { id: session.key.id, object: 'conversation.deleted', deleted: true })
}

const conversationView = ({ key, head, metadata }: SessionAccess) => ({
  id: key.id,
  object: 'conversation',
  created_at: Math.floor(head.startedAt / 1_000),
  metadata: metadata?.metadata ?? {},
})

/** Lists items, newest first by default. */
async function listItems({ client, query }: RequestContext, { key, memory }: SessionAccess): Promise<void> {
  checkSingle(query, ['limit', 'order', 'after'])
  const [limit, order, after] = [readNumber(query, 'limit', 20, 100), query.get('order') ?? 'desc', query.get('after')]
  if (order !== 'asc' && order !== 'desc') throw invalidParameter('order', order, 'asc or desc')
  const cursor = after === null ? undefined : parseItemCursor(after)
  // The message of the cursor is read again, because it may have items on both sides of the cursor.
  const range =
    order === 'asc'
      ? { after: (cursor?.sequence ?? 1) - 1 }
      : { newest: true, ...(cursor === undefined ? {} : { before: cursor.sequence + 1 }) }
  const found = (await internalsOf(memory).sessions.readMessages(key, { ...range, limit: limit + 2 })).flatMap(toItems)
  const ordered = order === 'asc' ? found : found.toReversed()
  const items =
    cursor === undefined
      ? ordered
      : ordered.filter((item) => item.id !== after && isAfter(item, cursor) === (order === 'asc'))
  sendJson(client.response, 200, itemList(items.slice(0, limit), items.length > limit))
}

async function addItems(context: RequestContext, { key, memory }: SessionAccess): Promise<void> {
  const added = await memory.append(key, parseItems(memory, (await readBody(context, newItems)).items))
  sendJson(context.client.response, 200, itemList(added.flatMap(toItems), false))
}

async function getItem({ client, params }: RequestContext, session: SessionAccess): Promise<void> {
  sendJson(client.response, 200, (await findItem(session, params.item ?? '')).item)
}

/** Deletes the item's whole message: the text and calls of one reply are one message. */
async function deleteItem({ client, params }: RequestContext, session: SessionAccess): Promise<void> {
  const { message } = await findItem(session, params.item ?? '')
  await session.memory.forget({ key: formatKey(session.key), messageId: message.id })
  sendJson(client.response, 200, conversationView(session))
}

/** Converts items to messages, with placeholders for files unless the profile refuses them. */
function parseItems({ profile }: Memory, items: readonly unknown[]): readonly MessageInput[] {
  const reference = items.findIndex(isReference)
  if (reference >= 0) {
    const message = `items[${reference}] refers to an item by its id. Send the item itself.`
    throw new HttpError(400, 'item_not_found', message, `items[${reference}]`)
  }
  const files: FilePart[] = []
  const messages = itemsToMessages(validateItems(items, 'items'), files).map(({ message }) => message)
  if (files.length > 0 && profile.uploads === 'refuse')
    throw new HttpError(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'items')
  return messages
}

const itemList = (data: readonly ConversationItem[], hasMore: boolean) => ({
  object: 'list',
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})

/** Finds an item and its message; throws 404 when there is none. */
async function findItem(
  { key, memory }: SessionAccess,
  id: string,
): Promise<{ readonly item: ConversationItem; readonly message: Message }> {
  const position = parseItemId(id)
  const [message] =
    position === undefined || position.sequence === 0
      ? []
      : await memory.transcript(key, { after: position.sequence - 1, limit: 1 })
  const item = message && toItems(message).find((candidate) => candidate.id === id)
  if (message === undefined || item === undefined) throw notFound()
  return { item, message }
}
