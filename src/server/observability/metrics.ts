import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client'
import { Histogram, type Series } from './histogram.ts'
import { Label } from './label.ts'
import { isAnswered, type Turn } from './turn.ts'

/** What is read off when somebody asks, rather than counted. */
export type Readings = {
  /** Sessions that are kept, and the bytes they take in RAM. */
  readonly sessions: number
  readonly bytes: number
  /** Ends of sessions that are still to be delivered. */
  readonly waiting: number
  /** Pieces of upkeep done since the start, and those that are now degraded. */
  readonly upkeep: { readonly done: number; readonly degraded: number }
}

export type MetricsOptions = {
  readonly read: () => Readings | Promise<Readings>
  /** Also what Node tells of its process: CPU, heap, event loop; on when left out. */
  readonly process?: boolean | undefined
}

/** Why a session ended, whether its end was delivered, and why a request was turned away. */
export type Ending = 'expired' | 'evicted' | 'ended'
export type Delivery = 'delivered' | 'failed'
export type Limit = 'rate' | 'concurrency'

/** What was counted of turns with the same labels, and is still to be handed to the counters. */
type Sums = {
  readonly labels: {
    readonly protocol: string
    readonly status: string
    readonly upstream: string
    readonly profile: string
    readonly scope: string
  }
  readonly duration: Series
  readonly own: Series
  /** Only of turns of which something reached the client. */
  first: Series | undefined
  requests: number
  appended: number
  readonly billed: Record<'prompt' | 'completion' | 'cached', number>
  turns: number
  readonly shown: Record<'shown' | 'saved' | 'cacheable', number>
}

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]
const memorySeconds = [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1]

const billedKinds = ['prompt', 'completion', 'cached'] as const
const shownKinds = ['shown', 'saved', 'cacheable'] as const

/** What the server has done, in the form Prometheus reads. Labels are few and bounded; none of them names a session. */
export class Metrics {
  private readonly registry = new Registry()
  private readonly labels = {
    scope: new Label(200),
    upstream: new Label(50),
    profile: new Label(50),
    reason: new Label(50),
  }
  private readonly requests = this.counter('requests_total', 'Requests for a reply', [
    'protocol',
    'status',
    'upstream',
    'profile',
  ])
  private readonly turns = this.counter('turns_total', 'Turns of conversations that memory took part in', [
    'profile',
    'scope',
  ])
  private readonly tokens = this.counter('context_tokens_total', 'Tokens shown to models, saved and cacheable', [
    'kind',
    'profile',
    'scope',
  ])
  private readonly billed = this.counter('upstream_tokens_total', 'Tokens as upstreams report them', [
    'kind',
    'upstream',
  ])
  private readonly appends = this.counter('messages_appended_total', 'Messages stored', ['profile'])
  private readonly endings = this.counter('sessions_ended_total', 'Sessions that ended', ['reason'])
  private readonly deliveries = this.counter('webhook_deliveries_total', 'Attempts to deliver the end of a session', [
    'outcome',
  ])
  private readonly degradations = this.counter('degraded_total', 'What was done otherwise than it should be', [
    'reason',
  ])
  private readonly retries = this.counter(
    'upstream_retries_total',
    'Requests that were sent to an upstream once more',
    ['upstream'],
  )
  private readonly fallbacks = this.counter('upstream_fallbacks_total', 'Requests that went to another upstream', [
    'from',
    'to',
  ])
  private readonly aborts = this.counter('aborted_total', 'Requests whose client hung up', ['protocol'])
  private readonly limits = this.counter('limited_total', 'Requests turned away by a limit', ['limit'])
  private readonly duration = new Histogram(
    'threadkeep_request_seconds',
    'From a request to the end of its reply',
    seconds,
  )
  private readonly first = new Histogram(
    'threadkeep_first_byte_seconds',
    'From a request to the first byte of its reply',
    seconds,
  )
  private readonly own = new Histogram(
    'threadkeep_memory_seconds',
    'What memory itself took of a request',
    memorySeconds,
  )
  private readonly readOff = new Registry()
  private readonly done = this.counter('upkeep_done_total', 'Pieces of upkeep done', [], this.readOff)
  private readonly gauges = {
    sessions: this.gauge('sessions_live', 'Sessions that are kept'),
    bytes: this.gauge('ram_bytes', 'Bytes that sessions take in RAM'),
    waiting: this.gauge('outbox_waiting', 'Ends of sessions still to be delivered'),
    degraded: this.gauge('upkeep_degraded', 'Pieces of upkeep that are degraded now'),
  }
  /** By scope: in each of them there are few kinds of turns. */
  private readonly sums = new Map<string, Sums[]>()
  private readonly options: MetricsOptions

  constructor(options: MetricsOptions) {
    this.options = options
  }

