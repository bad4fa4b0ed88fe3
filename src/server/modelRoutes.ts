import type { IncomingMessage } from 'node:http'
import { listAt, textAt } from '../text/json.ts'
import { admit, keyFor } from './auth/identity.ts'
import { readJson } from './http/body.ts'
import { notFound, type Problem, Refusal } from './http/httpError.ts'
import type { Exchange, Handler, Handlers } from './http/requestContext.ts'
import { keyIn } from './http/router.ts'
import { visitorFor } from './mcpEndpoint.ts'
import { chat } from './protocols/chat.ts'
import { messages } from './protocols/messages.ts'
import type { Dialect } from './protocols/protocol.ts'
import { responses } from './protocols/responses.ts'
import type { House } from './serverContext.ts'
import { handleTurn } from './turn/handleTurn.ts'
import { relayJson, relayUnchanged } from './turn/relay.ts'
import { readHeader } from './turn/turnHeaders.ts'

/** Routes of the model protocols and MCP. The session key is in the path or a header. */
export const modelRoutes: Handlers = {
  ...withAndWithoutKey('/chat/completions', turnHandler(chat)),
  ...withAndWithoutKey('/responses', turnHandler(responses)),
  ...withAndWithoutKey('/messages', turnHandler(messages)),
  // Anthropic's clients append /v1 to any base URL.
  'POST /v1/{key}/v1/messages': turnHandler(messages),
  ...withAndWithoutKey('/messages/count_tokens', relayHandler('count_tokens')),
  'POST /v1/{key}/v1/messages/count_tokens': relayHandler('count_tokens'),
  ...withAndWithoutKey('/embeddings', relayHandler('embeddings')),
  ...modelListRoutes(''),
  ...modelListRoutes('/{model}'),
  'POST /mcp': handleMcp,
}

/** An error in the shape of the protocol that a path belongs to. */
export const problemAt = (path: string, error: Problem['error']): unknown =>
  path === '/mcp' ? jsonRpcError(error) : protocolOf(path).problem(error)

function protocolOf(path: string): Dialect {
  if (/\/messages(?:\/count_tokens)?$/.test(path) && path.startsWith('/v1/')) return messages
  return path.endsWith('/responses') ? responses : chat
}

function withAndWithoutKey(path: string, handler: Handler): Handlers {
  return { [`POST /v1${path}`]: handler, [`POST /v1/{key}${path}`]: handler }
}

function modelListRoutes(path: string): Handlers {
  return {
    [`GET /v1/models${path}`]: handleModels,
    [`GET /v1/{key}/models${path}`]: handleModels,
    [`GET /v1/{key}/v1/models${path}`]: handleModels,
  }
}

function turnHandler(dialect: Dialect): Handler {
  return (context) => handleTurn(context, dialect)
}

/** Relays a request that memory takes no part in. */
function relayHandler(dialect: 'embeddings' | 'count_tokens'): Handler {
  return async (context) => {
    const { house, request, client, credential } = context
    checkKey(context)
    const body = await readJson(request, house.largest.body)
    const { headers } = request
    const call = { dialect, body, spent: 0, headers, isGuarded: credential !== undefined, signal: client.signal }
    await relayUnchanged(await house.backend.ask(call), client)
  }
}

/** Relays the upstream's list of models, or the one model that the path names. */
async function handleModels(context: Exchange): Promise<void> {
  const { house, request, client, credential, params } = context
  checkKey(context)
  const { headers } = request
  const list = await house.backend.models({ headers, isGuarded: credential !== undefined, signal: client.signal })
  const { model } = params
  await relayJson(list, client, model === undefined ? undefined : (json) => pickModel(json, model))
}

function pickModel(list: unknown, id: string): unknown {
  const found = listAt(list, 'data').find((model) => textAt(model, 'id') === id)
  if (found !== undefined) return found
  const message = `There is no model ${JSON.stringify(id.slice(0, 80))}. GET /v1/models lists the available ones.`
  throw new Refusal(404, 'model_not_found', message, 'model')
}

/** Throws 404 when the credential does not allow the key of the path or header. */
function checkKey({ params, request, credential }: Exchange): void {
  keyFor({ path: keyIn(params), header: readHeader(request.headers, 'x-threadkeep-key'), credential })
}

async function handleMcp({ house, request, client, credential }: Exchange): Promise<void> {
  if (house.mcp === undefined) throw notFound()
  const body = await readJson(request, house.largest.body)
  const endpoint = await house.mcp.endpoint()
  // A key may be revoked while a long response is running.
  const isStillAllowed = (): boolean => credential === undefined || isAuthenticated(house, request)
  await endpoint.answer(visitorFor(credential, house.mcp.visitor), request, client.response, body, isStillAllowed)
}

function isAuthenticated({ credentials, clock }: House, { headers }: IncomingMessage): boolean {
  try {
    return admit(credentials, headers, clock()) !== undefined
  } catch {
    return false
  }
}

/** A JSON-RPC error without a request id, because the request was not read. */
function jsonRpcError({ code, message }: Problem['error']): unknown {
  const number = code === 'invalid_json' ? -32_700 : code === 'invalid_body' ? -32_600 : -32_000
  return { jsonrpc: '2.0', id: null, error: { code: number, message, data: { code } } }
}
