import type { IncomingHttpHeaders } from 'node:http'
import { formatKey, type Key } from '../../domain/key.ts'
import type { Answer } from '../backend.ts'
import type { Ask, Dialect, Heard as Reply, Sent } from '../dialects/dialect.ts'
import type { Home } from '../memories.ts'
import type { Receipt } from '../receipts.ts'
import type { Client } from '../relay.ts'
import { costOf, type PriceTable, savedBy } from '../watch/prices.ts'
import type { Traced } from '../watch/spans.ts'
import type { Turn } from '../watch/turn.ts'
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
  /** What went wrong before the turn was heard. */
  readonly degraded: readonly string[]
  readonly memoryMillis: number
  first: number | undefined
  reply: Reply | undefined
  answer: Answer | undefined
}

/** What did not go as it should. */
export const faultsOf = ({ degraded, heard: { shown } }: Course): readonly string[] => [
  ...(shown.degraded === undefined ? [] : [shown.degraded]),
  ...(shown.ledger?.degraded.map(({ step, why }) => `${step} ${why}`) ?? []),
  ...degraded,
]

/** A reply as it was kept. */
type Kept = { readonly reply: Reply; readonly sequence: number | null; readonly at: number }

/** What explains a reply afterwards. */
export function receiptOf(prices: PriceTable, request: Request, course: Course, { reply, sequence, at }: Kept): Receipt {
  const { shown, how } = course.heard
  const { usage } = reply
  const tokens = tokensOf(shown)
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
      ...tokens,
      cacheableShare: tokens.shown === 0 ? 0 : tokens.cacheable / tokens.shown,
      prompt: usage?.prompt ?? null,
      completion: usage?.completion ?? null,
      cached: usage?.cached ?? null,
    },
    cost: moneyOf(prices, request.ask.model, tokens, reply),
    degraded: faultsOf(course),
    ledger: shown.ledger ?? null,
  }
}

const tokensOf = ({ spent, ledger }: Shown): { shown: number; history: number; saved: number; cacheable: number } => {
  const history = ledger === undefined ? spent : spent - ledger.spent + ledger.history
  return { shown: spent, history: Math.max(history, spent), saved: Math.max(0, history - spent), cacheable: ledger?.cacheable.tokens ?? 0 }
}

/** By the upstream's count of tokens, or where it gives none by our own of what was shown. */
function moneyOf(prices: PriceTable, model: string, tokens: ReturnType<typeof tokensOf>, { usage }: Reply): unknown {
  const cost = costOf(prices, model, usage ?? { prompt: tokens.shown })
  return cost === undefined ? null : { ...cost, isEstimated: usage === undefined, spared: savedBy(prices, model, tokens) ?? null }
}

/** A turn as metrics and logs hear of it. */
export function turnOf(request: Request, course: Course): Turn {
  const { key, home, heard, answer, first, isOff } = course
  const stored = heard.epoch !== undefined
  return {
    ...outcomeOf(request, answer),
    // Off the record, nothing is counted for the session either.
    ...(isOff ? {} : { key: formatKey(key) }),
    scope: key.scope,
    profile: home.memory.profile.name,
    millis: { total: performance.now() - request.began, memory: course.memoryMillis, ...(first === undefined ? {} : { first }) },
    tokens: { ...tokensOf(heard.shown), ...usageOf(course.reply) },
    stored,
    appended: heard.appended + (stored && course.reply !== undefined ? 1 : 0),
    degraded: faultsOf(course),
  }
}

/** A request that memory took no part in, as metrics and logs hear of it. */
export const passedTurn = (request: Request, answer: Answer, first: number | undefined, reply: Reply | undefined): Turn => ({
  ...outcomeOf(request, answer),
  profile: 'none',
  millis: { total: performance.now() - request.began, memory: 0, ...(first === undefined ? {} : { first }) },
  tokens: { shown: 0, history: 0, saved: 0, cacheable: 0, ...usageOf(reply) },
  stored: false,
  appended: 0,
  degraded: [],
})

const outcomeOf = ({ dialect, ask, client }: Request, answer: Answer | undefined) => ({
  protocol: dialect.name,
  model: ask.model,
  upstream: answer?.from ?? '',
  status: answer?.status ?? 502,
  streamed: ask.streams,
  retries: answer?.retries ?? 0,
  passedOver: answer?.passedOver ?? [],
  aborted: client.signal.aborted,
})

const usageOf = (reply: Reply | undefined): Partial<Turn['tokens']> => reply?.usage ?? {}
