import type { Key } from '../../domain/key.ts'
import type { RequestContext } from '../http/requestContext.ts'
import type { ResolvedMemory } from '../memoryRegistry.ts'
import type { ClientMessage, ModelReply, ParsedRequest, Protocol } from '../protocols/protocol.ts'
import type { UpstreamResponse } from '../upstreams/backend.ts'
import type { OutgoingPrompt } from './outgoingPrompt.ts'
import type { HistoryRelation } from './reconcile.ts'
import type { TurnHeaders } from './turnHeaders.ts'

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
  /** Epoch in which the question was stored; undefined when nothing was stored. */
  readonly epoch: number | undefined
  /** Sequence number of the last message of the question. */
  readonly question: number
  /** Number of messages stored for the question. */
  readonly appended: number
  /** Start of the reply, sent by the client for the model to continue. */
  readonly prefill: ClientMessage | undefined
  readonly receiptId: string
  readonly degraded: readonly string[]
  readonly memoryMs: number
  firstByteMs: number | undefined
  upstreamResponse: UpstreamResponse | undefined
  reply: ModelReply | undefined
}
