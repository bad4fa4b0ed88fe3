import { describe, expect, it } from 'vitest'
import { type GaugeValues, Metrics } from '../../../src/server/observability/metrics.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTurnRecord } from './turnRecord.ts'

const idle: GaugeValues = {
  sessions: 0,
  ramBytes: 0,
  maxRamBytes: undefined,
  pendingDeliveries: 0,
  upkeep: { done: 0, degraded: 0 },
}
const createMetrics = (read: () => GaugeValues | Promise<GaugeValues> = () => idle) =>
  new Metrics({ readGauges: read, process: false })

/** Values of the metrics with this prefix, by the rest of their name and labels. */
async function readMetrics(metrics: Metrics, name: string): Promise<Record<string, string>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith(`threadkeep_${name}`))
  return Object.fromEntries(
    lines.map((line) => [
      line.slice(`threadkeep_${name}`.length, line.lastIndexOf(' ')),
      line.slice(line.lastIndexOf(' ') + 1),
    ]),
  )
}

describe('metrics', () => {
  verifies('S-07', 'count requests by protocol, status class, upstream and profile', async () => {
    const metrics = createMetrics()
    metrics.recordTurn(createTurnRecord())
    metrics.recordTurn(createTurnRecord({ status: 201 }))
    metrics.recordTurn(createTurnRecord({ protocol: 'messages', upstream: 'claude', status: 503 }))
    expect(await readMetrics(metrics, 'requests_total')).toEqual({
      '{protocol="chat",status="2xx",upstream="openai",profile="support"}': '2',
      '{protocol="messages",status="5xx",upstream="claude",profile="support"}': '1',
    })
  })

  it('count own and upstream tokens', async () => {
    const metrics = createMetrics()
    metrics.recordTurn(createTurnRecord())
    metrics.recordTurn(createTurnRecord({ tokens: { shown: 100, history: 100, saved: 0, cacheable: 50 } }))
    expect(await readMetrics(metrics, 'context_tokens_total')).toEqual({
      '{kind="shown",profile="support",scope="acme"}': '500',
      '{kind="history",profile="support",scope="acme"}': '1100',
      '{kind="saved",profile="support",scope="acme"}': '600',
      '{kind="added",profile="support",scope="acme"}': '0',
      '{kind="cacheable",profile="support",scope="acme"}': '350',
    })
    expect(await readMetrics(metrics, 'upstream_tokens_total')).toEqual({
      '{kind="prompt",upstream="openai"}': '410',
      '{kind="completion",upstream="openai"}': '20',
      '{kind="cached",upstream="openai"}': '256',
    })
    expect(await readMetrics(metrics, 'turns_total')).toEqual({ '{profile="support",scope="acme"}': '2' })
  })

  it('without a reply or without memory count no turn and no saved tokens', async () => {
    const metrics = createMetrics()
    const { key: _, scope: __, ...withoutMemory } = createTurnRecord()
    for (const turn of [createTurnRecord({ status: 500 }), createTurnRecord({ isAborted: true }), withoutMemory])
      metrics.recordTurn(turn)
    expect(await readMetrics(metrics, 'turns_total')).toEqual({})
    expect(await readMetrics(metrics, 'context_tokens_total')).toEqual({})
    expect(await readMetrics(metrics, 'aborted_total')).toEqual({ '{protocol="chat"}': '1' })
  })

  it('measure durations in seconds', async () => {
    const metrics = createMetrics()
    metrics.recordTurn(createTurnRecord({ durationMs: { total: 1_500, memory: 2 } }))
    metrics.recordTurn(createTurnRecord({ durationMs: { total: 500, memory: 1, firstByte: 250 } }))
    expect(await readMetrics(metrics, 'request_seconds_sum')).toEqual({ '{protocol="chat",upstream="openai"}': '2' })
    expect(await readMetrics(metrics, 'first_byte_seconds_count')).toEqual({
      '{protocol="chat",upstream="openai"}': '1',
    })
    expect((await readMetrics(metrics, 'memory_seconds_bucket'))['{le="0.001",profile="support"}']).toBe('1')
  })

  it('count retries, fallbacks, degradations, session ends, deliveries and refusals', async () => {
    const metrics = createMetrics()
    metrics.recordTurn(
      createTurnRecord({
        retries: 2,
        degraded: [
          { code: 'budget', message: 'No room.' },
          { code: 'summary-timeout', message: 'No summary.' },
        ],
        appendedMessages: 3,
        failedUpstreams: ['local'],
      }),
    )
    metrics.recordSessionEnd('expired')
    metrics.recordDelivery('failed')
    metrics.recordRefusal('rate')
    const names = [
      'upstream_retries',
      'degraded',
      'messages_appended',
      'sessions_ended',
      'webhook_deliveries',
      'limited',
      'upstream_fallbacks',
    ]
    const found = await Promise.all(names.map((name) => readMetrics(metrics, `${name}_total`)))
    expect(found).toEqual([
      { '{upstream="openai"}': '2' },
      { '{reason="budget"}': '1', '{reason="summary-timeout"}': '1' },
      { '{profile="support"}': '3' },
      { '{reason="expired"}': '1' },
      { '{outcome="failed"}': '1' },
      { '{limit="rate"}': '1' },
      { '{from="local",to="openai"}': '1' },
    ])
  })

  it('read gauges once per request for metrics', async () => {
    let reads = 0
    const metrics = createMetrics(async () => ({
      sessions: ++reads,
      ramBytes: 4_096,
      maxRamBytes: 8_192,
      pendingDeliveries: 2,
      upkeep: { done: 5 * reads, degraded: 1 },
    }))
    expect(await readMetrics(metrics, 'sessions_live')).toEqual({ '': '1' })
    expect(await readMetrics(metrics, 'upkeep')).toEqual({ _done_total: '10', _degraded: '1' })
    expect([await readMetrics(metrics, 'ram_bytes'), await readMetrics(metrics, 'outbox_waiting')]).toEqual([
      { '': '4096' },
      { '': '2' },
    ])
    expect(await readMetrics(metrics, 'ram_limit_bytes')).toEqual({ '': '8192' })
    expect(reads).toBe(5)
  })

  it('are available when the gauges cannot be read', async () => {
    const metrics = createMetrics(() => Promise.reject(new Error('locked')))
    metrics.recordRefusal('concurrency')
    expect(await readMetrics(metrics, 'sessions_live')).toEqual({ '': 'Nan' })
    expect(await readMetrics(metrics, 'limited_total')).toEqual({ '{limit="concurrency"}': '1' })
  })

  verifies('S-07', 'never grow with sessions, and have a bounded number of scopes, upstreams and reasons', async () => {
    const metrics = createMetrics()
    for (let each = 0; each < 1_000; each++) {
      metrics.recordTurn(
        createTurnRecord({
          key: `s${each}:secret${each}`,
          scope: `s${each}`,
          upstream: `u${each}`,
          profile: `p${each % 5}`,
          degraded: [{ code: `r${each}`, message: '' }],
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

  it('belong to one server; process metrics are shared', async () => {
    const [one, other] = [new Metrics({ readGauges: () => idle }), new Metrics({ readGauges: () => idle })]
    one.recordRefusal('rate')
    expect(await readMetrics(other, 'limited_total')).toEqual({})
    const processMetrics = await Promise.all(
      [one, other, createMetrics()].map(
        async (metrics) => (await metrics.text()).split('# TYPE process_cpu_seconds_total').length - 1,
      ),
    )
    expect(processMetrics).toEqual([1, 1, 0])
    expect(one.contentType).toBe('text/plain; version=0.0.4; charset=utf-8')
  })

  it('are valid Prometheus text with every name declared once', async () => {
    const text = await new Metrics({ readGauges: () => idle }).text()
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
    expect(names).toEqual([...new Set(names)])
    expect(text).toMatch(/\n$/)
    expect(
      text.split('\n').filter((line) => line !== '' && !/^(# (HELP|TYPE) |[a-z_:0-9]+(\{.*\})? \S+$)/.test(line)),
    ).toEqual([])
  })
})
