import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { scopeName } from './log.ts'
import { isAnswered, type TurnRecord, type UpkeepCallRecord } from './usageStats.ts'

/** Values that are read when metrics are requested. */
export type GaugeValues = {
  /** Live sessions, and the bytes they use in RAM. */
  readonly sessions: number
  readonly ramBytes: number
  /** Limit of `ramBytes`; undefined if there is none. */
  readonly maxRamBytes: number | undefined
  /** End-of-session events that are still to be delivered. */
  readonly pendingDeliveries: number
  /** Upkeep tasks done since the start, and those that are degraded now. */
  readonly upkeep: { readonly done: number; readonly degraded: number }
}

export type MetricsOptions = {
  readonly readGauges: () => GaugeValues | Promise<GaugeValues>
  /** Includes Node's process metrics (CPU, heap, event loop); default true. */
  readonly process?: boolean | undefined
}

/** Reason of a session's end, outcome of a webhook delivery, and kind of a limit. */
export type EndReason = 'expired' | 'evicted' | 'ended'
export type DeliveryOutcome = 'delivered' | 'failed'
export type LimitKind = 'rate' | 'concurrency'

/** Counts of turns with the same labels that are not yet in the counters. */
type PendingCounts = {
  readonly protocol: string
  readonly status: string
  readonly upstream: string
  readonly profile: string
  readonly scope: string
  requests: number
  appended: number
  readonly billed: Record<'prompt' | 'completion' | 'cached', number>
  dollars: number
  turns: number
  readonly context: Record<ContextKind, number>
}

const requestBucketsSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const memoryBucketsSeconds = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

const billedKinds = ['prompt', 'completion', 'cached'] as const
/** `saved` sums the turns with fewer tokens than their history, `added` those with more: counters never decrease. */
const contextKinds = ['shown', 'history', 'saved', 'added', 'cacheable'] as const
type ContextKind = (typeof contextKinds)[number]

/** Prometheus metrics of one server. Labels have few, bounded values; none names a session. */
export class Metrics {
  private readonly registry = new Registry()
  private readonly labels = {
    scope: new BoundedLabel(200),
    upstream: new BoundedLabel(50),
    profile: new BoundedLabel(50),
    reason: new BoundedLabel(50),
  }
  private readonly requests = this.counter('requests_total', 'Model requests', [
    'protocol',
    'status',
    'upstream',
    'profile',
  ])
  private readonly turns = this.counter('turns_total', 'Answered turns with memory', ['profile', 'scope'])
  private readonly contextTokens = this.counter(
    'context_tokens_total',
    'Tokens by our own count: sent, of the whole history, saved against it, added to it, and cacheable',
    ['kind', 'profile', 'scope'],
  )
  private readonly upstreamTokens = this.counter('upstream_tokens_total', 'Tokens as reported by upstreams', [
    'kind',
    'upstream',
  ])
  private readonly upkeepCalls = this.counter('upkeep_calls_total', 'Calls of the upkeep model', ['upstream'])
  private readonly upkeepTokens = this.counter('upkeep_tokens_total', 'Tokens of upkeep model calls', [
    'kind',
    'upstream',
  ])
  private readonly costs = this.counter('cost_dollars_total', 'Cost of model calls in US dollars by the price table', [
    'purpose',
    'upstream',
  ])
  private readonly appends = this.counter('messages_appended_total', 'Messages stored', ['profile'])
  private readonly endings = this.counter('sessions_ended_total', 'Sessions that ended', ['reason'])
  private readonly deliveries = this.counter('webhook_deliveries_total', 'Attempts to deliver a session end', [
    'outcome',
  ])
  private readonly degradations = this.counter('degraded_total', 'Operations that fell back', ['reason'])
  private readonly retries = this.counter('upstream_retries_total', 'Retried upstream requests', ['upstream'])
  private readonly fallbacks = this.counter('upstream_fallbacks_total', 'Requests that moved to another upstream', [
    'from',
    'to',
  ])
  private readonly aborts = this.counter('aborted_total', 'Requests aborted by the client', ['protocol'])
  private readonly limits = this.counter('limited_total', 'Requests refused by a limit', ['limit'])
  private readonly requestSeconds = this.histogram(
    'request_seconds',
    'Time from a request to the end of its reply',
    ['protocol', 'upstream'],
    requestBucketsSeconds,
  )
  private readonly firstByteSeconds = this.histogram(
    'first_byte_seconds',
    'Time from a request to the first byte of its reply',
    ['protocol', 'upstream'],
    requestBucketsSeconds,
  )
  private readonly memorySeconds = this.histogram(
    'memory_seconds',
    'Time a request spent in memory',
    ['profile'],
    memoryBucketsSeconds,
  )
  private readonly upkeepDone = this.counter('upkeep_done_total', 'Upkeep tasks done', [])
  private readonly gauges = {
    sessions: this.gauge('sessions_live', 'Live sessions'),
    bytes: this.gauge('ram_bytes', 'Bytes used by sessions in RAM'),
    maxBytes: this.gauge('ram_limit_bytes', 'Bytes that sessions in RAM may use'),
    waiting: this.gauge('outbox_waiting', 'Session ends that wait for delivery'),
    degraded: this.gauge('upkeep_degraded', 'Upkeep tasks that are degraded now'),
  }
  private readonly pending = new Map<string, PendingCounts>()
  private readonly options: MetricsOptions

