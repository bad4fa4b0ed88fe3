import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Key, Scope } from '../../domain/key.ts'
import { allows, type Credential } from '../auth/credential.ts'
import type { Traced } from '../observability/spans.ts'
import type { Turn } from '../observability/turn.ts'
import type { House } from '../serverContext.ts'
import type { Client } from './client.ts'
import { notFound, Refusal } from './problem.ts'
import type { Params } from './routes.ts'

/** One request and what it takes to answer it. */
export type Exchange = {
  readonly house: House
  readonly id: string
  readonly request: IncomingMessage
  readonly client: Client
  readonly params: Params
  readonly query: URLSearchParams
  /** Who asks; undefined where no keys are asked for, and everybody may do everything. */
  readonly credential: Credential | undefined
  readonly began: number
  readonly traced: Traced
  onTurn(turn: Turn): void
}

export type Handler = (exchange: Exchange) => Promise<void>
export type Handlers = Readonly<Record<string, Handler>>

export function send(
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

/** Refuses, as if it were not there, a scope that is not the asker's. */
export function checkScope({ credential }: Exchange, scope: Scope): void {
  if (credential !== undefined && !allows(credential, scope)) throw notFound()
}

/** A key of the asker's own. */
export function own(exchange: Exchange, key: Key): Key {
  checkScope(exchange, key.scope)
  return key
}

/** What concerns the whole house is for those who run it. */
export function checkAdmin({ credential }: Exchange): void {
  if (credential !== undefined && credential.rights !== 'admin') throw notFound()
}

/** A whole number in the query, or what it is when left out. */
export function numberIn(query: URLSearchParams, name: string, otherwise: number, most: number): number {
  const text = query.get(name)
  if (text === null) return otherwise
  if (/^\d{1,9}$/.test(text) && Number(text) >= 1) return Math.min(Number(text), most)
  throw new Refusal(
    400,
    'bad_option',
    `${name} is ${JSON.stringify(text.slice(0, 40))}; it must be a whole number from 1 to ${most}.`,
    name,
  )
}
