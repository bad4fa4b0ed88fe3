import type { MemoryError } from '../../domain/error.ts'
import { endedEarly, notAReply } from '../../providers/errors.ts'
import { parseJson } from '../../text/json.ts'
import type { Client } from '../http/client.ts'
import { problemOf } from '../http/httpError.ts'
import { asBuffer, WholeEvents } from '../http/sse.ts'
import type { Dialect, Heard, Listener } from '../protocols/protocol.ts'
import { type Answer, eachPiece, isGathered, isStream } from '../upstreams/backend.ts'

export type RelayOptions = {
  readonly dialect: Dialect
  /** Receives the complete reply before the client sees its end. Must not reject. */
  readonly onReply: (reply: Heard) => Promise<void>
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
export async function relayReply(answer: Answer, client: Client, options: RelayOptions): Promise<void> {
  if (answer.status >= 400) {
    client.untell('x-threadkeep-receipt')
    return relayUnchanged(answer, client)
  }
  if (isStream(answer))
    return options.streams === false
      ? relayUnrequestedStream(answer, client, options)
      : relayStream(answer, client, options)
  const body = takeBufferedBody(answer) ?? (await readBody(answer))
  const text = body.toString('utf8')
  options.onFirstByte?.()
  const reply = parseReply(text, answer, options)
  if (reply !== undefined) await options.onReply(reply)
  const { rewriteBody } = options
  client.answer(answer.status, answer.headers, rewriteBody === undefined ? body : Buffer.from(rewriteBody(text)))
}

function parseReply(text: string, { where }: Answer, { dialect, allowAnyResponse }: RelayOptions): Heard | undefined {
  try {
    return dialect.hear(text, where)
  } catch (error) {
    if (allowAnyResponse === true) return undefined
    throw error
  }
}

/** Relays a response without reading it. */
export async function relayUnchanged(answer: Answer, client: Client): Promise<void> {
  client.begin(answer.status, answer.headers)
  for await (const bytes of answer.body) if (!client.write(bytes)) await client.drained()
  client.end()
}

/** Relays a JSON response, or the part of it that `pick` returns. */
export async function relayJson(answer: Answer, client: Client, pick?: (json: unknown) => unknown): Promise<void> {
  if (answer.status >= 400) return relayUnchanged(answer, client)
  const body = await readBody(answer)
  const json = parseJson(body.toString('utf8'))
  if (json === undefined) throw notAReply(answer.where, 'something that is not JSON')
  client.answer(answer.status, answer.headers, pick === undefined ? body : Buffer.from(JSON.stringify(pick(json))))
}

/** Buffers a stream that the client did not ask for: such clients do not look for errors inside a stream. */
async function relayUnrequestedStream(answer: Answer, client: Client, options: RelayOptions): Promise<void> {
  const parser = options.dialect.listener(answer.where)
  const bytes = await readBody(answer)
  options.onFirstByte?.()
  parser.end(bytes)
  if (!parser.isComplete) throw endedEarly(answer.where)
  await options.onReply(parser.heard())
  client.answer(answer.status, answer.headers, bytes)
}

async function relayStream(answer: Answer, client: Client, options: RelayOptions): Promise<void> {
  const parser = options.dialect.listener(answer.where)
  let isHandedOver = false
  const handOver = async (): Promise<void> => {
    if (isHandedOver || !parser.isComplete) return
    isHandedOver = true
    await options.onReply(parser.heard())
  }
  try {
    await relayEvents(answer, client, parser, { onComplete: handOver, onFirstByte: options.onFirstByte })
  } catch (error) {
    // A connection error after the complete reply does no harm.
    if (!parser.isComplete) {
      // A client that disconnected has a partial reply, which is not stored.
      if (client.signal.aborted || !client.hasBegun) throw error
      client.write(options.dialect.failure(problemOf(error).error))
    }
  }
  await handOver()
  client.end()
}

type StreamCallbacks = Pick<RelayOptions, 'onFirstByte'> & { readonly onComplete: () => Promise<void> }

async function relayEvents(
  answer: Answer,
  client: Client,
  parser: Listener,
  { onComplete, onFirstByte }: StreamCallbacks,
): Promise<unknown> {
  const events = new WholeEvents()
  const write = (bytes: Uint8Array): Promise<unknown> | undefined => {
    if (bytes.length === 0) return undefined
    if (!client.hasBegun) {
      onFirstByte?.()
      client.begin(answer.status, { ...answer.headers, 'cache-control': 'no-cache' })
    }
    return client.write(bytes) ? undefined : client.drained()
  }
  await eachPiece(answer.body, (bytes) => {
    const completeEvents = events.push(bytes)
    parser.hear(completeEvents)
    return parser.isOver ? onComplete().then(() => write(completeEvents)) : write(completeEvents)
  })
  const rest = events.rest()
  parser.end(rest)
  // Half an event is withheld: it would corrupt the error event that follows.
  if (!parser.isComplete && !parser.hasFailed) throw endedEarly(answer.where)
  if (parser.isOver) await onComplete()
  return write(rest)
}

/** The body, when it has arrived completely. */
function takeBufferedBody({ body, where }: Answer): Buffer | undefined {
  const bytes = isGathered(body) ? body.takeWhole() : undefined
  if (bytes !== undefined && bytes.length > maxReplyBytes) throw replyTooLarge(where)
  return bytes && asBuffer(bytes)
}

async function readBody(answer: Answer): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const bytes of answer.body) {
    size += bytes.length
    if (size > maxReplyBytes) throw replyTooLarge(answer.where)
    chunks.push(bytes)
  }
  return chunks.length === 1 ? asBuffer(chunks[0] as Uint8Array) : Buffer.concat(chunks)
}

const replyTooLarge = (where: string): MemoryError => notAReply(where, `more than ${maxReplyBytes} bytes`)
