import type { IncomingHttpHeaders } from 'node:http'
import type { Tokens } from '../../domain/entry.ts'
import { roundOver } from '../http/pendingReads.ts'
import type { UpstreamState } from '../observability/ready.ts'
import type { Body, Dialect } from '../protocols/dialect.ts'

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

/** A body whose bytes can be had without a promise once they have come: to wait for each of many small pieces costs more than to read them. */
export type Gathered = {
  /** All that has come, if nothing more will. */
  takeWhole(): Uint8Array | undefined
  /** Resolves when there is something to take, or nothing more will come; undefined where that is so already. */
  arrival(): Promise<void> | undefined
  /** All that has come since it was last asked, undefined at the end; throws if the end came too early. */
  takeNext(): Uint8Array | undefined
  /** Lets go of the rest, and unless it has all come of the connection too: there may be no end to it. */
  dump(): void
}

export const isGathered = (body: object): body is Gathered => 'takeWhole' in body

/** Hands out a body piece by piece, each as soon as the one before is dealt with: that may take a promise. */
export async function eachPiece(
  body: Answer['body'],
  take: (bytes: Uint8Array) => Promise<unknown> | undefined,
): Promise<void> {
  if (!isGathered(body)) {
    for await (const bytes of body) await take(bytes)
    return
  }
  try {
    for (;;) {
      const coming = body.arrival()
      if (coming !== undefined) {
        await coming
        await roundOver()
      }
      const bytes = body.takeNext()
      if (bytes === undefined) return
      const busy = take(bytes)
      if (busy !== undefined) await busy
    }
  } finally {
    body.dump()
  }
}

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

export const isStream = (answer: Answer): boolean =>
  (answer.headers['content-type'] ?? '').toLowerCase().includes('text/event-stream')
