import type { IncomingMessage, ServerResponse } from 'node:http'
import { shortenText } from '../../domain/error.ts'
import type { Key, Scope } from '../../domain/key.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { allowsScope, type Credential } from '../auth/credential.ts'
import type { RequestTrace } from '../observability/tracing.ts'
import type { TurnRecord } from '../observability/usageStats.ts'
import type { ServerContext } from '../serverContext.ts'
import type { ClientConnection } from './client.ts'
import { HttpError, notFound } from './httpError.ts'
import type { Params } from './router.ts'

/** One request with everything its handler needs. */
export type RequestContext = {
  readonly server: ServerContext
  readonly id: string
  readonly request: IncomingMessage
  readonly client: ClientConnection
  readonly params: Params
  readonly query: URLSearchParams
  /** Credential of the caller; undefined when the server requires no keys, and everything is allowed. */
  readonly credential: Credential | undefined
  /** `performance.now()` at arrival. */
  readonly startedAt: number
  readonly trace: RequestTrace
  /** Receives the record of a turn for metrics, traces and the log. */
  onTurn(turn: TurnRecord): void
}

export type Handler = (context: RequestContext) => Promise<void>
/** Handlers by method and path, such as `GET /api/sessions/{key}`. */
export type Handlers = Readonly<Record<string, Handler>>

/** Sends a JSON response. */
export function sendJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(JSON.stringify(value))
  response
    .writeHead(status, { ...headers, 'content-type': 'application/json', 'content-length': body.length })
    .end(body)
}

/** Characters of a page that are written in one turn of the event loop, unless one item has more. */
const maxPartCharacters = 262_144

/** Sends a page of a list as `sendJson` does. Its items may have megabytes each: others run in between. */
export async function sendPage(
  response: ServerResponse,
  { items, ...rest }: { readonly items: readonly unknown[]; readonly next: string | null },
): Promise<void> {
  const parts: Buffer[] = []
  let text = '{"items":['
  for (const [index, item] of items.entries()) {
    text += `${index === 0 ? '' : ','}${JSON.stringify(item)}`
    if (text.length < maxPartCharacters) continue
    parts.push(Buffer.from(text))
    text = ''
    await yieldWhenLong()
  }
  parts.push(Buffer.from(`${text}],${JSON.stringify(rest).slice(1)}`))
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length })
  for (const part of parts) response.write(part)
  response.end()
}

/** Throws 404 when the caller may not use the scope. */
export function checkScope({ credential }: RequestContext, scope: Scope): void {
  if (credential !== undefined && !allowsScope(credential, scope)) throw notFound()
}

/** Returns the key, or throws 404 when the caller may not use its scope. */
export function requireOwnKey(context: RequestContext, key: Key): Key {
  checkScope(context, key.scope)
  return key
}

/** Throws 404 unless the caller is an administrator. */
export function checkAdmin({ credential }: RequestContext): void {
  if (credential !== undefined && credential.rights !== 'admin') throw notFound()
}

/** A positive whole number of the query string, at most `most`; `otherwise` when it is missing. */
export function readNumber(query: URLSearchParams, name: string, otherwise: number, most: number): number {
  const text = query.get(name)
  if (text === null) return otherwise
  if (/^\d{1,9}$/.test(text) && Number(text) >= 1) return Math.min(Number(text), most)
  const message = `${name} is ${JSON.stringify(shortenText(text, 40))}; it must be a whole number from 1 to ${most}.`
  throw new HttpError(400, 'bad_option', message, name)
}
