import { describe, expect, it } from 'vitest'
import { Metrics, type Readings } from '../../../src/server/observability/metrics.ts'
import { verifies } from '../../requirements/verifies.ts'
import { turnOf } from './turns.ts'

const idle: Readings = { sessions: 0, bytes: 0, waiting: 0, upkeep: { done: 0, degraded: 0 } }
const metricsOf = (read: () => Readings | Promise<Readings> = () => idle) => new Metrics({ read, process: false })

/** The values whose line begins so, by the rest of its name and labels. */
async function values(metrics: Metrics, name: string): Promise<Record<string, string>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith(`threadkeep_${name}`))
  return Object.fromEntries(
    lines.map((line) => [
      line.slice(`threadkeep_${name}`.length, line.lastIndexOf(' ')),
      line.slice(line.lastIndexOf(' ') + 1),
    ]),
  )
}

describe('metrics', () => {
  verifies('S-07', 'count requests by protocol, class of status, upstream and profile', async () => {
    const metrics = metricsOf()
    metrics.turn(turnOf())
    metrics.turn(turnOf({ status: 201 }))
    metrics.turn(turnOf({ protocol: 'messages', upstream: 'claude', status: 503 }))
    expect(await values(metrics, 'requests_total')).toEqual({
      '{protocol="chat",status="2xx",upstream="openai",profile="support"}': '2',
      '{protocol="messages",status="5xx",upstream="claude",profile="support"}': '1',
    })
  })

  it('tell tokens shown, saved and cacheable, and those the upstream reports', async () => {
    const metrics = metricsOf()
    metrics.turn(turnOf())
    metrics.turn(turnOf({ tokens: { shown: 100, history: 100, saved: 0, cacheable: 50 } }))
    expect(await values(metrics, 'context_tokens_total')).toEqual({
      '{kind="shown",profile="support",scope="acme"}': '500',
      '{kind="saved",profile="support",scope="acme"}': '600',
      '{kind="cacheable",profile="support",scope="acme"}': '350',
    })
    expect(await values(metrics, 'upstream_tokens_total')).toEqual({
      '{kind="prompt",upstream="openai"}': '410',
      '{kind="completion",upstream="openai"}': '20',
      '{kind="cached",upstream="openai"}': '256',
    })
    expect(await values(metrics, 'turns_total')).toEqual({ '{profile="support",scope="acme"}': '2' })
  })

  it('count no turn and nothing saved where no reply came or memory took no part', async () => {
    const metrics = metricsOf()
    const { key: _, scope: __, ...passing } = turnOf()
    for (const turn of [turnOf({ status: 500 }), turnOf({ aborted: true }), passing]) metrics.turn(turn)
    expect(await values(metrics, 'turns_total')).toEqual({})
    expect(await values(metrics, 'context_tokens_total')).toEqual({})
    expect(await values(metrics, 'aborted_total')).toEqual({ '{protocol="chat"}': '1' })
  })

  it('tell how long requests took, in seconds', async () => {
    const metrics = metricsOf()
    metrics.turn(turnOf({ millis: { total: 1_500, memory: 2 } }))
    metrics.turn(turnOf({ millis: { total: 500, memory: 1, first: 250 } }))
    expect(await values(metrics, 'request_seconds_sum')).toEqual({ '{protocol="chat",upstream="openai"}': '2' })
    expect(await values(metrics, 'first_byte_seconds_count')).toEqual({ '{protocol="chat",upstream="openai"}': '1' })
    expect((await values(metrics, 'memory_seconds_bucket'))['{le="0.001",profile="support"}']).toBe('1')
  })

  it('count what happens beside requests', async () => {
    const metrics = metricsOf()
    metrics.turn(turnOf({ retries: 2, degraded: ['budget', 'summary timeout'], appended: 3, passedOver: ['local'] }))
    metrics.ended('expired')
    metrics.delivered('failed')
    metrics.limited('rate')
    const names = [
      'upstream_retries',
      'degraded',
      'messages_appended',
      'sessions_ended',
      'webhook_deliveries',
      'limited',
      'upstream_fallbacks',
    ]
    const found = await Promise.all(names.map((name) => values(metrics, `${name}_total`)))
    expect(found).toEqual([
      { '{upstream="openai"}': '2' },
      { '{reason="budget"}': '1', '{reason="summary timeout"}': '1' },
      { '{profile="support"}': '3' },
      { '{reason="expired"}': '1' },
      { '{outcome="failed"}': '1' },
      { '{limit="rate"}': '1' },
      { '{from="local",to="openai"}': '1' },
    ])
  })

  it('read off what is not counted, once for each time they are asked for', async () => {
    let asked = 0
    const metrics = metricsOf(async () => ({
      sessions: ++asked,
      bytes: 4_096,
      waiting: 2,
      upkeep: { done: 5 * asked, degraded: 1 },
    }))
    expect(await values(metrics, 'sessions_live')).toEqual({ '': '1' })
    expect(await values(metrics, 'upkeep')).toEqual({ _done_total: '10', _degraded: '1' })
    expect([await values(metrics, 'ram_bytes'), await values(metrics, 'outbox_waiting')]).toEqual([
      { '': '4096' },
      { '': '2' },
    ])
    expect(asked).toBe(4)
  })

  it('are told also when something cannot be read', async () => {
    const metrics = metricsOf(() => Promise.reject(new Error('locked')))
    metrics.limited('concurrency')
    expect(await values(metrics, 'sessions_live')).toEqual({ '': 'Nan' })
    expect(await values(metrics, 'limited_total')).toEqual({ '{limit="concurrency"}': '1' })
  })

  verifies('S-07', 'never grow with sessions, and not without end with scopes, upstreams or reasons', async () => {
    const metrics = metricsOf()
    for (let each = 0; each < 1_000; each++) {
      metrics.turn(
        turnOf({
          key: `s${each}:secret${each}`,
          scope: `s${each}`,
          upstream: `u${each}`,
          profile: `p${each % 5}`,
          degraded: [`r${each}`],
        }),
      )
    }
    const text = await metrics.text()
    expect(text).not.toContain('secret')
    const distinct = (label: string) =>
      new Set([...text.matchAll(new RegExp(`[{,]${label}="([^"]*)"`, 'g'))].map(([, value]) => value)).size
    expect({ scope: distinct('scope'), upstream: distinct('upstream'), reason: distinct('reason') }).toEqual({
      scope: 201,
      upstream: 51,
      reason: 51,
    })
    expect(text).toContain('scope="other"')
  })

  it('belong to one server, with what Node tells of the process they share', async () => {
    const [one, other] = [new Metrics({ read: () => idle }), new Metrics({ read: () => idle })]
    one.limited('rate')
    expect(await values(other, 'limited_total')).toEqual({})
    const told = await Promise.all(
      [one, other, metricsOf()].map(
        async (metrics) => (await metrics.text()).split('# TYPE process_cpu_seconds_total').length - 1,
      ),
    )
    expect(told).toEqual([1, 1, 0])
    expect(one.type).toBe('text/plain; version=0.0.4; charset=utf-8')
  })

  it('are lines that end, with every name told once', async () => {
    const text = await new Metrics({ read: () => idle }).text()
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
    expect(names).toEqual([...new Set(names)])
    expect(text).toMatch(/\n$/)
    expect(
      text.split('\n').filter((line) => line !== '' && !/^(# (HELP|TYPE) |[a-z_:0-9]+(\{.*\})? \S+$)/.test(line)),
    ).toEqual([])
  })
})
