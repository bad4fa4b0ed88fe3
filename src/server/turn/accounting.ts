import { formatKey } from '../../domain/key.ts'
import { costOf, type PriceTable, savedBy } from '../observability/prices.ts'
import type { Turn as TurnRecord } from '../observability/turnRecord.ts'
import type { Usage } from '../protocols/protocol.ts'
import type { Receipt } from '../receipts.ts'
import type { Answer } from '../upstreams/backend.ts'
import type { OutgoingPrompt } from './outgoingPrompt.ts'
import type { Turn, TurnRequest } from './turn.ts'

/** Token counts by our own tokenizer. */
type TokenCounts = Pick<TurnRecord['tokens'], 'shown' | 'history' | 'saved' | 'cacheable'>

const noTokens: TokenCounts = { shown: 0, history: 0, saved: 0, cacheable: 0 }

/** Builds the receipt of a turn: ids and numbers that explain its reply. */
export function buildReceipt(
  prices: PriceTable,
  turn: Turn,
  stored: { readonly sequence: number; readonly at: number },
): Receipt {
  const { request, prompt, reply } = turn
  const counts = countTokens(prompt)
  const usage = reply?.usage
  return {
    id: turn.receiptId,
    key: formatKey(turn.key),
    at: stored.at,
    request: request.context.id,
    response: reply?.id ?? null,
    sequence: stored.sequence,
    protocol: request.dialect.name,
    model: request.ask.model,
    upstream: turn.answer?.from ?? '',
    how: turn.relation,
    tokens: {
      ...counts,
      cacheableShare: counts.shown === 0 ? 0 : counts.cacheable / counts.shown,
      prompt: usage?.prompt ?? null,
      completion: usage?.completion ?? null,
      cached: usage?.cached ?? null,
    },
    cost: computeCost(prices, request.ask.model, counts, usage),
    degraded: turn.degraded,
    ledger: prompt.ledger ?? null,
  }
}

/** Builds the record of a turn for metrics, logs and traces. */
export function buildTurnRecord(turn: Turn): TurnRecord {
  const { request, key, memory, answer } = turn
  const isStored = turn.epoch !== undefined
  const record: TurnRecord = {
    ...requestFields(request, answer, turn.firstByteMs),
    key: formatKey(key),
    scope: key.scope,
    profile: memory.memory.profile.name,
    status: answer?.status ?? 502,
    tokens: withUsage(countTokens(turn.prompt), turn.reply?.usage),
    stored: isStored,
    appended: turn.appended + (isStored && turn.reply !== undefined ? 1 : 0),
    degraded: turn.degraded,
  }
  const withTimes: TurnRecord = { ...record, millis: { ...record.millis, memory: turn.memoryMs } }
  if (!request.storeDisabled) return withTimes
  // With storage disabled, nothing is counted for the session either.
  const { key: _key, ...anonymous } = withTimes
  return anonymous
}

/** Builds the record of a request that was relayed without memory. */
export const buildRelayRecord = (
  request: TurnRequest,
  answer: Answer,
  firstByteMs: number | undefined,
  usage: Usage | undefined,
): TurnRecord => ({
  ...requestFields(request, answer, firstByteMs),
  profile: 'none',
  status: answer.status,
  tokens: withUsage(noTokens, usage),
  stored: false,
  appended: 0,
  degraded: [],
})

type RequestFields = Pick<
  TurnRecord,
  'protocol' | 'model' | 'upstream' | 'streamed' | 'millis' | 'retries' | 'aborted' | 'passedOver'
>

function requestFields(
  { context, dialect, ask }: TurnRequest,
  answer: Answer | undefined,
  firstByteMs?: number,
): RequestFields {
  const total = performance.now() - context.began
  return {
    protocol: dialect.name,
    model: ask.model,
    upstream: answer?.from ?? '',
    streamed: ask.streams,
    millis: { total, memory: 0, ...(firstByteMs !== undefined && { first: firstByteMs }) },
    retries: answer?.retries ?? 0,
    aborted: context.client.signal.aborted,
    passedOver: answer?.passedOver ?? [],
  }
}

function countTokens({ tokens, ledger }: OutgoingPrompt): TokenCounts {
  const history = ledger === undefined ? tokens : tokens - ledger.spent + ledger.history
  return {
    shown: tokens,
    history: Math.max(history, tokens),
    saved: Math.max(0, history - tokens),
    cacheable: ledger?.cacheable.tokens ?? 0,
  }
}

function withUsage(counts: TokenCounts, usage: Usage | undefined): TurnRecord['tokens'] {
  if (usage === undefined) return counts
  const { prompt, completion, cached } = usage
  return { ...counts, prompt, completion, cached }
}

/** Cost by the upstream's token counts; estimated from our own where the upstream reports none. */
function computeCost(prices: PriceTable, model: string, counts: TokenCounts, usage: Usage | undefined): unknown {
  const cost = costOf(prices, model, usage ?? { prompt: counts.shown })
  if (cost === undefined) return null
  return { ...cost, isEstimated: usage === undefined, saved: savedBy(prices, model, counts) ?? null }
}