  /** Counts a request that is over, however it ended. */
  turn(turn: Turn): void {
    const { protocol, tokens, millis } = turn
    const isTurn = turn.key !== undefined && isAnswered(turn)
    const sums = this.sumsOf(turn, isTurn)
    const { upstream } = sums.labels
    sums.requests++
    sums.appended += turn.appended
    sums.billed.prompt += tokens.prompt ?? 0
    sums.billed.completion += tokens.completion ?? 0
    sums.billed.cached += tokens.cached ?? 0
    if (isTurn) {
      sums.turns++
      sums.shown.shown += tokens.shown
      sums.shown.saved += tokens.saved
      sums.shown.cacheable += tokens.cacheable
    }
    sums.duration.observe(millis.total / 1_000)
    sums.own.observe(millis.memory / 1_000)
    if (millis.first !== undefined) {
      sums.first ??= this.first.of({ protocol, upstream })
      sums.first.observe(millis.first / 1_000)
    }
    if (turn.retries > 0) this.retries.inc({ upstream }, turn.retries)
    if (turn.aborted) this.aborts.inc({ protocol })
    for (const from of turn.passedOver) this.fallbacks.inc({ from: this.labels.upstream.of(from), to: upstream })
    for (const reason of turn.degraded) this.degradations.inc({ reason: this.labels.reason.of(reason) })
  }

  /** The sums of turns like this one; only of those that memory took part in, the scope is told. */
  private sumsOf(turn: Turn, isTurn: boolean): Sums {
    const { protocol } = turn
    const upstream = this.labels.upstream.of(turn.upstream)
    const profile = this.labels.profile.of(turn.profile)
    const scope = isTurn ? this.labels.scope.of(turn.scope ?? '') : ''
    const status = `${Math.floor(turn.status / 100)}xx`
    const all = this.sums.get(scope) ?? []
    for (const known of all) {
      const { labels } = known
      if (
        labels.protocol === protocol &&
        labels.status === status &&
        labels.upstream === upstream &&
        labels.profile === profile
      )
        return known
    }
    const none: Sums = {
      labels: { protocol, status, upstream, profile, scope },
      duration: this.duration.of({ protocol, upstream }),
      own: this.own.of({ profile }),
      first: undefined,
      requests: 0,
      appended: 0,
      billed: { prompt: 0, completion: 0, cached: 0 },
      turns: 0,
      shown: { shown: 0, saved: 0, cacheable: 0 },
    }
    this.sums.set(scope, all)
    all.push(none)
    return none
  }

  /** Hands to the counters what was counted since somebody last read them: each of them takes longer over its labels than a turn may. */
  private settle(): void {
    for (const { labels, requests, appended, billed, turns, shown } of [...this.sums.values()].flat()) {
      const { protocol, status, upstream, profile, scope } = labels
      this.requests.inc({ protocol, status, upstream, profile }, requests)
      if (appended > 0) this.appends.inc({ profile }, appended)
      for (const kind of billedKinds) this.billed.inc({ kind, upstream }, billed[kind])
      if (turns > 0) this.turns.inc({ profile, scope }, turns)
      if (turns > 0) for (const kind of shownKinds) this.tokens.inc({ kind, profile, scope }, shown[kind])
    }
    this.sums.clear()
  }

  ended(reason: Ending): void {
    this.endings.inc({ reason })
  }

  delivered(outcome: Delivery): void {
    this.deliveries.inc({ outcome })
  }

  limited(limit: Limit): void {
    this.limits.inc({ limit })
  }

  /** The type `text` is served with. */
  get type(): string {
    return this.registry.contentType
  }

  /** Everything, as `GET /metrics` answers. What cannot be read is not a number, and the rest is told all the same. */
  async text(): Promise<string> {
    const { sessions, bytes, waiting, upkeep } = await this.readings()
    this.settle()
    this.gauges.sessions.set(sessions)
    this.gauges.bytes.set(bytes)
    this.gauges.waiting.set(waiting)
    this.gauges.degraded.set(upkeep.degraded)
    this.done.reset()
    this.done.inc(upkeep.done)
    const parts = [
      await this.registry.metrics(),
      this.duration.text(),
      this.first.text(),
      this.own.text(),
      await this.readOff.metrics(),
    ]
    if (this.options.process !== false) parts.push(await processRegistry().metrics())
    return parts.join('\n')
  }

  private async readings(): Promise<Readings> {
    try {
      return await this.options.read()
    } catch {
      return { sessions: Number.NaN, bytes: Number.NaN, waiting: Number.NaN, upkeep: { done: 0, degraded: Number.NaN } }
    }
  }

  private counter<L extends string>(
    name: string,
    help: string,
    labelNames: readonly L[],
    registry = this.registry,
  ): Counter<L> {
    return new Counter({ name: `threadkeep_${name}`, help, labelNames, registers: [registry] })
  }

  private gauge(name: string, help: string): Gauge {
    return new Gauge({ name: `threadkeep_${name}`, help, registers: [this.readOff] })
  }
}

let ofProcess: Registry | undefined

/** A process is observed once, however many servers it has, and from the first time that somebody asks: it cannot be stopped again. */
function processRegistry(): Registry {
  if (ofProcess === undefined) {
    ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess })
  }
  return ofProcess
}
