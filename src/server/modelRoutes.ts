import { listAt, textAt } from '../providers/json.ts'
import { keyFor } from './auth/identity.ts'
import { readJson } from './http/body.ts'
import { type Problem, Refusal } from './http/httpError.ts'
import type { Exchange, Handler, Handlers } from './http/requestContext.ts'
import { keyIn } from './http/router.ts'
import { mcpProblem, speakMcp } from './mcp.ts'
import { chat } from './protocols/chat.ts'
import type { Dialect } from './protocols/dialect.ts'
import { messages } from './protocols/messages.ts'
import { responses } from './protocols/responses.ts'
import { handleTurn } from './turn/handleTurn.ts'
import { relayJson, relayUnchanged } from './turn/relay.ts'

/** Which protocol an address speaks: errors take its shape too. */
function dialectAt(path: string): Dialect {
  if (/\/messages(?:\/count_tokens)?$/.test(path) && path.startsWith('/v1/')) return messages
  return path.endsWith('/responses') ? responses : chat
}

/** An error in the shape that the protocol of an address gives it. */
export const problemAt = (path: string, error: Problem['error']): unknown =>
  path === '/mcp' ? mcpProblem(error) : dialectAt(path).problem(error)

/** The protocols of others: requests for a model, each with its key in the address or in a header, and MCP. */
export const talking: Handlers = {
  ...both('/chat/completions', turnIn(chat)),
  ...both('/responses', turnIn(responses)),
  ...both('/messages', turnIn(messages)),
  // Anthropic's clients write /v1 behind any base address.
  'POST /v1/{key}/v1/messages': turnIn(messages),
  ...both('/messages/count_tokens', passed('count_tokens')),
  'POST /v1/{key}/v1/messages/count_tokens': passed('count_tokens'),
  ...both('/embeddings', passed('embeddings')),
  ...ofModels('', models),
  ...ofModels('/{model}', models),
  'POST /mcp': speakMcp,
}

function both(path: string, handler: Handler): Handlers {
  return { [`POST /v1${path}`]: handler, [`POST /v1/{key}${path}`]: handler }
}

function ofModels(path: string, handler: Handler): Handlers {
  return {
    [`GET /v1/models${path}`]: handler,
    [`GET /v1/{key}/models${path}`]: handler,
    [`GET /v1/{key}/v1/models${path}`]: handler,
  }
}

function turnIn(dialect: Dialect): Handler {
  return (context) => handleTurn(context, dialect)
}

/** What memory takes no part in goes to the model server and back as it is. */
function passed(dialect: 'embeddings' | 'count_tokens'): Handler {
  return async (exchange) => {
    const { house, request, client, credential } = exchange
    keyFor({ path: keyIn(exchange.params), header: headerOf(exchange), credential })
    const body = await readJson(request, house.largest.body)
    const call = {
      dialect,
      body,
      spent: 0,
      headers: request.headers,
      isGuarded: credential !== undefined,
      signal: client.signal,
    }
    await relayUnchanged(await house.backend.ask(call), client)
  }
}

/** The models of the model server, or the one of them that the address names. */
async function models(exchange: Exchange): Promise<void> {
  const { house, request, client, credential, params } = exchange
  keyFor({ path: keyIn(params), header: headerOf(exchange), credential })
  const list = await house.backend.models({
    headers: request.headers,
    isGuarded: credential !== undefined,
    signal: client.signal,
  })
  const { model } = params
  await relayJson(list, client, model === undefined ? undefined : (json) => modelIn(json, model))
}

function modelIn(list: unknown, id: string): unknown {
  const found = listAt(list, 'data').find((model) => textAt(model, 'id') === id)
  if (found !== undefined) return found
  throw new Refusal(
    404,
    'model_not_found',
    `There is no model ${JSON.stringify(id.slice(0, 80))} here. GET /v1/models lists those there are.`,
    'model',
  )
}

function headerOf({ request }: Exchange): string | undefined {
  const value = request.headers['x-threadkeep-key']
  return typeof value === 'string' ? value : undefined
}
