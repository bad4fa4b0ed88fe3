import type { IncomingHttpHeaders } from 'node:http'
import { Agent } from 'undici'
import type { Millis } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { endpoint, shownAddress } from '../models/address.ts'
import { brokenOff, type Check, notAReply, refused, unreachable } from '../models/failure.ts'
import type { Answer, Backend } from './backend.ts'

/** How long a model server may take: to begin its answer, and between two pieces of it. */
export type Patience = { readonly first: Millis; readonly idle: Millis }

export type UpstreamOptions = { readonly base: string; readonly apiKey?: string | undefined; readonly patience: Patience }

/** What is passed on of a client's headers; others may concern this server only or give something away. */
const forwarded = ['accept', 'api-key', 'authorization', 'openai-beta', 'openai-organization', 'openai-project', 'user-agent', 'x-client-request-id']
/** What is passed back of the upstream's. */
const returned = /^(?:content-type|retry-after|retry-after-ms|x-should-retry|openai-[a-z-]{1,64}|x-ratelimit-[a-z-]{1,64})$/
const check: Check = { address: '--upstream or OPENAI_BASE_URL', key: 'OPENAI_API_KEY' }

/**
 * A server that speaks OpenAI's protocol, at its base address such as `http://localhost:11434/v1`.
 *
 * @example
 * const backend = upstreamBackend({ base: 'http://localhost:11434/v1', patience: { first: 600_000, idle: 120_000 } })
 */
export function upstreamBackend({ base, apiKey, patience }: UpstreamOptions): Backend {
  const [chat, models] = [addressOf(base, '/chat/completions'), addressOf(base, '/models')]
  const agent = new Agent({ connect: { timeout: 10_000 }, headersTimeout: patience.first, bodyTimeout: patience.idle })
  const send = async (url: URL, method: 'GET' | 'POST', headers: Record<string, string>, body: string | null, signal: AbortSignal): Promise<Answer> => {
    const where = shownAddress(url)
    try {
      const {
        statusCode: status,
        headers: given,
        body: bytes,
      } = await agent.request({ origin: url.origin, path: url.pathname + url.search, method, headers, body, signal })
      const fault = faultOf(status, flat(given), where)
      if (fault === undefined) return { status, headers: returnable(flat(given)), where, body: understood(bytes, where) }
      // Whoever takes no more of a body lets it run out, so that its connection is free again.
      bytes.dump().catch(() => undefined)
      throw fault
    } catch (error) {
      throw failureOf(error, where, (cause) => unreachable(where, { cause }, check))
    }
  }
  return {
    name: shownAddress(chat).replace(/\/chat\/completions$/, ''),
    chat: ({ body, messages, headers, signal }) =>
      send(chat, 'POST', { ...headersFor(headers, apiKey), 'content-type': 'application/json' }, JSON.stringify({ ...body, messages }), signal),
    models: (headers, signal) => send(models, 'GET', headersFor(headers, apiKey), null, signal),
    close: () => agent.close(),
  }
}

function addressOf(base: string, route: string): URL {
  try {
    return endpoint(base, route)
  } catch (cause) {
    throw new MemoryError(
      'bad-option',
      'upstream must be an http:// or https:// address without a user name and password, such as http://localhost:11434/v1.',
      {
        param: 'upstream',
        cause,
      },
    )
  }
}

function headersFor(client: IncomingHttpHeaders, apiKey: string | undefined): Record<string, string> {
  const headers: Record<string, string> = { 'accept-encoding': 'identity' }
  for (const name of forwarded) {
    const value = client[name]
    if (typeof value === 'string') headers[name] = value
  }
  if (apiKey !== undefined && headers.authorization === undefined) headers.authorization = `Bearer ${apiKey}`
  return headers
}

const flat = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])))

const returnable = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => returned.test(name)))

/** Errors of the upstream go to the client as they are; what is no answer of a model server does not. */
function faultOf(status: number, headers: Readonly<Record<string, string>>, where: string): MemoryError | undefined {
  if (status >= 400) return undefined
  if (status >= 300) return refused(where, { status, word: '', tries: 1, model: '', check })
  if (!['', 'identity'].includes(headers['content-encoding'] ?? '')) return notAReply(where, 'compressed bytes nobody asked for')
  return (headers['content-type'] ?? '').toLowerCase().includes('html') ? notAReply(where, 'a web page') : undefined
}

/** The bytes of a body, with the errors of the platform told apart. */
async function* understood(body: AsyncIterable<Uint8Array>, where: string): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw failureOf(error, where, (cause) => brokenOff(where, cause))
  }
}

const late: ReadonlySet<string> = new Set(['UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT', 'UND_ERR_CONNECT_TIMEOUT'])

function failureOf(error: unknown, where: string, otherwise: (cause: unknown) => MemoryError): unknown {
  if (error instanceof MemoryError || (error instanceof Error && error.name === 'AbortError')) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return late.has(code) ? new MemoryError('timeout', `${where} did not answer in time. Try again, or ask for less.`, { cause: error }) : otherwise(error)
}