  constructor(options: MetricsOptions) {
    this.options = options
  }

  /** Counts a finished model request. */
  recordTurn(turn: TurnRecord): void {
    const { protocol, tokens, durationMs } = turn
    const isTurn = turn.key !== undefined && isAnswered(turn)
    const pending = this.pendingFor(turn, isTurn)
    const { upstream, profile } = pending
    pending.requests++
    pending.appended += turn.appendedMessages
    pending.billed.prompt += tokens.prompt ?? 0
    pending.billed.completion += tokens.completion ?? 0
    pending.billed.cached += tokens.cached ?? 0
    pending.dollars += turn.dollars ?? 0
    if (isTurn) {
      pending.turns++
      pending.context.shown += tokens.shown
      pending.context.history += tokens.history
      pending.context.saved += Math.max(0, tokens.saved)
      pending.context.added += Math.max(0, -tokens.saved)
      pending.context.cacheable += tokens.cacheable
    }
    this.requestSeconds.observe({ protocol, upstream }, durationMs.total / 1_000)
    this.memorySeconds.observe({ profile }, durationMs.memory / 1_000)
    if (durationMs.firstByte !== undefined)
      this.firstByteSeconds.observe({ protocol, upstream }, durationMs.firstByte / 1_000)
    if (turn.retries > 0) this.retries.inc({ upstream }, turn.retries)
    if (turn.isAborted) this.aborts.inc({ protocol })
    for (const from of turn.failedUpstreams)
      this.fallbacks.inc({ from: this.labels.upstream.bound(from), to: upstream })
    for (const { code } of turn.degraded) this.degradations.inc({ reason: this.labels.reason.bound(code) })
  }

  /** Counts a call of the upkeep model. */
  recordUpkeepCall({ upstream: name, tokens, dollars }: UpkeepCallRecord): void {
    const upstream = this.labels.upstream.bound(name)
    this.upkeepCalls.inc({ upstream })
    for (const kind of billedKinds) this.upkeepTokens.inc({ kind, upstream }, tokens[kind])
    this.costs.inc({ purpose: 'upkeep', upstream }, dollars)
  }

  recordSessionEnd(reason: EndReason): void {
    this.endings.inc({ reason })
  }

  recordDelivery(outcome: DeliveryOutcome): void {
    this.deliveries.inc({ outcome })
  }

  recordRefusal(limit: LimitKind): void {
    this.limits.inc({ limit })
  }

  /** Content type of `text`. */
  get contentType(): string {
    return this.registry.contentType
  }

