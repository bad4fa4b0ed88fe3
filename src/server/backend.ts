import type { IncomingHttpHeaders } from 'node:http'
import type { Tokens } from '../domain/entry.ts'
import type { Body, Dialect } from './dialects/dialect.ts'
import type { UpstreamState } from './watch/ready.ts'

/** What a client wants of a model. */
export type Call = {
  readonly dialect: Dialect['name'] | 'embeddings' | 'count_tokens'
  /** The request as it goes to the model. */
  readonly body: Body
  /** What its messages cost; 0 where nobody has counted. */
  readonly spent: Tokens
  readonly headers: IncomingHttpHeaders
  /** Whether the client showed a key of this server's own: then none of its keys goes on. */
  readonly isGuarded: boolean
  readonly signal: AbortSignal
}

/** An answer in the protocol it was asked for in, on its way. */
export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
  /** Who answers, as errors name it. */
  readonly where: string
  /** The name of the model server it came from. */
  readonly from: string
  /** How often it was asked in vain before. */
  readonly retries: number
  /** Model servers that were asked in vain before another one. */
  readonly passedOver: readonly string[]
}

/** A body that can be had in one where all of it has come already: short answers come whole, and to wait for each piece of them costs more than to read them. */
export type Gathered = {
  /** All that has come, if nothing more will. */
  takeWhole(): Uint8Array | undefined
}

export const isGathered = (body: object): body is Gathered => 'takeWhole' in body

/** Whoever answers behind memory: model servers, or the built-in model. */
export interface Backend {
  /** The model's name, or the address of the server that has many. */
  readonly name: string
  ask(call: Call): Promise<Answer>
  models(call: Pick<Call, 'headers' | 'isGuarded' | 'signal'>): Promise<Answer>
  /** How those that answer have done lately. */
  states(): readonly { readonly name: string; readonly state: UpstreamState }[]
  close(): Promise<void>
}

export const isStream = (answer: Answer): boolean => (answer.headers['content-type'] ?? '').toLowerCase().includes('text/event-stream')
