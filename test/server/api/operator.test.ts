import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { buildOpenApi } from '../../../src/server/openapi/openapi.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { verifies } from '../../requirements/verifies.ts'
import { startServer, user } from '../start.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-operator-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('operator API', () => {
  verifies('S-07', 'reports health, readiness, metrics and the OpenAPI document', async () => {
    await using server = await startServer()
    const upkeep = { by: 'builtin', running: 0, done: 0 }
    expect(await server.requestJson('GET /healthz')).toEqual({
      status: 200,
      body: { status: 'ok', degraded: [], upkeep, profile: 'thread', secrets: 'mask' },
    })
    expect(await server.requestJson('GET /readyz')).toEqual({
      status: 200,
      body: { ready: true, status: 'ok', degraded: [] },
    })
    expect(await server.requestJson('GET /openapi.json')).toEqual({ status: 200, body: buildOpenApi() })
    await server.postChat('acme:ann', { messages: [user('Hello')] })
    const metrics = await fetch(`${server.url}/metrics`)
    expect(metrics.headers.get('content-type')).toMatch(/^text\/plain; version=/)
    expect(await metrics.text()).toContain('threadkeep_turns_total{profile="thread",scope="acme"} 1')
  })

  it('limits the optimizer status to the tenants of the key, and requires a choice among several', async () => {
    const credentials = new Credentials(join(folder, 'keys.json'))
    const createKey = async (...scopes: string[]): Promise<string> => (await credentials.create({ scopes }, 0)).key
    const [one, two, all] = [await createKey('acme'), await createKey('acme', 'other'), await createKey('*')]
    await using server = await startServer({ credentials, memory: { profile: 'agent' } })
    const status = (key: string, query = '') =>
      server.requestJson(`GET /learning/optimizer/status${query}`, undefined, { authorization: `Bearer ${key}` })
    const expected = {
      status: 200,
      body: {
        totalOptimizations: 0,
        totalTokensSaved: 0,
        avgSavingsPerRun: 0,
        currentParameters: { targetUsageRatio: 0.65 },
      },
    }
    expect([await status(one), await status(all), await status(two, '?key=other')]).toMatchObject([
      expected,
      expected,
      expected,
    ])
    expect(await status(two)).toMatchObject({
      status: 400,
      body: { error: { message: 'key is missing. Use one of: acme, other.', param: 'key' } },
    })
    expect(await status(one, '?key=other:eve')).toMatchObject({ status: 404 })
  })

  verifies('R-03', 'with 100,000 sessions › probes read one row per store, and metrics count in pages', async () => {
    const sessions = Array.from({ length: 100_000 }, (_, index) => ({
      key: parseKey(`acme:s${`${index}`.padStart(6, '0')}`),
      ...{ startedAt: 0, touchedAt: 0, expiresAt: Number.MAX_SAFE_INTEGER, messages: 1 },
    }))
    const ram = ramStore()
    let [rows, listings] = [0, 0]
    const store: typeof ram = {
      ...ram,
      capabilities: { ...ram.capabilities, sessionCounter: undefined as never },
      readHead: (...args) => {
        rows++
        return ram.readHead(...args)
      },
      list: async ({ after = '', limit }) => {
        const from = after === '' ? 0 : Number(after.slice('acme:s'.length)) + 1
        const page = sessions.slice(from, from + limit)
        rows += page.length
        listings++
        return page
      },
    }
    await using server = await startServer({ memory: { store, upkeep: false } })
    // The start looks for unfinished work, in pages.
    await expect.poll(() => rows, { timeout: 10_000 }).toBeGreaterThanOrEqual(sessions.length)
    for (let before = -1; before !== listings; ) {
      before = listings
      await delay(50)
    }
    ;[rows, listings] = [0, 0]
    const probes = Array.from({ length: 50 }, () => [
      server.requestJson('GET /healthz'),
      server.requestJson('GET /readyz'),
    ]).flat()
    expect((await Promise.all(probes)).map(({ status }) => status)).toEqual(probes.map(() => 200))
    expect([rows, listings]).toEqual([100, 0])
    const readLive = async () =>
      /^threadkeep_sessions_live (.*)$/m.exec(await (await fetch(`${server.url}/metrics`)).text())?.[1]
    await expect.poll(readLive, { timeout: 10_000 }).toBe('100000')
    const before = listings
    expect(before).toBeLessThanOrEqual(402)
    expect(await readLive()).toBe('100000')
    expect(listings - before).toBeLessThanOrEqual(1)
  })

  it('with a failing store is alive but not ready', async () => {
    const store = { ...ramStore(), readHead: () => Promise.reject(new Error('the disk says My PIN is 1234')) }
    await using server = await startServer({ memory: { store, upkeep: false } })
    const [alive, ready] = [await server.requestJson('GET /healthz'), await server.requestJson('GET /readyz')]
    expect([alive, ready]).toMatchObject([
      { status: 200, body: { status: 'unavailable', degraded: [{ part: 'store' }] } },
      { status: 503, body: { ready: false, status: 'unavailable', degraded: [{ part: 'store' }] } },
    ])
    expect(JSON.stringify([alive, ready])).not.toContain('PIN')
  })

  it('with a store that does not answer › is alive but not ready, before probes time out', async () => {
    const store = { ...ramStore(), readHead: () => delay(9_000).then(() => Promise.reject(new Error('late'))) }
    await using server = await startServer({ memory: { store, upkeep: false } })
    const startedAt = performance.now()
    const probes = await Promise.all([server.requestJson('GET /healthz'), server.requestJson('GET /readyz')])
    expect(performance.now() - startedAt).toBeLessThan(6_000)
    expect(probes).toMatchObject([
      { status: 200, body: { status: 'unavailable', degraded: [{ part: 'store' }] } },
      { status: 503, body: { ready: false, status: 'unavailable' } },
    ])
  })
})
