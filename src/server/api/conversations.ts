import { z } from 'zod'
import type { Incoming } from '../../domain/chat.ts'
import type { Message } from '../../domain/entry.ts'
import { formatKey, type Key } from '../../domain/key.ts'
import { internalsOf } from '../../memory.ts'
import { keyFor } from '../auth/identity.ts'
import { notFound, Refusal } from '../http/httpError.ts'
import { type Exchange, type Handler, type Handlers, numberIn, send } from '../http/requestContext.ts'
import { keyIn } from '../http/router.ts'
import type { FilePart } from '../protocols/protocol.ts'
import { checkItems, isReference, spokenIn } from '../protocols/responsesItems.ts'
import { conversationKey, newConversationId } from '../turn/conversation.ts'
import { bodyIn } from './fields.ts'
import { type ConversationItem, cursorOf, isBehind, itemsOf, placeOf } from './items.ts'
import { bad } from './query.ts'
import { beginSession, endSession, type Session, withSession } from './session.ts'

const metadata = z
  .record(z.string(), z.string('must be text').max(512, 'has more than 512 characters'), 'must be an object')
  .refine((given) => Object.keys(given).every((name) => name.length <= 64), 'has a name of more than 64 characters')
  .refine((given) => Object.keys(given).length <= 16, 'has more than 16 entries')
const items = z.array(z.unknown(), 'must be a list of items')
/** What these protocols grow later is no mistake. */
const beginning = z.looseObject({ metadata: metadata.nullish(), items: items.nullish() })
const update = z.looseObject({ metadata: metadata.nullable() })
const addition = z.looseObject({ items })

/** OpenAI's conversations, which are sessions under another name. */
export const conversations: Handlers = {
  ...both('POST', '', create),
  ...both('GET', '/{conversation}', ofConversation(retrieve)),
  ...both('POST', '/{conversation}', ofConversation(change)),
  ...both('DELETE', '/{conversation}', ofConversation(remove)),
  ...both('GET', '/{conversation}/items', ofConversation(listItems)),
  ...both('POST', '/{conversation}/items', ofConversation(addItems)),
  ...both('GET', '/{conversation}/items/{item}', ofConversation(retrieveItem)),
  ...both('DELETE', '/{conversation}/items/{item}', ofConversation(removeItem)),
}

function both(method: string, path: string, handler: Handler): Handlers {
  return { [`${method} /v1/conversations${path}`]: handler, [`${method} /v1/{key}/conversations${path}`]: handler }
}

function ofConversation(answer: (exchange: Exchange, session: Session) => Promise<void>): Handler {
  return async (exchange) => {
    const key = conversationKey(tenantOf(exchange), exchange.params.conversation ?? '')
    await withSession(exchange.house, key, (session) => answer(exchange, session))
  }
}

/** Whose conversations are meant: the address tells, or a header. */
function tenantOf({ params, request, credential, house }: Exchange): Key {
  const header = request.headers['x-threadkeep-key']
  const key = keyFor({
    path: keyIn(params),
    header: typeof header === 'string' ? header : undefined,
    credential,
    defaultScope: house.defaultScope,
  })
  if (key !== undefined) return key
  throw new Refusal(
    400,
    'missing_key',
    'Whose conversation is this? Ask /v1/{key}/conversations, or send the header x-threadkeep-key.',
    'x-threadkeep-key',
  )
}

async function create(exchange: Exchange): Promise<void> {
  const { house, client } = exchange
  const key = conversationKey(tenantOf(exchange), newConversationId())
  const { metadata: given, items: said } = await bodyIn(exchange, beginning)
  const messages = messagesIn(said ?? [])
  await beginSession(house, key, { metadata: given ?? {} })
  await withSession(house, key, async (session) => {
    await session.memory.append(key, messages)
    send(client.response, 200, shown(session))
  })
}

