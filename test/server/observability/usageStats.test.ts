import { describe, expect, it } from 'vitest'
import {
  addTurn,
  createTotals,
  reportUsage,
  type TurnRecord,
  UsageStats,
  type UsageTotals,
} from '../../../src/server/observability/usageStats.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTurnRecord } from './turnRecord.ts'

describe('reportUsage', () => {
  function totalsOf(...turns: readonly TurnRecord[]): UsageTotals {
    const totals = createTotals()
    for (const turn of turns) addTurn(totals, turn)
    return totals
  }

  verifies('T-17', 'reports turns, tokens, latency, compression and cache shares', () => {
    const turns = [
      createTurnRecord(),
      createTurnRecord({
        durationMs: { total: 400, memory: 4 },
        tokens: { shown: 100, history: 1_000, saved: 900, cacheable: 50 },
      }),
    ]
    expect(reportUsage(totalsOf(...turns))).toEqual({
      turns: 2,
      failed: 0,
      tokens: { shown: 500, history: 2_000, saved: 1_500, cacheable: 350, prompt: 410, completion: 20, cached: 256 },
      latency: { mean: 600, memory: 3 },
      compression: 0.25,
      cache: { cacheable: 0.7, cached: 256 / 410 },
      upkeep: { calls: 0, prompt: 0, completion: 0, cached: 0 },
      cost: { turns: 0, upkeep: 0, total: 0, currency: 'USD' },
    })
  })

  it('counts a turn without a reply as failed only', () => {
    const { failed, ...rest } = totalsOf(createTurnRecord({ status: 502 }), createTurnRecord({ isAborted: true }))
    expect(failed).toBe(2)
    expect(rest).toEqual({ ...createTotals(), failed: undefined })
  })

  it('without turns reports null for every ratio', () => {
    const { latency, compression, cache } = reportUsage(createTotals())
    expect({ latency, compression, cache }).toEqual({
      latency: null,
      compression: null,
      cache: { cacheable: null, cached: null },
    })
  })
})

describe('UsageStats', () => {
  const turnsOf = (stats: UsageStats, ...keys: string[]) => keys.map((key) => stats.session(key).turns)

  verifies('T-17', 'counts each session and each tenant', () => {
    const stats = new UsageStats()
    for (const key of ['acme:ann', 'acme:ben', 'acme:ann']) stats.recordTurn(createTurnRecord({ key }))
    stats.recordTurn(createTurnRecord({ key: 'globex', scope: 'globex' }))
    expect(turnsOf(stats, 'acme:ann', 'acme:ben', 'globex', 'acme:eve')).toEqual([2, 1, 1, 0])
    expect([stats.scope('acme').tokens.saved, stats.scope('globex').turns]).toEqual([1_800, 1])
  })

  it('drops the least recently used sessions, but keeps the totals of their tenant', () => {
    const stats = new UsageStats(2)
    for (const key of ['acme:ann', 'acme:ben', 'acme:ann', 'acme:eve']) stats.recordTurn(createTurnRecord({ key }))
    expect(turnsOf(stats, 'acme:ann', 'acme:ben', 'acme:eve')).toEqual([2, 0, 1])
    expect(stats.scope('acme').turns).toBe(4)
  })

  it('keeps at most 10,000 sessions by default', () => {
    const stats = new UsageStats()
    for (let each = 0; each <= 10_000; each++) stats.recordTurn(createTurnRecord({ key: `acme:${each}` }))
    expect(turnsOf(stats, 'acme:0', 'acme:1', 'acme:10000')).toEqual([0, 1, 1])
  })

  it('forget deletes a session, or a tenant with all its sessions', () => {
    const stats = new UsageStats()
    for (const key of ['acme', 'acme:ann', 'acme:ben', 'acme2:ann'])
      stats.recordTurn(createTurnRecord({ key, scope: key.split(':')[0] as string }))
    stats.forget({ key: 'acme:ann' })
    expect(turnsOf(stats, 'acme', 'acme:ann', 'acme:ben', 'acme2:ann')).toEqual([1, 0, 1, 1])
    stats.forget({ scope: 'acme' })
    expect(turnsOf(stats, 'acme', 'acme:ben', 'acme2:ann')).toEqual([0, 0, 1])
    expect([stats.scope('acme').turns, stats.scope('acme2').turns]).toEqual([0, 1])
  })

  it('ignores requests without memory', () => {
    const { key: _, scope: __, ...withoutMemory } = createTurnRecord()
    const stats = new UsageStats()
    stats.recordTurn(withoutMemory)
    expect([stats.session('acme:ann').turns, stats.scope('acme').turns]).toEqual([0, 0])
  })
})
