import type { Message } from '../domain/entry.ts'
import { shortenText } from '../domain/error.ts'
import { formatKey, type Key } from '../domain/key.ts'
import { unpackPayload } from '../domain/payload.ts'
import { internalsOf, type Memory } from '../memory.ts'
import { parseJson } from '../text/json.ts'
import { toItems } from './api/conversationItems.ts'
import { resolveKey } from './auth/identity.ts'
import { forwardAs, relayResponse } from './forward.ts'
import type { ClientConnection } from './http/client.ts'
import { HttpError } from './http/httpError.ts'
import { type Handlers, type RequestContext, sendJson } from './http/requestContext.ts'
import { readPathKey } from './http/router.ts'
import { responsesProtocol } from './protocols/responses.ts'
import { findReceipt, type Receipt, storeReceipt } from './receipts.ts'
import { findBranchWith, readMessageAt } from './turn/branches.ts'
import { readBody } from './turn/relay.ts'
import { storeReply } from './turn/storeMessages.ts'
import { readHeader } from './turn/turn.ts'
import type { UpstreamResponse } from './upstreams/backend.ts'

/**
 * Routes of single responses. Those that the upstream stores are forwarded, the others are served from the session.
 */
export const storedResponseRoutes: Handlers = {
  ...responseRoutes('GET', '', retrieveResponse),
  ...responseRoutes('DELETE', '', deleteResponse),
  ...responseRoutes('POST', '/cancel', cancelResponse),
  ...responseRoutes('GET', '/input_items', listInputItems),
}

/** A response of a session: its receipt, and its reply unless that was forgotten. */
type StoredResponse = {
  readonly memory: Memory
  readonly key: Key
  readonly receipt: Receipt
  readonly reply: Message | undefined
}

type StoredHandler = (context: RequestContext, response: StoredResponse & { readonly reply: Message }) => Promise<void>

function responseRoutes(method: string, path: string, handle: StoredHandler): Handlers {
  const handler = async (context: RequestContext): Promise<void> => {
    const found = await findResponse(context)
    const isHeldUpstream = found === undefined || found.receipt.isStoredUpstream === true
    if (isHeldUpstream) return forwardAs(context, { isOwn: found !== undefined, relay: relayOf(context, found) })
    if (found.reply === undefined) throw responseNotFound(context.params.response ?? '')
    return handle(context, { ...found, reply: found.reply })
  }
  return {
    [`${method} /v1/responses/{response}${path}`]: handler,
    [`${method} /v1/{key}/responses/{response}${path}`]: handler,
    [`${method} /v1/{key}/v1/responses/{response}${path}`]: handler,
  }
}

/** Finds a response by the receipt of its session; undefined without a session or without a receipt in it. */
async function findResponse({
  server,
  request,
  params,
  credential,
}: RequestContext): Promise<StoredResponse | undefined> {
  const header = readHeader(request.headers, 'x-threadkeep-key')
  const key = resolveKey({ path: readPathKey(params), header, credential, defaultScope: server.defaultScope })
  if (key === undefined) return undefined
  const { memory } = await server.memories.resolve(key)
  const receipt = await findReceipt(internalsOf(memory).sessions, key, { response: params.response ?? '' })
  if (receipt === undefined) return undefined
  return { memory, key, receipt, reply: await findReply(memory, key, receipt.sequence) }
}

async function findReply(memory: Memory, key: Key, sequence: number | null): Promise<Message | undefined> {
  if (sequence === null) return undefined
  const message = await readMessageAt(memory, key, sequence)
  if (message !== undefined) return message
  const branch = await findBranchWith(memory, key, sequence)
  return branch && readMessageAt(memory, branch, sequence)
}

/**
 * Relays what the upstream says of a response. The session stores the reply of one that ran in the background when the
 * client retrieves it, and forgets the reply of one that the upstream has deleted.
 */
function relayOf(context: RequestContext, found: StoredResponse | undefined): typeof relayResponse {
  if (found?.reply !== undefined && context.request.method === 'DELETE')
    return async (response, client) => {
      if (response.status < 300) await forgetReply(found)
      await relayResponse(response, client)
    }
  const question = found?.receipt.question
  const isRetrieval = context.request.method === 'GET' && !context.query.has('stream')
  if (found === undefined || question === undefined || found.reply !== undefined || !isRetrieval) return relayResponse
  return async (response: UpstreamResponse, client: ClientConnection) => {
    const body = await readBody(response)
    if (response.status < 300) await storeBackgroundReply(context, found, question, body.toString('utf8'))
    client.send(response.status, response.headers, body)
  }
}

