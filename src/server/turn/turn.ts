import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { Message } from '../../domain/entry.ts'
import { shortenText } from '../../domain/error.ts'
import type { Key } from '../../domain/key.ts'
import type { DegradationNotice } from '../../domain/ledger.ts'
import { LruCache } from '../../domain/lruCache.ts'
import { HttpError } from '../http/httpError.ts'
import type { RequestContext } from '../http/requestContext.ts'
import type { ResolvedMemory } from '../memoryRegistry.ts'
import type { ClientMessage, ModelReply, ParsedRequest, Protocol } from '../protocols/protocol.ts'
import type { UpstreamResponse } from '../upstreams/backend.ts'
import type { OutgoingPrompt } from './outgoingPrompt.ts'
import type { HistoryRelation } from './reconcile.ts'
import type { HistoryMode } from './sessionActivity.ts'
import type { TurnMeasurement } from './turnMeter.ts'

/** A parsed and authorized request for a model reply. */
export type TurnRequest = {
  readonly context: RequestContext
  readonly protocol: Protocol
  readonly parsed: ParsedRequest
  /** The session it belongs to; undefined for a request without memory. */
  readonly key: Key | undefined
  /**
   * True when only a field of the body names the session, such as a user name: one person may have several
   * conversations.
   */
  readonly isSessionFromBody: boolean
  readonly headers: TurnHeaders
  /** True when nothing of the turn may be stored. */
  readonly storeDisabled: boolean
}

/** A turn whose question was ingested, and whatever becomes known while its reply is relayed. */
export type Turn = {
  readonly request: TurnRequest
  readonly key: Key
  readonly resolved: ResolvedMemory
  readonly prompt: OutgoingPrompt
  readonly relation: HistoryRelation
  /** Kind of the client in this turn. */
  readonly history: HistoryMode
  /** True if the client is known to resend its conversation, false if it is known not to. */
  readonly resends: boolean | undefined
  /** Conversation of the session that the turn belongs to; undefined for its first one. */
  readonly branch: number | undefined
  /** Sequence number from which messages of the conversation were moved into a branch, if any were. */
  readonly cutFrom: number | undefined
  /** Epoch in which the question was stored; undefined when nothing was stored. */
  readonly epoch: number | undefined
  /** Sequence number of the last message of the question. */
  readonly question: number
  /** Messages stored for the question. */
  readonly appended: readonly Message[]
  /** Start of the reply, sent by the client for the model to continue. */
  readonly prefill: ClientMessage | undefined
  readonly receiptId: string
  /** Steps that fell back, so far. */
  degraded: readonly DegradationNotice[]
  readonly memoryMs: number
  firstByteMs: number | undefined
  upstreamResponse: UpstreamResponse | undefined
  /** Set once the upstream has responded. */
  measurement: TurnMeasurement | undefined
  reply: ModelReply | undefined
  isReplyStored: boolean
}

/** Options of a turn that clients set in headers. */
export type TurnHeaders = {
  /** `x-threadkeep-store: false`: answer with memory, store nothing. */
  readonly storeDisabled: boolean
  /** `x-threadkeep-template`: template to begin a new session with. */
  readonly template: string | undefined
  /** `x-threadkeep-person`: the person speaking, for profiles that read a person's memory. */
  readonly person: string | undefined
  /** The SDKs of OpenAI and Anthropic count their retries in `x-stainless-retry-count`. */
  readonly isRetry: boolean
  /** `idempotency-key`: repeated requests with the same key store their messages once. */
  readonly idempotencyKey: string | undefined
  /** `x-threadkeep-body: receipt`: add the receipt's id to the response body. */
  readonly addReceiptToBody: boolean
  /** `x-threadkeep-history`: the kind of client; undefined to tell it from the request. */
  readonly history: HistoryMode | undefined
  /** Short digest that tells the programs of a session apart, from their `user-agent`. */
  readonly client: string
}

/** Reads the headers of a turn; throws for an invalid value. */
export const readTurnHeaders = (headers: IncomingHttpHeaders): TurnHeaders => ({
  storeDisabled: isStoreDisabled(headers['x-threadkeep-store']),
  template: readHeader(headers, 'x-threadkeep-template'),
  person: readHeader(headers, 'x-threadkeep-person'),
  isRetry: Number(headers['x-stainless-retry-count'] ?? 0) > 0,
  idempotencyKey: readIdempotencyKey(headers),
  addReceiptToBody: isReceiptRequested(headers['x-threadkeep-body']),
  history: readHistoryMode(headers['x-threadkeep-history']),
  client: clientDigest(headers['user-agent'] ?? ''),
})

const maxIdempotencyKeyLength = 255

function readIdempotencyKey(headers: IncomingHttpHeaders): string | undefined {
  const key = readHeader(headers, 'idempotency-key')
  if (key === undefined || key.length <= maxIdempotencyKeyLength) return key
  const message = `idempotency-key has ${key.length} characters; the maximum is ${maxIdempotencyKeyLength}.`
  throw new HttpError(400, 'bad_header', message, 'idempotency-key')
}

function isReceiptRequested(value: string | readonly string[] | undefined): boolean {
  if (value === undefined || value === 'receipt') return value === 'receipt'
  throw new HttpError(400, 'bad_header', 'x-threadkeep-body must be receipt, or omitted.', 'x-threadkeep-body')
}

function readHistoryMode(value: string | readonly string[] | undefined): HistoryMode | undefined {
  const word = String(value ?? 'auto')
    .trim()
    .toLowerCase()
  if (word === 'auto') return undefined
  if (word === 'full' || word === 'thin') return word
  throw new HttpError(
    400,
    'bad_header',
    `x-threadkeep-history is ${JSON.stringify(shortenText(word, 40))}; it must be full, thin or auto.`,
    'x-threadkeep-history',
  )
}

/** Digests by user agent, of which a client may send any number; together up to this many characters. */
const clientDigests = new LruCache<string, string>({ maxTotalSize: 256_000 })

function clientDigest(userAgent: string): string {
  const cached = clientDigests.get(userAgent)
  if (cached !== undefined) return cached
  const digest = createHash('sha256').update(userAgent).digest('hex').slice(0, 8)
  clientDigests.set(userAgent, digest, digestOverhead + userAgent.length)
  return digest
}

const digestOverhead = 200

/** An unclear value is refused: a client that means "do not store" must not be stored. */
function isStoreDisabled(value: string | readonly string[] | undefined): boolean {
  if (value === undefined) return false
  const word = String(value).trim().toLowerCase()
  if (word === 'true' || word === 'false') return word === 'false'
  throw new HttpError(
    400,
    'bad_header',
    `x-threadkeep-store is ${JSON.stringify(shortenText(word, 40))}; it must be true or false.`,
    'x-threadkeep-store',
  )
}

/** Value of a header that occurs once and is not blank. */
export function readHeader(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined
}

/** Digest of a request's instructions and tools: a sub-agent has other ones than the program that started it. */
export function setupDigest({ instructions, body }: ParsedRequest): string {
  const tools = Array.isArray(body.tools) ? body.tools.length : 0
  return createHash('sha256')
    .update(`${tools}\n${instructions.join('\n')}`)
    .digest('hex')
    .slice(0, 8)
}
