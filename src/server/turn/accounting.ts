import { shortenMessage } from '../../domain/error.ts'
import { formatKey } from '../../domain/key.ts'
import { normalizeSecrets } from '../../text/secrets.ts'
import {
  type Cost,
  computeCacheDiscount,
  computeRequestCost,
  computeSaving,
  type PriceTable,
} from '../observability/prices.ts'
import type { TurnRecord } from '../observability/usageStats.ts'
import type { Usage } from '../protocols/protocol.ts'
import type { Receipt } from '../receipts.ts'
import type { UpstreamResponse } from '../upstreams/backend.ts'
import { setupDigest, type Turn, type TurnRequest } from './turn.ts'

/** Token counts by our own tokenizer. */
type TokenCounts = Pick<TurnRecord['tokens'], 'shown' | 'history' | 'saved' | 'cacheable'>

const noTokens: TokenCounts = { shown: 0, history: 0, saved: 0, cacheable: 0 }

/** Builds the receipt of a turn: ids and numbers that explain its reply. */
export function buildReceipt(
  prices: PriceTable,
  turn: Turn,
  stored: { readonly sequence: number | null; readonly at: number },
): Receipt {
  const { request, prompt, reply } = turn
  const counts = countTokens(turn)
  const usage = reply?.usage
  return {
    id: turn.receiptId,
    key: formatKey(turn.key),
    at: stored.at,
    request: request.context.id,
    response: reply?.id === undefined ? null : normalizeSecrets(reply.id),
    sequence: stored.sequence,
    protocol: request.protocol.name,
    model: normalizeSecrets(shortenMessage(request.parsed.model)),
    upstream: turn.upstreamResponse?.upstream ?? '',
    relation: turn.relation,
    history: turn.history,
    client: request.headers.client,
    ...(turn.resends !== undefined && { resends: turn.resends }),
    ...(reply?.message.tool_calls !== undefined && { setup: setupDigest(request.parsed) }),
    ...(isRefusal(turn.upstreamResponse) && { refused: turn.upstreamResponse.status }),
    ...(reply?.isStoredUpstream === true && { isStoredUpstream: true }),
    ...(reply?.isFinished === false && { question: turn.question }),
    tokens: {
      ...counts,
      cacheableShare: counts.shown === 0 ? 0 : counts.cacheable / counts.shown,
      prompt: usage?.prompt ?? null,
      completion: usage?.completion ?? null,
      cached: usage?.cached ?? null,
    },
    cost: describeCost(prices, turn, counts),
    degraded: turn.degraded,
    ledger: prompt.ledger ?? null,
  }
}

/** True when the upstream refused a request as wrong; a turn that was refused is not part of its session. */
export const isRefusal = (response: UpstreamResponse | undefined): response is UpstreamResponse =>
  response !== undefined && response.status >= 400 && response.status < 500

/** Builds the record of a turn for metrics, logs and traces. */
export function buildTurnRecord(turn: Turn): TurnRecord {
  const { request, key, resolved, upstreamResponse } = turn
  const isStored = turn.epoch !== undefined
  const record: TurnRecord = {
    ...requestFields(request, upstreamResponse, turn.firstByteMs),
    key: formatKey(key),
    scope: key.scope,
    profile: resolved.memory.profile.name,
    status: upstreamResponse?.status ?? 502,
    tokens: withUsage(countTokens(turn), turn.reply?.usage),
    dollars: computeTurnCost(request.context.server.prices, turn)?.total,
    isStored,
    appendedMessages: turn.appended.length + (turn.isReplyStored ? 1 : 0),
    degraded: turn.degraded,
  }
  const withTimes: TurnRecord = { ...record, durationMs: { ...record.durationMs, memory: turn.memoryMs } }
  if (!request.storeDisabled) return withTimes
  // With storage disabled, nothing is counted for the session either.
  const { key: _key, ...anonymous } = withTimes
  return anonymous
}

/** Builds the record of a request that was relayed without memory. */
export const buildRelayRecord = (
  request: TurnRequest,
  response: UpstreamResponse,
  firstByteMs: number | undefined,
  usage: Usage | undefined,
): TurnRecord => ({
  ...requestFields(request, response, firstByteMs),
  profile: 'none',
  status: response.status,
  tokens: withUsage(noTokens, usage),
  dollars: usage && computeRequestCost(request.context.server.prices, request.parsed.model, usage)?.total,
  isStored: false,
  appendedMessages: 0,
  degraded: [],
})

type RequestFields = Pick<
  TurnRecord,
  'protocol' | 'model' | 'upstream' | 'isStreaming' | 'durationMs' | 'retries' | 'isAborted' | 'failedUpstreams'
>

function requestFields(
  { context, protocol, parsed }: TurnRequest,
  response: UpstreamResponse | undefined,
  firstByteMs?: number,
): RequestFields {
  const total = performance.now() - context.startedAt
  return {
    protocol: protocol.name,
    model: parsed.model,
    upstream: response?.upstream ?? '',
    isStreaming: parsed.isStreaming,
    durationMs: { total, memory: 0, ...(firstByteMs !== undefined && { firstByte: firstByteMs }) },
    retries: response?.retries ?? 0,
    isAborted: context.client.signal.aborted,
    failedUpstreams: response?.failedUpstreams ?? [],
  }
}

/** Counts of a turn; one whose upstream gave no response has no measurement. */
function countTokens({ prompt: { tokens, history: own }, measurement }: Turn): TokenCounts {
  const { history, cacheable } = measurement ?? { history: own ?? tokens, cacheable: 0 }
  return { shown: tokens, history, saved: history - tokens, cacheable }
}

function withUsage(counts: TokenCounts, usage: Usage | undefined): TurnRecord['tokens'] {
  if (usage === undefined) return counts
  const { prompt, completion, cached } = usage
  return { ...counts, prompt, completion, cached }
}

/**
 * Cost by the upstream's token counts; estimated from our own where the upstream reports none. Undefined without a
 * reply or a price.
 */
function computeTurnCost(prices: PriceTable, { request, prompt, reply }: Turn): Cost | undefined {
  return reply && computeRequestCost(prices, request.parsed.model, reply.usage ?? { prompt: prompt.tokens })
}

function describeCost(prices: PriceTable, turn: Turn, counts: TokenCounts): unknown {
  const cost = computeTurnCost(prices, turn)
  if (cost === undefined) return null
  const { model } = turn.request.parsed
  const usage = turn.reply?.usage
  return {
    ...cost,
    isEstimated: usage === undefined,
    saved: computeSaving(prices, model, counts) ?? null,
    cacheDiscount: usage === undefined ? 0 : (computeCacheDiscount(prices, model, usage) ?? 0),
  }
}
