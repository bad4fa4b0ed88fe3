import { describe, expect, it } from 'vitest'
import { count, figuresOf, nothing, Tallies, type Tally } from '../../../src/server/observability/tally.ts'
import type { Turn } from '../../../src/server/observability/turn.ts'
import { verifies } from '../../requirements/verifies.ts'
import { turnOf } from './turns.ts'

describe('conversation metrics', () => {
  function tallyOf(...turns: readonly Turn[]): Tally {
    const tally = nothing()
    for (const turn of turns) count(tally, turn)
    return tally
  }

  verifies('T-17', 'tell turns, tokens, latency, compression and the share of the cache', () => {
    const turns = [
      turnOf(),
      turnOf({ millis: { total: 400, memory: 4 }, tokens: { shown: 100, history: 1_000, saved: 900, cacheable: 50 } }),
    ]
    expect(figuresOf(tallyOf(...turns))).toEqual({
      turns: 2,
      failed: 0,
      tokens: { shown: 500, history: 2_000, saved: 1_500, cacheable: 350, prompt: 410, completion: 20, cached: 256 },
      latency: { mean: 600, memory: 3 },
      compression: 0.25,
      cache: { cacheable: 0.7, taken: 256 / 410 },
    })
  })

  it('count a turn without a reply as failed, and in nothing else', () => {
    const { failed, ...rest } = tallyOf(turnOf({ status: 502 }), turnOf({ aborted: true }))
    expect(failed).toBe(2)
    expect(rest).toEqual({ ...nothing(), failed: undefined })
  })

  it('divide by nothing where there is nothing', () => {
    const { latency, compression, cache } = figuresOf(nothing())
    expect({ latency, compression, cache }).toEqual({
      latency: null,
      compression: null,
      cache: { cacheable: null, taken: null },
    })
  })
})

describe('the tallies of a server', () => {
  const turnsOf = (tallies: Tallies, ...keys: string[]) => keys.map((key) => tallies.session(key).turns)

  verifies('T-17', 'are kept for each session and for each tenant', () => {
    const tallies = new Tallies()
    for (const key of ['acme:ann', 'acme:ben', 'acme:ann']) tallies.heard(turnOf({ key }))
    tallies.heard(turnOf({ key: 'globex', scope: 'globex' }))
    expect(turnsOf(tallies, 'acme:ann', 'acme:ben', 'globex', 'acme:eve')).toEqual([2, 1, 1, 0])
    expect([tallies.scope('acme').tokens.saved, tallies.scope('globex').turns]).toEqual([1_800, 1])
  })

  it("keep the sessions used last, and a tenant's whole sum", () => {
    const tallies = new Tallies(2)
    for (const key of ['acme:ann', 'acme:ben', 'acme:ann', 'acme:eve']) tallies.heard(turnOf({ key }))
    expect(turnsOf(tallies, 'acme:ann', 'acme:ben', 'acme:eve')).toEqual([2, 0, 1])
    expect(tallies.scope('acme').turns).toBe(4)
  })

  it('keep at most 10,000 sessions', () => {
    const tallies = new Tallies()
    for (let each = 0; each <= 10_000; each++) tallies.heard(turnOf({ key: `acme:${each}` }))
    expect(turnsOf(tallies, 'acme:0', 'acme:1', 'acme:10000')).toEqual([0, 1, 1])
  })

  it("forget a session, or a tenant with all of its own and nobody else's", () => {
    const tallies = new Tallies()
    for (const key of ['acme', 'acme:ann', 'acme:ben', 'acme2:ann'])
      tallies.heard(turnOf({ key, scope: key.split(':')[0] as string }))
    tallies.forget({ key: 'acme:ann' })
    expect(turnsOf(tallies, 'acme', 'acme:ann', 'acme:ben', 'acme2:ann')).toEqual([1, 0, 1, 1])
    tallies.forget({ scope: 'acme' })
    expect(turnsOf(tallies, 'acme', 'acme:ben', 'acme2:ann')).toEqual([0, 0, 1])
    expect([tallies.scope('acme').turns, tallies.scope('acme2').turns]).toEqual([0, 1])
  })

  it('leave out what passed without memory', () => {
    const { key: _, scope: __, ...passing } = turnOf()
    const tallies = new Tallies()
    tallies.heard(passing)
    expect([tallies.session('acme:ann').turns, tallies.scope('acme').turns]).toEqual([0, 0])
  })
})
