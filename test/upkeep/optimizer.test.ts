import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TuningParameters, TuningRun, TuningState } from '../../src/domain/entry.ts'
import {
  buildOptimizerStatus,
  initialParameters,
  recordRun,
  targetUsage,
  tuneParameters,
} from '../../src/upkeep/optimizer/optimizer.ts'
import { verifies } from '../requirements/verifies.ts'

const runs = (
  count: number,
  usage: number,
  saved: number,
  from: TuningParameters = initialParameters,
): TuningParameters =>
  Array.from({ length: count }).reduce<TuningParameters>((before) => tuneParameters(before, { usage, saved }), from)

describe('tuneParameters', () => {
  verifies('A-10', 'starts with the documented parameters', () => {
    expect(initialParameters).toEqual({ trigger: 0.7, window: 30, minRelevance: 0.3 })
    expect(targetUsage).toBe(0.65)
  })

  verifies('A-10', 'with usage more than 0.10 above the target becomes stricter', () => {
    expect(tuneParameters(initialParameters, { usage: 0.76, saved: 0.05 })).toEqual({
      trigger: 0.65,
      window: 28,
      minRelevance: 0.35,
    })
    expect(tuneParameters(initialParameters, { usage: 0.75, saved: 0.05 })).toEqual(initialParameters)
  })

  verifies('A-10', 'with usage more than 0.15 below the target relaxes half as fast', () => {
    expect(tuneParameters(initialParameters, { usage: 0.49, saved: 0 })).toEqual({
      trigger: 0.725,
      window: 31,
      minRelevance: 0.275,
    })
    expect(tuneParameters(initialParameters, { usage: 0.5, saved: 0 })).toEqual(initialParameters)
  })

  verifies('A-10', 'with usage above the target and less than 5 % saved takes an additional step', () => {
    expect(tuneParameters(initialParameters, { usage: 0.7, saved: 0.049 })).toEqual({
      trigger: 0.6,
      window: 30,
      minRelevance: 0.4,
    })
    expect(tuneParameters(initialParameters, { usage: 0.8, saved: 0 })).toEqual({
      trigger: 0.55,
      window: 28,
      minRelevance: 0.45,
    })
    expect(tuneParameters(initialParameters, { usage: 0.7, saved: 0.05 })).toEqual(initialParameters)
    expect(tuneParameters(initialParameters, { usage: 0.65, saved: 0 })).toEqual(initialParameters)
  })

  verifies('A-10', 'with constantly high or low usage ends at the limits of the ranges', () => {
    const strict = { trigger: 0.35, window: 10, minRelevance: 0.7 }
    const loose = { trigger: 0.85, window: 50, minRelevance: 0.15 }
    expect(runs(10, 0.9, 0.5)).toEqual(strict)
    expect(runs(9, 0.9, 0.5).window).toBe(12)
    expect(runs(10, 0.9, 0)).toEqual(strict)
    expect(runs(20, 0.3, 0.5)).toEqual(loose)
    expect(runs(19, 0.3, 0.5).window).toBe(49)
    expect(runs(40, 0.3, 0, strict)).toEqual(loose)
    expect(runs(40, 0.9, 0.5, loose)).toEqual(strict)
  })

  it('returns exact values after any number of steps', () => {
    expect(runs(1, 0.9, 0.5)).toEqual({ trigger: 0.65, window: 28, minRelevance: 0.35 })
    expect(runs(3, 0.4, 0.5).trigger).toBe(0.775)
    expect(runs(3, 0.4, 0.5).minRelevance).toBe(0.225)
  })

  verifies('A-10', 'stays within the ranges, also from values outside of them', () => {
    const run = fc.record({
      usage: fc.double({ min: 0, max: 3, noNaN: true }),
      saved: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    const any = fc.record({
      trigger: fc.double({ min: -1, max: 2, noNaN: true }),
      window: fc.integer(),
      minRelevance: fc.double({ min: -1, max: 2, noNaN: true }),
    })
    fc.assert(
      fc.property(any, fc.array(run, { minLength: 1 }), (from, all) => {
        const { trigger, window, minRelevance } = all.reduce(tuneParameters, from)
        expect(trigger >= 0.35 && trigger <= 0.85).toBe(true)
        expect(window >= 10 && window <= 50).toBe(true)
        expect(minRelevance >= 0.15 && minRelevance <= 0.7).toBe(true)
      }),
    )
  })
})

const snapshot = (at: number, tokensBefore: number, tokensAfter: number): TuningRun => ({
  at,
  tokensBefore,
  tokensAfter,
  compressed: 8,
  dropped: 3,
  promoted: 2,
  ...initialParameters,
})
const strict: TuningParameters = { trigger: 0.62, window: 26, minRelevance: 0.38 }

describe('recordRun', () => {
  verifies('A-11', 'adds a snapshot and sums the saved tokens', () => {
    const once = recordRun(undefined, snapshot(1, 150_000, 120_000), initialParameters)
    expect(once).toEqual({
      parameters: initialParameters,
      runs: 1,
      saved: 30_000,
      snapshots: [snapshot(1, 150_000, 120_000)],
    })
    const twice = recordRun(once, snapshot(2, 120_000, 119_000), strict)
    expect(twice).toEqual({
      parameters: strict,
      runs: 2,
      saved: 31_000,
      snapshots: [snapshot(1, 150_000, 120_000), snapshot(2, 120_000, 119_000)],
    })
  })

  it('with a longer history after the run adds no savings', () => {
    expect(
      recordRun(
        recordRun(undefined, snapshot(1, 900, 400), initialParameters),
        snapshot(2, 400, 450),
        initialParameters,
      ).saved,
    ).toBe(500)
  })

  verifies('A-11', 'keeps the newest 500 snapshots and the totals of all', () => {
    let tuning: TuningState | undefined
    for (let at = 1; at <= 1_200; at++) tuning = recordRun(tuning, snapshot(at, 1_000, 990), initialParameters)
    expect(tuning?.snapshots.map((snapshot) => snapshot.at)).toEqual(
      Array.from({ length: 500 }, (_, index) => 701 + index),
    )
    expect(tuning).toMatchObject({ runs: 1_200, saved: 12_000 })
  })
})

describe('buildOptimizerStatus', () => {
  verifies('A-11', 'returns the documented fields', () => {
    const tuning: TuningState = { parameters: strict, runs: 45, saved: 125_000, snapshots: [snapshot(1, 2, 1)] }
    expect(buildOptimizerStatus([tuning])).toEqual({
      totalOptimizations: 45,
      totalTokensSaved: 125_000,
      avgSavingsPerRun: 2_778,
      currentParameters: {
        compressionTrigger: 0.62,
        fullMessageWindow: 26,
        minRelevance: 0.38,
        targetUsageRatio: 0.65,
      },
    })
  })

  verifies('A-11', 'for several sessions returns sums and the parameters of the last optimized one', () => {
    const earlier = recordRun(undefined, snapshot(100, 1_000, 900), initialParameters)
    const latest = recordRun(
      recordRun(undefined, snapshot(50, 1_000, 999), initialParameters),
      snapshot(300, 1_000, 800),
      strict,
    )
    const between = recordRun(undefined, snapshot(200, 1_000, 1_000), initialParameters)
    for (const order of [
      [earlier, latest, between],
      [latest, between, earlier],
      [between, earlier, latest],
    ])
      expect(buildOptimizerStatus(order)).toEqual({
        totalOptimizations: 4,
        totalTokensSaved: 301,
        avgSavingsPerRun: 75,
        currentParameters: {
          compressionTrigger: 0.62,
          fullMessageWindow: 26,
          minRelevance: 0.38,
          targetUsageRatio: 0.65,
        },
      })
  })

  it('before the first run returns no savings and the initial parameters', () => {
    expect(buildOptimizerStatus([])).toEqual({
      totalOptimizations: 0,
      totalTokensSaved: 0,
      avgSavingsPerRun: 0,
      currentParameters: { compressionTrigger: 0.7, fullMessageWindow: 30, minRelevance: 0.3, targetUsageRatio: 0.65 },
    })
  })
})
