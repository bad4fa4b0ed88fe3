import type { Millis, Tokens } from '../../domain/entry.ts'
import { getOrCompute } from '../../domain/keyed.ts'
import { LruCache } from '../../domain/lruCache.ts'
import { isAnswered, type TurnRecord } from './usageStats.ts'

/** Sums over the turns of one interval. */
export type UsagePoint = {
  /** Start of the interval. */
  readonly at: Millis
  turns: number
  failed: number
  shown: Tokens
  saved: Tokens
  cached: Tokens
  completion: Tokens
  /** Sums of durations; divided by `turns` they are means. */
  readonly millis: { total: Millis; memory: Millis }
  dollars: number
}

/** Length of an interval, and the number of intervals that are kept: six hours by minutes. */
export const usageIntervalMs: Millis = 60_000
const maxPoints = 360
const maxScopes = 1_000

/** Points of one tenant or of all, by number of the interval, oldest first. */
type Points = Map<number, UsagePoint>

/** Usage over the last hours, in RAM: of the whole server, and of the most recently used tenants. */
export class UsageSeries {
  private readonly all: Points = new Map()
  private readonly scopes = new LruCache<string, Points>({ maxEntries: maxScopes })

  recordTurn(turn: TurnRecord, at: Millis): void {
    addToPoints(this.all, turn, at)
    if (turn.scope !== undefined)
      addToPoints(
        getOrCompute(this.scopes, turn.scope, () => new Map()),
        turn,
        at,
      )
  }

  /** Points with turns, oldest first; of all tenants without a scope. */
  read(scope: string | undefined, now: Millis): readonly UsagePoint[] {
    const points = scope === undefined ? this.all : this.scopes.peek(scope)
    if (points === undefined) return []
    dropOld(points, intervalOf(now))
    return [...points.values()]
  }

  /** Deletes the points of a tenant. */
  forget(scope: string): void {
    this.scopes.delete(scope)
  }
}

const intervalOf = (at: Millis): number => Math.floor(at / usageIntervalMs)

function addToPoints(points: Points, turn: TurnRecord, at: Millis): void {
  const interval = intervalOf(at)
  dropOld(points, interval)
  const point = getOrCompute(points, interval, () => createPoint(interval))
  if (!isAnswered(turn)) {
    point.failed++
    return
  }
  const { tokens, durationMs, dollars = 0 } = turn
  point.turns++
  point.shown += tokens.shown
  point.saved += tokens.saved
  point.cached += tokens.cached ?? 0
  point.completion += tokens.completion ?? 0
  point.millis.total += durationMs.total
  point.millis.memory += durationMs.memory
  point.dollars += dollars
}

function dropOld(points: Points, interval: number): void {
  for (const known of points.keys()) {
    if (known > interval - maxPoints) return
    points.delete(known)
  }
}

const createPoint = (interval: number): UsagePoint => ({
  at: interval * usageIntervalMs,
  turns: 0,
  failed: 0,
  shown: 0,
  saved: 0,
  cached: 0,
  completion: 0,
  millis: { total: 0, memory: 0 },
  dollars: 0,
})
