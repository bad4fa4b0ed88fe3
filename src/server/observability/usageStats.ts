import type { Millis, Tokens } from '../../domain/entry.ts'
import { isInScope } from '../../domain/key.ts'
import { getOrCompute } from '../../domain/keyed.ts'
import type { DegradationNotice } from '../../domain/ledger.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { ModelUsage } from '../../domain/ports.ts'
import { roundDollars } from './prices.ts'

/** Protocol of a request: OpenAI's chat completions or responses, or Anthropic's messages. */
export type ProtocolName = 'chat' | 'responses' | 'messages'

/**
 * The ids and numbers of one model request. Metrics, logs and traces are built from this alone, never from message
 * text.
 */
export type TurnRecord = {
  /** The session; undefined when the request was relayed without memory. */
  readonly key?: string
  readonly scope?: string
  readonly protocol: ProtocolName
  /** As the client sent it: any text. See `modelName`. */
  readonly model: string
  readonly upstream: string
  readonly profile: string
  readonly status: number
  readonly isStreaming: boolean
  /** Durations: the whole request, the part spent in memory, and the time to the first byte of the reply. */
  readonly durationMs: { readonly total: Millis; readonly memory: Millis; readonly firstByte?: Millis }
  /** Our own counts (prompt sent, full history, their difference, repeated prefix), then those the upstream reports. */
  readonly tokens: {
    readonly shown: Tokens
    readonly history: Tokens
    readonly saved: Tokens
    readonly cacheable: Tokens
    readonly prompt?: Tokens
    readonly completion?: Tokens
    readonly cached?: Tokens
  }
  /** Cost in US dollars by the price table; undefined for a model without a price. */
  readonly dollars?: number | undefined
  readonly retries: number
  readonly isAborted: boolean
  readonly isStored: boolean
  /** Number of messages stored. */
  readonly appendedMessages: number
  /** Upstreams that failed before the one that replied. */
  readonly failedUpstreams: readonly string[]
  readonly degraded: readonly DegradationNotice[]
}

/** A call of the upkeep model, with the counts that its upstream reports or an estimate of them. */
export type UpkeepCallRecord = {
  readonly key: string
  readonly scope: string
  readonly upstream: string
  readonly tokens: ModelUsage
  readonly dollars: number
}

/** True when the client received a reply. */
export const isAnswered = ({ status, isAborted }: TurnRecord): boolean => status < 400 && !isAborted

/** Sums over the turns of a session or a tenant. A turn without a reply counts as failed only. */
export type UsageTotals = {
  turns: number
  failed: number
  shown: Tokens
  history: Tokens
  saved: Tokens
  cacheable: Tokens
  /** As reported by the upstreams; turns without a report add nothing. */
  prompt: Tokens
  completion: Tokens
  cached: Tokens
  readonly millis: { total: Millis; memory: Millis }
  /** Cost of the turns in US dollars, for models with a price. */
  dollars: number
  readonly upkeep: { calls: number; prompt: Tokens; completion: Tokens; cached: Tokens; dollars: number }
}

/** Usage as the JSON API returns it; null where there is nothing to divide by. */
export type UsageReport = {
  readonly turns: number
  readonly failed: number
  readonly tokens: Pick<UsageTotals, 'shown' | 'history' | 'saved' | 'cacheable' | 'prompt' | 'completion' | 'cached'>
  /** Mean duration of a turn and of its memory part, in milliseconds. */
  readonly latency: { readonly mean: Millis; readonly memory: Millis } | null
  /** Tokens sent divided by the tokens of the full history. */
  readonly compression: number | null
  /** Share of the sent tokens that repeat the previous prompt, and of the prompt tokens that upstreams had cached. */
  readonly cache: { readonly cacheable: number | null; readonly cached: number | null }
  /** Calls of the upkeep model. */
  readonly upkeep: { readonly calls: number } & ModelUsage
  /** Cost by the price table; models without a price add nothing. */
  readonly cost: {
    readonly turns: number
    readonly upkeep: number
    readonly total: number
    readonly currency: 'USD'
  }
}

