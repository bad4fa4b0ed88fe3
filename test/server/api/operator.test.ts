import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
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
})
