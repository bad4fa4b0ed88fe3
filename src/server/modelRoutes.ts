import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { shortenText } from '../domain/error.ts'
import type { JsonLimits } from '../providers/jsonStructure.ts'
import { getArray, getString } from '../text/json.ts'
import { checkQuery } from './api/input.ts'
import { authenticate, resolveKey } from './auth/identity.ts'
import { expectsAnthropicErrors, handleProbe } from './forward.ts'
import { readJson } from './http/body.ts'
import { type ErrorResponse, HttpError, notFound } from './http/httpError.ts'
import type { Handler, Handlers, RequestContext } from './http/requestContext.ts'
import { pathOf, queryStringOf, readPathKey } from './http/router.ts'
import { principalFor } from './mcpEndpoint.ts'
import { chatProtocol } from './protocols/chat.ts'
import { messagesProtocol } from './protocols/messages.ts'
import type { Protocol } from './protocols/protocol.ts'
import { responsesProtocol } from './protocols/responses.ts'
import type { ServerContext } from './serverContext.ts'
import { storedResponseRoutes } from './storedResponses.ts'
import { handleTurn } from './turn/handleTurn.ts'
import { relayJson, relayUnchanged } from './turn/relay.ts'
import { readHeader } from './turn/turn.ts'
import type { UpstreamRequest } from './upstreams/backend.ts'

/** Routes of the model protocols and MCP. The session key is in the path or a header. */
export const modelRoutes: Handlers = {
  ...withAndWithoutKey('/chat/completions', turnHandler(chatProtocol)),
  ...withAndWithoutKey('/responses', turnHandler(responsesProtocol)),
  ...withAndWithoutKey('/messages', turnHandler(messagesProtocol)),
  ...withAndWithoutKey('/messages/count_tokens', relayHandler('count_tokens')),
  ...withAndWithoutKey('/embeddings', relayHandler('embeddings')),
  ...storedResponseRoutes,
  ...modelListRoutes(''),
  ...modelListRoutes('/{model}'),
  'GET /v1': handleProbe,
  'POST /mcp': handleMcp,
}

/** An error in the shape of the protocol that a request belongs to. */
export function formatError(request: IncomingMessage, error: ErrorResponse['error']): unknown {
  const path = pathOf(request)
  return path === '/mcp' ? jsonRpcError(error) : protocolOf(path, request.headers).formatError(error)
}

function protocolOf(path: string, headers: IncomingHttpHeaders): Protocol {
  if (expectsAnthropicErrors(path, headers)) return messagesProtocol
  return path.endsWith('/responses') ? responsesProtocol : chatProtocol
}

/** Clients with a key in their base URL may append `/v1` to it, as Anthropic's always do. */
function withAndWithoutKey(path: string, handler: Handler): Handlers {
  return { [`POST /v1${path}`]: handler, [`POST /v1/{key}${path}`]: handler, [`POST /v1/{key}/v1${path}`]: handler }
}

function modelListRoutes(path: string): Handlers {
  return {
    [`GET /v1/models${path}`]: handleModels,
    [`GET /v1/{key}/models${path}`]: handleModels,
    [`GET /v1/{key}/v1/models${path}`]: handleModels,
  }
}

function turnHandler(protocol: Protocol): Handler {
  return (context) => handleTurn(context, protocol)
}

/** Relays a request that memory takes no part in. */
function relayHandler(endpoint: 'embeddings' | 'count_tokens'): Handler {
  return async (context) => {
    const { server, request, client, credential } = context
    checkKey(context)
    const body = await readJson(request, server.maxBytes.body)
    const { headers } = request
    const call: UpstreamRequest = {
      endpoint,
      body,
      promptTokens: 0,
      headers,
      query: queryStringOf(request),
      withholdClientKey: credential !== undefined,
      signal: client.signal,
    }
    await relayUnchanged(await server.backend.send(call), client)
  }
}

/** Relays the upstream's list of models, or the one model that the path names. */
async function handleModels(context: RequestContext): Promise<void> {
  const { server, request, client, credential, params } = context
  checkKey(context)
  const { headers } = request
  const list = await server.backend.listModels({
    headers,
    // A single model is picked from the whole list.
    query: params.model === undefined ? queryStringOf(request) : '',
    withholdClientKey: credential !== undefined,
    signal: client.signal,
  })
  const { model } = params
  await relayJson(list, client, model === undefined ? undefined : (json) => pickModel(json, model))
}

function pickModel(list: unknown, id: string): unknown {
  const found = getArray(list, 'data').find((model) => getString(model, 'id') === id)
  if (found !== undefined) return found
  const message = `There is no model ${JSON.stringify(shortenText(id, 80))}. GET /v1/models lists the available ones.`
  throw new HttpError(404, 'model_not_found', message, 'model')
}

/** Throws 404 when the credential does not allow the key of the path or header. */
function checkKey({ params, request, credential }: RequestContext): void {
  resolveKey({ path: readPathKey(params), header: readHeader(request.headers, 'x-threadkeep-key'), credential })
}

/** Structure of a tool call, with room for a conversation of 10,000 messages. */
const mcpLimits: JsonLimits = { depth: 64, values: 50_000, fields: 50_000 }

async function handleMcp({ server, request, client, credential, query }: RequestContext): Promise<void> {
  checkQuery(query, [])
  if (server.mcp === undefined) throw notFound()
  const body = await readJson(request, server.maxBytes.body, { limits: mcpLimits })
  const endpoint = await server.mcp.endpoint()
  // A key may be revoked while a long response is running.
  const isStillAllowed = (): boolean => credential === undefined || isAuthenticated(server, request)
  await endpoint.handle(principalFor(credential, server.mcp.visitor), request, client.response, body, isStillAllowed)
}

function isAuthenticated({ credentials, clock }: ServerContext, { headers }: IncomingMessage): boolean {
  try {
    return authenticate(credentials, headers, clock()) !== undefined
  } catch {
    return false
  }
}

/** A JSON-RPC error without a request id, because the request was not read. */
function jsonRpcError({ code, message }: ErrorResponse['error']): unknown {
  const number = code === 'invalid_json' ? -32_700 : code === 'invalid_body' ? -32_600 : -32_000
  return { jsonrpc: '2.0', id: null, error: { code: number, message, data: { code } } }
}