export const createTotals = (): UsageTotals => ({
  turns: 0,
  failed: 0,
  shown: 0,
  history: 0,
  saved: 0,
  cacheable: 0,
  prompt: 0,
  completion: 0,
  cached: 0,
  millis: { total: 0, memory: 0 },
  dollars: 0,
  upkeep: { calls: 0, prompt: 0, completion: 0, cached: 0, dollars: 0 },
})

/** Adds a turn to totals. */
export function addTurn(totals: UsageTotals, turn: TurnRecord): void {
  if (!isAnswered(turn)) {
    totals.failed++
    return
  }
  const { tokens, durationMs } = turn
  totals.turns++
  totals.shown += tokens.shown
  totals.history += tokens.history
  totals.saved += tokens.saved
  totals.cacheable += tokens.cacheable
  totals.prompt += tokens.prompt ?? 0
  totals.completion += tokens.completion ?? 0
  totals.cached += tokens.cached ?? 0
  totals.millis.total += durationMs.total
  totals.millis.memory += durationMs.memory
  totals.dollars += turn.dollars ?? 0
}

function addUpkeepCall({ upkeep }: UsageTotals, { tokens, dollars }: UpkeepCallRecord): void {
  upkeep.calls++
  upkeep.prompt += tokens.prompt
  upkeep.completion += tokens.completion
  upkeep.cached += tokens.cached
  upkeep.dollars += dollars
}

export function reportUsage({
  turns,
  failed,
  millis,
  dollars,
  upkeep: { dollars: upkeepDollars, ...upkeep },
  ...tokens
}: Readonly<UsageTotals>): UsageReport {
  return {
    turns,
    failed,
    tokens,
    latency: turns === 0 ? null : { mean: millis.total / turns, memory: millis.memory / turns },
    compression: ratio(tokens.shown, tokens.history),
    cache: { cacheable: ratio(tokens.cacheable, tokens.shown), cached: ratio(tokens.cached, tokens.prompt) },
    upkeep,
    cost: {
      turns: roundDollars(dollars),
      upkeep: roundDollars(upkeepDollars),
      total: roundDollars(dollars + upkeepDollars),
      currency: 'USD',
    },
  }
}

const ratio = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole)

/**
 * Usage of sessions and tenants, in RAM, for the most recently used of each. A tenant has totals of its own, so they do
 * not shrink when one of its sessions is dropped.
 */
export class UsageStats {
  private readonly sessions: LruCache<string, UsageTotals>
  private readonly scopes: LruCache<string, UsageTotals>

  constructor(maxEntries = 10_000) {
    this.sessions = new LruCache({ maxEntries })
    this.scopes = new LruCache({ maxEntries })
  }

  recordTurn(turn: TurnRecord): void {
    if (turn.key !== undefined) addTurn(getOrCompute(this.sessions, turn.key, createTotals), turn)
    if (turn.scope !== undefined) addTurn(getOrCompute(this.scopes, turn.scope, createTotals), turn)
  }

  recordUpkeepCall(call: UpkeepCallRecord): void {
    addUpkeepCall(getOrCompute(this.sessions, call.key, createTotals), call)
    addUpkeepCall(getOrCompute(this.scopes, call.scope, createTotals), call)
  }

  session(key: string): UsageReport {
    return reportUsage(this.sessions.peek(key) ?? createTotals())
  }

  scope(scope: string): UsageReport {
    return reportUsage(this.scopes.peek(scope) ?? createTotals())
  }

  /** Deletes the usage of a session, or of a tenant with all its sessions: an id may be a person's name. */
  forget(target: { readonly key: string } | { readonly scope: string }): void {
    if ('key' in target) this.sessions.delete(target.key)
    else {
      this.scopes.delete(target.scope)
      this.sessions.deleteWhere((key) => isInScope(key, target.scope))
    }
  }
}
