import type { MemoryError } from '../../domain/error.ts'
import { incompleteReplyError, invalidReplyError } from '../../providers/errors.ts'
import { findJsonFault, replyLimits } from '../../providers/jsonStructure.ts'
import { parseJson } from '../../text/json.ts'
import { asBuffer } from '../http/body.ts'
import type { ClientConnection } from '../http/client.ts'
import { toErrorResponse } from '../http/httpError.ts'
import { EventSplitter } from '../http/sse.ts'
import type { ModelReply, Protocol, ReplyParser } from '../protocols/protocol.ts'
import { forEachChunk, isBufferedBody, isEventStream, type UpstreamResponse } from '../upstreams/backend.ts'

export type RelayOptions = {
  readonly protocol: Protocol
  /** Receives the complete reply before the client sees its end. Must not reject. */
  readonly onReply: (reply: ModelReply) => Promise<void>
  /** True when the client asked for a stream; default true. */
  readonly streams?: boolean | undefined
  /** Also relays responses that are not model replies, for requests without memory; default false. */
  readonly allowAnyResponse?: boolean | undefined
  /** Called before the first byte is written. */
  readonly onFirstByte?: (() => void) | undefined
  /** Rewrites the body of a response that is not a stream. */
  readonly rewriteBody?: ((text: string) => string) | undefined
}

const maxReplyBytes = 67_108_864

/**
 * Relays an upstream response to the client as it arrives and hands over the complete reply. The client sees the end of
 * the reply only after it was stored, so that its next request finds it in memory.
 */
export async function relayReply(
  response: UpstreamResponse,
  client: ClientConnection,
  options: RelayOptions,
): Promise<void> {
  if (response.status >= 400) {
    client.removeHeader('x-threadkeep-receipt')
    return relayUnchanged(response, client)
  }
  if (isEventStream(response))
    return options.streams === false
      ? relayUnrequestedStream(response, client, options)
      : relayStream(response, client, options)
  const body = takeBufferedBody(response) ?? (await readBody(response))
  const text = body.toString('utf8')
  options.onFirstByte?.()
  const reply = parseReply(text, response, options)
  if (reply !== undefined) await options.onReply(reply)
  const { rewriteBody } = options
  client.send(response.status, response.headers, rewriteBody === undefined ? body : Buffer.from(rewriteBody(text)))
}

function parseReply(
  text: string,
  { address }: UpstreamResponse,
  { protocol, allowAnyResponse }: RelayOptions,
): ModelReply | undefined {
  try {
    return protocol.parseReply(text, address)
  } catch (error) {
    if (allowAnyResponse === true) return undefined
    throw error
  }
}

/** Relays a response without reading it. */
export async function relayUnchanged(response: UpstreamResponse, client: ClientConnection): Promise<void> {
  client.sendHeaders(response.status, response.headers)
  for await (const bytes of response.body) if (!client.write(bytes)) await client.drained()
  client.end()
}

/** Relays a JSON response, or the part of it that `pick` returns. */
export async function relayJson(
  response: UpstreamResponse,
  client: ClientConnection,
  pick?: (json: unknown) => unknown,
): Promise<void> {
  if (response.status >= 400) return relayUnchanged(response, client)
  const body = await readBody(response)
  const text = body.toString('utf8')
  const json = findJsonFault(text, replyLimits) === undefined ? parseJson(text) : undefined
  if (json === undefined) throw invalidReplyError(response.address, 'something that is not JSON')
  client.send(response.status, response.headers, pick === undefined ? body : Buffer.from(JSON.stringify(pick(json))))
}

/** Buffers a stream that the client did not ask for: such clients do not look for errors inside a stream. */
async function relayUnrequestedStream(
  response: UpstreamResponse,
  client: ClientConnection,
  options: RelayOptions,
): Promise<void> {
  const parser = options.protocol.createReplyParser(response.address)
  const bytes = await readBody(response)
  options.onFirstByte?.()
  parser.end(bytes)
  if (!parser.isComplete) throw incompleteReplyError(response.address)
  await options.onReply(parser.toReply())
  client.send(response.status, response.headers, bytes)
}

async function relayStream(response: UpstreamResponse, client: ClientConnection, options: RelayOptions): Promise<void> {
  const parser = options.protocol.createReplyParser(response.address)
  let isHandedOver = false
  const handOver = async (): Promise<void> => {
    if (isHandedOver || !parser.isComplete) return
    isHandedOver = true
    await options.onReply(parser.toReply())
  }
  try {
    await relayEvents(response, client, parser, { onComplete: handOver, onFirstByte: options.onFirstByte })
  } catch (error) {
    // A connection error after the complete reply does no harm.
    if (!parser.isComplete) {
      // A client that disconnected has a partial reply, which is not stored.
      if (client.signal.aborted || !client.headersSent) throw error
      client.write(options.protocol.formatErrorEvent(toErrorResponse(error).error))
    }
  }
  await handOver()
  client.end()
}

type StreamCallbacks = Pick<RelayOptions, 'onFirstByte'> & { readonly onComplete: () => Promise<void> }

async function relayEvents(
  response: UpstreamResponse,
  client: ClientConnection,
  parser: ReplyParser,
  { onComplete, onFirstByte }: StreamCallbacks,
): Promise<unknown> {
  const events = new EventSplitter()
  const write = (bytes: Uint8Array): Promise<unknown> | undefined => {
    if (bytes.length === 0) return undefined
    if (!client.headersSent) {
      onFirstByte?.()
      client.sendHeaders(response.status, { ...response.headers, 'cache-control': 'no-cache' })
    }
    return client.write(bytes) ? undefined : client.drained()
  }
  await forEachChunk(response.body, (bytes) => {
    const completeEvents = events.push(bytes)
    try {
      parser.push(completeEvents)
    } catch (error) {
      // The client still gets the end of a complete reply when something else follows it in the same packet.
      if (!parser.isComplete) throw error
    }
    return parser.hasEnded ? onComplete().then(() => write(completeEvents)) : write(completeEvents)
  })
  const rest = events.rest()
  parser.end(rest)
  // Half an event is withheld: it would corrupt the error event that follows.
  if (!parser.isComplete && !parser.hasFailed) throw incompleteReplyError(response.address)
  if (parser.hasEnded) await onComplete()
  return write(rest)
}

/** The body, when it has arrived completely. */
function takeBufferedBody({ body, address }: UpstreamResponse): Buffer | undefined {
  const bytes = isBufferedBody(body) ? body.takeComplete() : undefined
  if (bytes !== undefined && bytes.length > maxReplyBytes) throw replyTooLarge(address)
  return bytes && asBuffer(bytes)
}

export async function readBody(response: UpstreamResponse): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const bytes of response.body) {
    size += bytes.length
    if (size > maxReplyBytes) throw replyTooLarge(response.address)
    chunks.push(bytes)
  }
  return chunks.length === 1 ? asBuffer(chunks[0] as Uint8Array) : Buffer.concat(chunks)
}

const replyTooLarge = (where: string): MemoryError => invalidReplyError(where, `more than ${maxReplyBytes} bytes`)
