import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { Tokens } from '../../domain/entry.ts'
import { shortenText } from '../../domain/error.ts'
import type { UpstreamProtocol } from '../auth/upstreamHeaders.ts'
import { afterPendingReads } from '../http/body.ts'
import { HttpError } from '../http/httpError.ts'
import type { UpstreamState } from '../observability/readiness.ts'
import type { ProtocolName, RequestBody } from '../protocols/protocol.ts'

/** Request to a model server. */
export type UpstreamRequest = {
  /** Endpoint of the model server that is called. */
  readonly endpoint: ProtocolName | 'embeddings' | 'count_tokens'
  /** Body as it is sent to the model server. */
  readonly body: RequestBody
  /** Tokens of the messages in the body; 0 if not counted. */
  readonly promptTokens: Tokens
  readonly headers: IncomingHttpHeaders
  /** Query string of the client without `?`, sent as it is; default none. */
  readonly query?: string | undefined
  /**
   * True if none of the client's API keys may be forwarded, for example because it authenticated with a Threadkeep key.
   */
  readonly withholdClientKey: boolean
  readonly signal: AbortSignal
}

/** Parts of a request that determine its API key and its cancellation. */
export type UpstreamCaller = Pick<UpstreamRequest, 'headers' | 'query' | 'withholdClientKey' | 'signal'>

/** Request to an endpoint that this server does not know. Neither it nor the response is read. */
export type ForwardRequest = UpstreamCaller & {
  readonly method: string
  /** Validated path below the base URL, such as `files/file-1/content`. */
  readonly path: string
  /** Protocol of the client. */
  readonly protocol: UpstreamProtocol
  /** Body as it arrives; undefined for a request without one. */
  readonly body: Readable | undefined
}

/** Response of a model server, in the protocol of the request. The body may still be arriving. */
export type UpstreamResponse = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: AsyncIterable<Uint8Array>
  /** Address of the model server, as error messages show it. */
  readonly address: string
  /** Configured name of the upstream that answered. */
  readonly upstream: string
  /** Failed attempts before this response. */
  readonly retries: number
  /** Names of the upstreams that failed before this one answered. */
  readonly failedUpstreams: readonly string[]
}

/**
 * Body whose received bytes can be read synchronously: awaiting each of many small chunks costs more than parsing them.
 */
export type BufferedBody = {
  /** Takes the whole body if it has arrived completely, else returns undefined. */
  takeComplete(): Uint8Array | undefined
  /** Resolves when bytes are available or the body has ended; undefined if that is already the case. */
  waitForData(): Promise<void> | undefined
  /** Takes all bytes received since the last call; undefined at the end. Throws if the body ended with an error. */
  takeAvailable(): Uint8Array | undefined
  /** Discards the rest. Closes the connection if the body has not ended, because it may never end. */
  discard(): void
}

export const isBufferedBody = (body: object): body is BufferedBody =>
  (body as Partial<BufferedBody>).takeComplete !== undefined

/** Calls `onChunk` for each chunk of a body, and waits for its promise, if any, before the next chunk. */
export async function forEachChunk(
  body: UpstreamResponse['body'],
  onChunk: (bytes: Uint8Array) => Promise<unknown> | undefined,
): Promise<void> {
  if (!isBufferedBody(body)) {
    for await (const bytes of body) await onChunk(bytes)
    return
  }
  try {
    for (;;) {
      const available = body.waitForData()
      if (available !== undefined) {
        await available
        await afterPendingReads()
      }
      const bytes = body.takeAvailable()
      if (bytes === undefined) return
      const pending = onChunk(bytes)
      if (pending !== undefined) await pending
    }
  } finally {
    body.discard()
  }
}

/** Source of model replies: a pool of model servers or the built-in offline model. */
export interface Backend {
  /** Name of the offline model, or the addresses of the model servers. */
  readonly name: string
  /** Sends a request. Rejects with a `MemoryError` or an HTTP error if no upstream gives a response. */
  send(call: UpstreamRequest): Promise<UpstreamResponse>
  /** Requests the list of models. */
  listModels(call: UpstreamCaller): Promise<UpstreamResponse>
  /** Sends a request for an unknown endpoint once. Rejects with 404 if no upstream receives such requests. */
  forward(request: ForwardRequest): Promise<UpstreamResponse>
  /** Returns the health of each upstream. */
  getHealth(): readonly { readonly name: string; readonly state: UpstreamState }[]
  close(): Promise<void>
}

/** Creates the error for an endpoint that nobody serves. */
export const notForwarded = ({ method, path }: Pick<ForwardRequest, 'method' | 'path'>, remedy: string): HttpError =>
  new HttpError(
    404,
    'unknown_url',
    `Unknown URL: ${method} /v1/${shortenText(path, 200)}. GET /openapi.json lists all URLs. ${remedy}`,
  )

export const isEventStream = (answer: UpstreamResponse): boolean =>
  (answer.headers['content-type'] ?? '').toLowerCase().includes('text/event-stream')