async function retrieve({ client }: Exchange, session: Session): Promise<void> {
  send(client.response, 200, shown(session))
}

async function change(exchange: Exchange, session: Session): Promise<void> {
  const about = await session.memory.describe(session.key, {
    metadata: (await bodyIn(exchange, update)).metadata ?? {},
  })
  send(exchange.client.response, 200, shown({ ...session, about }))
}

async function remove({ house, client }: Exchange, session: Session): Promise<void> {
  await endSession(house, session)
  send(client.response, 200, { id: session.key.id, object: 'conversation.deleted', deleted: true })
}

const shown = ({ key, head, about }: Session) => ({
  id: key.id,
  object: 'conversation',
  created_at: Math.floor(head.startedAt / 1_000),
  metadata: about?.metadata ?? {},
})

/** The newest items first, unless asked otherwise. */
async function listItems({ client, query }: Exchange, { key, memory }: Session): Promise<void> {
  const [limit, order, after] = [numberIn(query, 'limit', 20, 100), query.get('order') ?? 'desc', query.get('after')]
  if (order !== 'asc' && order !== 'desc') throw bad('order', order, 'asc or desc')
  const cursor = after === null ? undefined : cursorOf(after)
  // Each message is one item or more; that of the cursor may have some on either side of it.
  const range =
    order === 'asc'
      ? { after: (cursor?.sequence ?? 1) - 1 }
      : { newest: true, ...(cursor === undefined ? {} : { before: cursor.sequence + 1 }) }
  const found = (await internalsOf(memory).sessions.page(key, { ...range, limit: limit + 2 })).flatMap(itemsOf)
  const ordered = order === 'asc' ? found : found.toReversed()
  const wanted =
    cursor === undefined
      ? ordered
      : ordered.filter((item) => item.id !== after && isBehind(item, cursor) === (order === 'asc'))
  send(client.response, 200, listOf(wanted.slice(0, limit), wanted.length > limit))
}

async function addItems(exchange: Exchange, { key, memory }: Session): Promise<void> {
  const added = await memory.append(key, messagesIn((await bodyIn(exchange, addition)).items))
  send(exchange.client.response, 200, listOf(added.flatMap(itemsOf), false))
}

async function retrieveItem({ client, params }: Exchange, session: Session): Promise<void> {
  send(client.response, 200, (await itemAt(session, params.item ?? '')).item)
}

/** What was said and called in one reply is one message: it goes as a whole. */
async function removeItem({ client, params }: Exchange, session: Session): Promise<void> {
  const { message } = await itemAt(session, params.item ?? '')
  await session.memory.forget({ key: formatKey(session.key), messageId: message.id })
  send(client.response, 200, shown(session))
}

/** Items as memory takes them. */
function messagesIn(given: readonly unknown[]): readonly Incoming[] {
  const reference = given.findIndex(isReference)
  if (reference >= 0)
    throw new Refusal(
      400,
      'item_not_found',
      `items[${reference}] refers to an item by its id. Send the item itself.`,
      `items[${reference}]`,
    )
  const files: FilePart[] = []
  const messages = spokenIn(checkItems(given, 'items'), files).map(({ message }) => message)
  if (files.length > 0)
    throw new Refusal(400, 'files_not_allowed', 'File uploads not allowed for ephemeral sessions', 'items')
  return messages
}

const listOf = (data: readonly ConversationItem[], hasMore: boolean) => ({
  object: 'list',
  data,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
  has_more: hasMore,
})

/** An item, and the message it is part of. */
async function itemAt(
  { key, memory }: Session,
  id: string,
): Promise<{ readonly item: ConversationItem; readonly message: Message }> {
  const place = placeOf(id)
  const [message] = place === undefined ? [] : await memory.transcript(key, { after: place.sequence - 1, limit: 1 })
  const item = message && itemsOf(message).find((one) => one.id === id)
  if (message === undefined || item === undefined) throw notFound()
  return { item, message }
}
