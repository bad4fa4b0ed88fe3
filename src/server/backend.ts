import type { IncomingHttpHeaders } from 'node:http'
import type { Tokens } from '../domain/entry.ts'

/** A chat completion to be answered. */
export type Call = {
  /** The client's request, except for its messages. */
  readonly body: Readonly<Record<string, unknown>>
  readonly messages: readonly unknown[]
  /** What the messages cost. */
  readonly spent: Tokens
  readonly headers: IncomingHttpHeaders
  readonly signal: AbortSignal
}

/** An answer in OpenAI's format, on its way. */
export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
  /** Who answers, as errors name it. */
  readonly where: string
}

/** Whoever answers behind memory: a model server, or the built-in model. */
export interface Backend {
  /** The model's name, or the address of the server that has many. */
  readonly name: string
  chat(call: Call): Promise<Answer>
  models(headers: IncomingHttpHeaders, signal: AbortSignal): Promise<Answer>
  close(): Promise<void>
}

export const isStream = (answer: Answer): boolean => (answer.headers['content-type'] ?? '').toLowerCase().includes('text/event-stream')
