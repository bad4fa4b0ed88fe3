import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { newChange, newFact, newMessage } from '../../../src/stores/conformance/fixtures.ts'
import { storeConformance } from '../../../src/stores/conformance.ts'
import { redisStore } from '../../../src/stores/redis.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createCertificate } from '../../support/certificate.ts'
import { getFreePort, waitForPort } from '../../support/redisServer.ts'
import { newPrefix, startRedis } from './redisServer.ts'
import { startUpstash } from './upstashServer.ts'

const folder = mkdtempSync(join(tmpdir(), 'threadkeep-redis-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Runs every kind of operation on sessions of several scopes and returns what was read. */
async function exercise(store: Store & SearchIndex): Promise<unknown> {
  for (const name of ['acme:ann', 'zeta:bob', 'nine:cy']) {
    const key = parseKey(name)
    const { epoch } = await store.readHead(key, 0)
    const append = [newMessage('The walrus is called Bruno. \u0000 \ud800'), newMessage('It eats clams.')]
    await store.commit(newChange('a', { key, epoch, append, put: [newFact('f1', 'walrus')] }))
    await store.appendRecord(key, { id: 'r', at: 1, body: '{}' }, 9)
  }
  await store.table.writeRows('zeta', 1, [{ namespace: ['n'], key: 'k', value: [1, 'two'] }])
  const ann = parseKey('acme:ann')
  await store.erase(ann, { entries: ['m2'] })
  const { recent, derived } = await store.readHead(ann, 9)
  return [
    recent.map(({ content }) => content),
    derived.map(({ id }) => id),
    (await store.search({ scope: 'zeta' }, { text: 'walrus', limit: 1 })).map(({ entry }) => entry.id),
    (await store.list({ limit: 9 })).map(({ key }) => `${key.scope}:${key.id}`),
    (await store.table.readRows('zeta', [{ namespace: ['n'], key: 'k' }])).map((row) => row?.value),
  ]
}
const expected = [
  ['The walrus is called Bruno. \u0000 \ud800'],
  ['f1'],
  ['m1'],
  ['acme:ann', 'nine:cy', 'zeta:bob'],
  [[1, 'two']],
]

describe('redisStore › topologies', () => {
  verifies('T-17', 'cluster of three servers › spreads scopes and finds all of them', async () => {
    const start = async () => {
      // By default it is 10,000 above the other port, which may be none.
      const busPort = String(await getFreePort())
      return startRedis({ settings: ['--cluster-enabled', 'yes', '--cluster-port', busPort] })
    }
    const servers = await Promise.all([start(), start(), start()])
    const addresses = servers.map(({ port }) => `127.0.0.1:${port}`)
    execFileSync('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'])
    for (const { ask } of servers)
      await expect.poll(() => ask('CLUSTER', 'INFO'), { timeout: 20_000 }).toContain('cluster_state:ok')
    const store = await redisStore(`redis+cluster://${addresses.join(',')}`)
    expect(await exercise(store)).toEqual(expected)
    const sizes = servers.map(({ ask }) => Number(ask('DBSIZE')))
    expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(1)
    for (const { ask } of servers) ask('SCRIPT', 'FLUSH')
    expect((await store.readHead(parseKey('nine:cy'), 0)).messages).toBe(2)
    servers[1]?.ask('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    await expect(redisStore(`redis+cluster://${addresses.join(',')}`)).rejects.toMatchObject({ code: 'bad-store' })
    await store.close()
  })

  it('sentinel › finds the master, and the new one after a failover', async () => {
    const master = await startRedis()
    const replica = await startRedis({ settings: ['--replicaof', '127.0.0.1', String(master.port)] })
    const port = await getFreePort()
    const file = join(folder, 'sentinel.conf')
    writeFileSync(
      file,
      [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${folder}`,
        `sentinel monitor main 127.0.0.1 ${master.port} 1`,
        'sentinel down-after-milliseconds main 500',
        'sentinel failover-timeout main 2000',
      ].join('\n'),
    )
    const sentinel = await startRedis({ file, settings: ['--sentinel'], port, folder: mkdtempSync(join(folder, 's-')) })
    await waitForPort(port)
    await expect
      .poll(() => sentinel.ask('SENTINEL', 'replicas', 'main'), { timeout: 20_000 })
      .toContain(`127.0.0.1:${replica.port}`)
    const store = await redisStore(`redis+sentinel://127.0.0.1:${port}/main`)
    expect(await exercise(store)).toEqual(expected)
    await expect.poll(() => replica.ask('DBSIZE'), { timeout: 10_000 }).toBe(master.ask('DBSIZE'))
    await master.stop('SIGKILL')
    const read = async () => (await store.readHead(parseKey('nine:cy'), 0)).messages
    await expect.poll(() => read().catch(() => 'lost'), { timeout: 30_000, interval: 200 }).toBe(2)
    await expect
      .poll(() => store.erase(parseKey('nine:cy')).catch(() => 'lost'), { timeout: 30_000, interval: 200 })
      .toContain('m1')
    await store.close()
  })

  it('TLS › with a certificate of an own authority › needs its file', async () => {
    const { certificate, secret } = createCertificate(folder)
    const port = await getFreePort()
    const tls = ['--tls-port', String(port), '--tls-cert-file', certificate, '--tls-key-file', secret]
    await startRedis({ settings: [...tls, '--tls-auth-clients', 'no', '--port', '0'] })
    await waitForPort(port)
    const url = `rediss://localhost:${port}`
    await expect(redisStore(url, { timeoutMs: 1_000 })).rejects.toMatchObject({
      code: 'busy',
      message: expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT'),
    })
    const store = await redisStore(`${url}?ca=${encodeURIComponent(certificate)}`)
    expect(await exercise(store)).toEqual(expected)
    await store.close()
  })
})

const server = await startRedis()
const upstash = await startUpstash(server.url)

describe('redisStore › over the REST protocol of Upstash', () => {
  verifies('T-17', 'redisStore › without a confirmation or with a wrong token › is refused', async () => {
    await expect(redisStore(`${upstash.url}?token=${upstash.token}`)).rejects.toMatchObject({
      code: 'bad-store',
      message: expect.stringContaining('does not show its settings'),
    })
    const refused = redisStore(`${upstash.url}?token=wrong-token&settings=confirmed`)
    await expect(refused).rejects.toMatchObject({ code: 'bad-store', message: expect.not.stringContaining('wrong') })
    await expect(redisStore(upstash.url)).rejects.toMatchObject({ code: 'bad-option' })
  })

  it('operations of one turn of the event loop › share a request', async () => {
    const store = await redisStore(upstash.url, { token: upstash.token, settings: 'confirmed', prefix: newPrefix() })
    expect(await exercise(store)).toEqual(expected)
    upstash.requests.length = 0
    await Promise.all(['acme:ann', 'zeta:bob'].map((name) => store.readHead(parseKey(name), 1)))
    expect(upstash.requests).toEqual(['POST /pipeline'])
    await store.close()
  })

  const open = () => redisStore(upstash.url, { token: upstash.token, settings: 'confirmed', prefix: newPrefix() })
  for (const { name, run } of storeConformance(open).filter((check) => !/16 MB|random/.test(check.name))) it(name, run)
})