  /** All metrics in Prometheus' text format, as `GET /metrics` returns them. Values that cannot be read are NaN. */
  async text(): Promise<string> {
    const { sessions, ramBytes, maxRamBytes, pendingDeliveries, upkeep } = await this.read()
    this.flushPending()
    this.gauges.sessions.set(sessions)
    this.gauges.bytes.set(ramBytes)
    this.gauges.maxBytes.set(maxRamBytes ?? Number.POSITIVE_INFINITY)
    this.gauges.waiting.set(pendingDeliveries)
    this.gauges.degraded.set(upkeep.degraded)
    this.upkeepDone.reset()
    this.upkeepDone.inc(upkeep.done)
    const text = await this.registry.metrics()
    return this.options.process === false ? text : `${text}\n${await getProcessRegistry().metrics()}`
  }

  private async read(): Promise<GaugeValues> {
    try {
      return await this.options.readGauges()
    } catch {
      return {
        sessions: Number.NaN,
        ramBytes: Number.NaN,
        maxRamBytes: Number.NaN,
        pendingDeliveries: Number.NaN,
        upkeep: { done: 0, degraded: Number.NaN },
      }
    }
  }

  /** The pending counts with the labels of a turn. Only answered turns with memory are counted by scope. */
  private pendingFor(turn: TurnRecord, isTurn: boolean): PendingCounts {
    const { protocol } = turn
    const upstream = this.labels.upstream.bound(turn.upstream)
    const profile = this.labels.profile.bound(turn.profile)
    const scope = isTurn ? this.labels.scope.bound(scopeName(turn.scope ?? '')) : ''
    const status = `${Math.floor(turn.status / 100)}xx`
    const name = `${protocol}\n${status}\n${upstream}\n${profile}\n${scope}`
    let pending = this.pending.get(name)
    if (pending === undefined) {
      pending = {
        ...{ protocol, status, upstream, profile, scope },
        requests: 0,
        appended: 0,
        billed: { prompt: 0, completion: 0, cached: 0 },
        dollars: 0,
        turns: 0,
        context: { shown: 0, history: 0, saved: 0, added: 0, cacheable: 0 },
      }
      this.pending.set(name, pending)
    }
    return pending
  }

  /** Adds pending counts to the counters. Incrementing the nine counters for each turn would cost 4.5 µs. */
  private flushPending(): void {
    for (const { protocol, status, upstream, profile, scope, ...counts } of this.pending.values()) {
      this.requests.inc({ protocol, status, upstream, profile }, counts.requests)
      if (counts.appended > 0) this.appends.inc({ profile }, counts.appended)
      for (const kind of billedKinds) this.upstreamTokens.inc({ kind, upstream }, counts.billed[kind])
      if (counts.dollars > 0) this.costs.inc({ purpose: 'turn', upstream }, counts.dollars)
      if (counts.turns === 0) continue
      this.turns.inc({ profile, scope }, counts.turns)
      for (const kind of contextKinds) this.contextTokens.inc({ kind, profile, scope }, counts.context[kind])
    }
    this.pending.clear()
  }

  private counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ name: `threadkeep_${name}`, help, labelNames, registers: [this.registry] })
  }

  private gauge(name: string, help: string): Gauge {
    return new Gauge({ name: `threadkeep_${name}`, help, registers: [this.registry] })
  }

  private histogram<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    buckets: number[],
  ): Histogram<L> {
    return new Histogram({ name: `threadkeep_${name}`, help, labelNames, buckets, registers: [this.registry] })
  }
}

/** Limits a label that comes from outside to its first `maxValues` values; later ones become `other`. */
class BoundedLabel {
  private readonly maxValues: number
  private readonly values = new Set<string>()

  constructor(maxValues: number) {
    this.maxValues = maxValues
  }

  bound(value: string): string {
    if (this.values.has(value)) return value
    if (this.values.size >= this.maxValues) return 'other'
    this.values.add(value)
    return value
  }
}

let processRegistry: Registry | undefined

/** Node's process metrics, shared by all servers of the process and started on first use: they cannot be stopped. */
function getProcessRegistry(): Registry {
  if (processRegistry === undefined) {
    processRegistry = new Registry()
    collectDefaultMetrics({ register: processRegistry })
  }
  return processRegistry
}