async function storeBackgroundReply(
  { server }: RequestContext,
  { memory, key, receipt }: StoredResponse,
  question: number,
  text: string,
): Promise<void> {
  if (parseJson(text) === undefined) return
  const reply = responsesProtocol.parseReply(text, receipt.upstream)
  // A cancelled or failed response has no reply.
  if (reply.isFinished === false || reply.message.payload === undefined) return
  const { sessions } = internalsOf(memory)
  await server.sessionLocks.run(formatKey(key), async () => {
    // Another retrieval may have stored it meanwhile.
    const newest = await findReceipt(sessions, key, { response: receipt.response ?? '' })
    if (newest?.sequence !== null) return
    const { epoch } = await sessions.readHead(key, 0)
    const branch = (await readMessageAt(memory, key, question))?.branch
    const input = { reply: reply.message, question, epoch, ledger: undefined, branch, reserved: 1 }
    const stored = await storeReply(memory, key, input)
    if (stored === undefined) return
    const { question: _question, ...answered } = receipt
    await storeReceipt(sessions, stored.key, { ...answered, sequence: stored.message.sequence })
  })
}

async function retrieveResponse(
  { client, params }: RequestContext,
  { receipt, reply }: StoredResponse & { readonly reply: Message },
): Promise<void> {
  const { prompt, completion, cached } = receipt.tokens
  sendJson(client.response, 200, {
    id: params.response,
    object: 'response',
    created_at: Math.floor(reply.at / 1_000),
    status: 'completed',
    model: receipt.model,
    output: itemsOf(reply),
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    previous_response_id: null,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    temperature: null,
    top_p: null,
    usage:
      prompt === null || completion === null
        ? null
        : {
            input_tokens: prompt,
            input_tokens_details: { cached_tokens: cached ?? 0 },
            output_tokens: completion,
            output_tokens_details: { reasoning_tokens: 0 },
            total_tokens: prompt + completion,
          },
  })
}

/** The items of a message in the form in which they were sent, if they came by this protocol. */
function itemsOf(message: Message): readonly unknown[] {
  const { packedPayload, content } = message
  const payload = packedPayload === undefined ? undefined : unpackPayload(packedPayload, content)
  return payload?.protocol === 'responses' ? payload.items : toItems(message)
}

async function deleteResponse(
  { client, params }: RequestContext,
  response: StoredResponse & { readonly reply: Message },
): Promise<void> {
  await forgetReply(response)
  sendJson(client.response, 200, { id: params.response, object: 'response', deleted: true })
}

async function forgetReply({ memory, key, reply }: StoredResponse): Promise<void> {
  if (reply !== undefined) await memory.forget({ key: formatKey(key), messageId: reply.id })
}

async function cancelResponse({ params }: RequestContext): Promise<void> {
  throw new HttpError(
    400,
    'response_not_cancellable',
    `Response ${params.response} is complete. Only a response that runs in the background can be cancelled.`,
  )
}

/** Lists the input of a response: the messages after the reply before it. */
async function listInputItems(
  { client }: RequestContext,
  { memory, key, reply }: StoredResponse & { readonly reply: Message },
): Promise<void> {
  const range = { before: reply.sequence, limit: maxInputMessages, newest: true }
  const earlier = await internalsOf(memory).sessions.readMessages(key, range)
  const conversation = earlier.filter(({ branch }) => branch === reply.branch)
  const previous = conversation.findLastIndex(({ role }) => role === 'assistant')
  const data = conversation.slice(previous + 1).flatMap(toItems)
  const ids = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
  sendJson(client.response, 200, { object: 'list', data, has_more: false, ...ids })
}

const maxInputMessages = 256

const responseNotFound = (id: string): HttpError =>
  new HttpError(
    404,
    'response_not_found',
    `There is no response ${JSON.stringify(shortenText(id, 80))} in this session.`,
  )
