import type { IncomingHttpHeaders } from 'node:http'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Answer } from '../upstreams/backend.ts'
import type { Client } from '../http/client.ts'
import type { Ask, Dialect, Heard as Reply, Sent } from '../protocols/dialect.ts'
import type { Home } from '../memoryRegistry.ts'
import type { Receipt } from '../receipts/receipts.ts'
import { costOf, type PriceTable, savedBy } from '../observability/prices.ts'
import type { Traced } from '../observability/spans.ts'
import type { Turn } from '../observability/turn.ts'
import type { Heard } from './hear.ts'
import type { Shown } from './shown.ts'

/** One request for a reply. */
export type Request = {
  readonly id: string
  readonly dialect: Dialect
  readonly ask: Ask
  /** The session it belongs to; undefined for a request without memory. */
  readonly key: Key | undefined
  readonly headers: IncomingHttpHeaders
  readonly isGuarded: boolean
  /** Whether the session is known only by whom the body names: one person may have several conversations. */
  readonly isMapped: boolean
  readonly traced: Traced
  readonly client: Client
  readonly began: number
  /** Hears how it went, once it is over. */
  readonly onTurn: (turn: Turn) => void
}

/** What is known of a turn while it is under way. */
export type Course = {
  readonly home: Home
  readonly key: Key
  readonly heard: Heard
  readonly receipt: string
  /** A reply that the client has begun itself. */
  readonly begun: Sent | undefined
  readonly isOff: boolean
  /** What did not go as it should. */
  readonly faults: readonly string[]
  readonly memoryMillis: number
  first: number | undefined
  reply: Reply | undefined
  answer: Answer | undefined
}

/** What did not go as it should while the turn was heard, and before. */
export function faultsOf({ shown }: Heard, before: readonly string[]): readonly string[] {
  if (shown.degraded === undefined && (shown.ledger === undefined || shown.ledger.degraded.length === 0)) return before
  return [
    ...(shown.degraded === undefined ? [] : [shown.degraded]),
    ...(shown.ledger?.degraded.map(({ step, why }) => `${step} ${why}`) ?? []),
    ...before,
  ]
}

/** A reply as it was kept. */
type Kept = { readonly reply: Reply; readonly sequence: number | null; readonly at: number }

/** What explains a reply afterwards. */
export function receiptOf(
  prices: PriceTable,
  request: Request,
  course: Course,
  { reply, sequence, at }: Kept,
): Receipt {
  const { shown, how } = course.heard
  const { usage } = reply
  const tokens = tokensOf(shown)
  const { shown: spent, history, saved, cacheable } = tokens
  return {
    id: course.receipt,
    key: formatKey(course.key),
    at,
    request: request.id,
    response: reply.id ?? null,
    sequence,
    protocol: request.dialect.name,
    model: request.ask.model,
    upstream: course.answer?.from ?? '',
    how,
    tokens: {
      shown: spent,
      history,
      saved,
      cacheable,
      cacheableShare: spent === 0 ? 0 : cacheable / spent,
      prompt: usage?.prompt ?? null,
      completion: usage?.completion ?? null,
      cached: usage?.cached ?? null,
    },
    cost: moneyOf(prices, request.ask.model, tokens, reply),
    degraded: course.faults,
    ledger: shown.ledger ?? null,
  }
}

/** What was shown, and what the whole history would have been, by our own count. */
type Counted = Pick<Turn['tokens'], 'shown' | 'history' | 'saved' | 'cacheable'>

const tokensOf = ({ spent, ledger }: Shown): Counted => {
  const history = ledger === undefined ? spent : spent - ledger.spent + ledger.history
  return {
    shown: spent,
    history: Math.max(history, spent),
    saved: Math.max(0, history - spent),
    cacheable: ledger?.cacheable.tokens ?? 0,
  }
}

/** By the upstream's count of tokens, or where it gives none by our own of what was shown. */
function moneyOf(prices: PriceTable, model: string, tokens: Counted, { usage }: Reply): unknown {
  const cost = costOf(prices, model, usage ?? { prompt: tokens.shown })
  return cost === undefined
    ? null
    : { ...cost, isEstimated: usage === undefined, spared: savedBy(prices, model, tokens) ?? null }
}

/** A turn as metrics and logs hear of it. */
export function turnOf(request: Request, course: Course): Turn {
  const { key, home, heard, answer, first } = course
  const total = performance.now() - request.began
  const stored = heard.epoch !== undefined
  const turn = {
    key: formatKey(key),
    scope: key.scope,
    protocol: request.dialect.name,
    model: request.ask.model,
    upstream: answer?.from ?? '',
    profile: home.memory.profile.name,
    status: answer?.status ?? 502,
    streamed: request.ask.streams,
    millis:
      first === undefined ? { total, memory: course.memoryMillis } : { total, memory: course.memoryMillis, first },
    tokens: withUsage(tokensOf(heard.shown), course.reply),
    retries: answer?.retries ?? 0,
    aborted: request.client.signal.aborted,
    stored,
    appended: heard.appended + (stored && course.reply !== undefined ? 1 : 0),
    passedOver: answer?.passedOver ?? [],
    degraded: course.faults,
  }
  if (!course.isOff) return turn
  // Off the record, nothing is counted for the session either.
  const { key: _key, ...unnamed } = turn
  return unnamed
}

/** A request that memory took no part in, as metrics and logs hear of it. */
export const passedTurn = (
  { dialect, ask, client, began }: Request,
  answer: Answer,
  first: number | undefined,
  reply: Reply | undefined,
): Turn => ({
  protocol: dialect.name,
  model: ask.model,
  upstream: answer.from,
  profile: 'none',
  status: answer.status,
  streamed: ask.streams,
  millis: { total: performance.now() - began, memory: 0, ...(first === undefined ? {} : { first }) },
  tokens: withUsage({ shown: 0, history: 0, saved: 0, cacheable: 0 }, reply),
  retries: answer.retries,
  aborted: client.signal.aborted,
  stored: false,
  appended: 0,
  passedOver: answer.passedOver,
  degraded: [],
})

function withUsage(tokens: Counted, reply: Reply | undefined): Turn['tokens'] {
  if (reply?.usage === undefined) return tokens
  const { shown, history, saved, cacheable } = tokens
  const { prompt, completion, cached } = reply.usage
  return { shown, history, saved, cacheable, prompt, completion, cached }
}
