import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { replyWith, sendRaw, startUpstream } from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTempPaths } from '../../stores/tempPaths.ts'
import { openConfiguredServer } from './harness.ts'

const fresh = createTempPaths()
const newConfigFile = (): string => fresh('.json')
const support = (lifetime: object) => ({ profile: 'support', profiles: { support: { extends: 'support', lifetime } } })
const quote = 'From what you told me: "My cat is called Miso."'

describe('openServer', () => {
  it('stores durable profiles in one file and RAM profiles in none', async () => {
    const store = fresh()
    const templates = { kept: { profile: 'thread' } }
    await using opened = await openConfiguredServer(newConfigFile(), {
      profile: 'support',
      store: `sqlite:${store}`,
      templates,
    })
    const tell = async (key: string, pet: string, headers = {}) =>
      (await opened.ask(key, `My pet is called ${pet}.`, headers)).headers.get('x-threadkeep-profile')
    expect([
      await tell('acme', 'Tenantpet'),
      await tell('acme:a', 'Rampet'),
      await tell('acme:b', 'Keptpet', { 'x-threadkeep-template': 'kept' }),
    ]).toEqual(['thread', 'support', 'thread'])
    await opened.server.close(0)
    const bytes = readFileSync(store)
    expect(['Tenantpet', 'Keptpet', 'Rampet'].map((name) => bytes.includes(name))).toEqual([true, true, false])
  })

  verifies('T-16', 'with sessions off answers sessions without memory and tenants with it', async () => {
    await using opened = await openConfiguredServer(newConfigFile(), { store: 'ram:', sessions: false })
    await opened.ask('acme:ann', 'My cat is called Miso.')
    expect((await opened.ask('acme:ann', 'What is my cat called?')).text).not.toContain('Miso')
    await opened.ask('acme', 'My cat is called Miso.')
    expect((await opened.ask('acme', 'What is my cat called?')).text).toBe(quote)
  })

  verifies('T-17', 'begins sessions from templates, with their system text and lifetimes', async () => {
    await using upstream = await startUpstream(replyWith('Fine.'))
    const templates = { sales: { profile: 'summary', idle: '2h', age: '1d', preamble: 'You sell lamps.', budget: 900 } }
    await using opened = await openConfiguredServer(newConfigFile(), {
      store: 'ram:',
      templates,
      upkeep: 'off',
      upstreams: [{ base: upstream.url }],
    })
    const { headers } = await opened.ask('acme:ann', 'Hello', { 'x-threadkeep-template': 'sales' })
    expect(decodeURIComponent(headers.get('x-threadkeep-profile') ?? '')).toBe('summary+sales')
    expect(headers.get('x-threadkeep-tokens')).toMatch(/^\d+\/900$/)
    expect(upstream.requests[0]?.body.messages[0]).toEqual({ role: 'system', content: 'You sell lamps.' })
    const { memory } = await opened.server.memories.resolve(parseKey('acme:ann'))
    expect(await memory.metadata('acme:ann')).toMatchObject({ template: 'sales', idle: 7_200_000, age: 86_400_000 })
    expect((await opened.ask('acme:bob', 'Hello', { 'x-threadkeep-template': 'nope' })).error).toMatchObject({
      message: 'Unknown template "nope". Use one of: sales.',
      code: 'bad-option',
    })
  })

  verifies('T-12', "at the session limit of a tenant refuses in OpenAI's format or evicts", async () => {
    await using refusing = await openConfiguredServer(newConfigFile(), {
      store: 'ram:',
      ...support({ sessionsPerScope: 1, whenFull: 'refuse' }),
    })
    await refusing.ask('acme:ann', 'Hello')
    const { status, headers, error } = await refusing.ask('acme:bob', 'Hello')
    expect([status, headers.get('x-should-retry'), error]).toEqual([
      429,
      'false',
      {
        message: 'acme has 1 sessions and its profile allows 1. End one of them, or raise lifetime.sessionsPerScope.',
        type: 'rate_limit_error',
        param: 'lifetime.sessionsPerScope',
        code: 'full',
      },
    ])
    await using evicting = await openConfiguredServer(newConfigFile(), {
      store: 'ram:',
      ...support({ sessionsPerScope: 1 }),
    })
    await evicting.ask('acme:ann', 'My cat is called Miso.')
    expect((await evicting.ask('acme:bob', 'Hello')).status).toBe(200)
    expect((await evicting.ask('acme:ann', 'What is my cat called?')).text).not.toContain('Miso')
  })

  verifies('T-12', 'with whenFull refuse refuses messages and bytes beyond the limits of a session', async () => {
    for (const [lifetime, param] of [
      [{ messages: 2 }, 'lifetime.messages'],
      [{ bytes: 200 }, 'lifetime.bytes'],
    ] as const) {
      await using opened = await openConfiguredServer(newConfigFile(), {
        store: 'ram:',
        ...support({ ...lifetime, whenFull: 'refuse' }),
      })
      await opened.ask('acme:ann', 'My cat is called Miso.')
      expect(await opened.ask('acme:ann', 'x'.repeat(300))).toMatchObject({
        status: 429,
        error: { type: 'rate_limit_error', param, code: 'full' },
      })
    }
  })

  verifies('T-08', 'at the RAM limit ends the least recently used sessions', async () => {
    await using opened = await openConfiguredServer(newConfigFile(), {
      store: 'ram:',
      profile: 'support',
      limits: { ramBytes: 20_000 },
    })
    await opened.ask('acme:ann', 'My cat is called Miso.')
    for (const other of ['b', 'c', 'd']) await opened.ask(`acme:${other}`, 'word '.repeat(2_000))
    expect((await opened.ask('acme:ann', 'What is my cat called?')).text).not.toContain('Miso')
  })

  verifies('T-08', 'reports the default RAM limit in its metrics', async () => {
    await using opened = await openConfiguredServer(newConfigFile(), { store: 'ram:', profile: 'support' })
    const metrics = await (await fetch(new URL('/metrics', opened.server.url))).text()
    expect(metrics).toMatch(/^threadkeep_ram_limit_bytes 512000000$/m)
  })

  verifies(['T-07', 'T-08'], 'sends a signed webhook once per ended session', async () => {
    await using hook = await startUpstream(sendRaw('application/json', '{}'))
    const webhook = { url: `${hook.origin}/ended`, secretEnv: 'HOOK' }
    const templates = { other: { profile: 'support' }, kept: { profile: 'thread' } }
    await using opened = await openConfiguredServer(
      newConfigFile(),
      { store: 'ram:', profile: 'support', templates, webhook },
      { environment: { HOOK: 'sesame' } },
    )
    await opened.ask('acme:ann', 'My cat is called Miso.')
    expect((await fetch(`${opened.server.url}/api/sessions/acme:ann`, { method: 'DELETE' })).status).toBe(204)
    await Promise.all(opened.server.memories.all().map((memory) => memory.sweep()))
    await Promise.all(opened.server.memories.all().map((memory) => memory.lifecycle.whenIdle()))
    expect(
      hook.requests.map(({ path, body }) => [path, body.type, body.key, body.reason, body.data.messageCount]),
    ).toEqual([['/ended', 'session.ended', 'acme:ann', 'ended', 2]])
    const { headers, text } = hook.requests[0] as (typeof hook.requests)[number]
    const signed = createHmac('sha256', 'sesame')
      .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`)
      .digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${signed}`)
  })

  it('refuses a public address without keys', async () => {
    const listen = { host: '0.0.0.0', port: 0 }
    const refused = openConfiguredServer(newConfigFile(), { store: `sqlite:${fresh()}`, listen })
    await expect(refused).rejects.toThrow(
      'host is "0.0.0.0", which other machines can reach, but no keys are required: anyone could read and write all memory. Create a key with threadkeep keys create --scope NAME, or pass --open to allow everyone.',
    )
    await (await openConfiguredServer(newConfigFile(), { store: 'ram:', listen }, { allowPublic: true })).server.close()
    const keys = fresh('.json')
    await new Credentials(keys).create({ scopes: ['acme'] }, Date.now())
    await (await openConfiguredServer(newConfigFile(), { store: 'ram:', listen, keys: { file: keys } })).server.close()
    await expect(
      openConfiguredServer(newConfigFile(), { store: 'ram:', keys: { file: '/nowhere/keys.json' } }),
    ).rejects.toThrow('The key file /nowhere/keys.json cannot be read (ENOENT)')
  })

  it('requires keys once one exists, and limits each to its tenants', async () => {
    const file = newConfigFile()
    let now = Date.now()
    await using opened = await openConfiguredServer(
      file,
      { store: 'ram:', keys: { file: 'keys.json', required: false } },
      { clock: () => now },
    )
    expect((await opened.ask('acme:ann', 'Hello')).status).toBe(200)
    const { key } = await new Credentials(join(dirname(file), 'keys.json')).create({ scopes: ['acme'] }, now)
    now += 1_000
    expect((await opened.ask('acme:ann', 'Hello')).status).toBe(401)
    const authorization = `Bearer ${key}`
    expect((await opened.ask('acme:ann', 'Hello', { authorization })).status).toBe(200)
    expect((await opened.ask('zeta:ann', 'Hello', { authorization })).status).toBe(404)
  })

  it('closes its stores when it cannot start', async () => {
    const store = fresh()
    await using first = await openConfiguredServer(newConfigFile(), { store: 'ram:' })
    const { port } = new URL(first.server.url)
    await expect(
      openConfiguredServer(newConfigFile(), { store: `sqlite:${store}`, listen: { port: Number(port) } }),
    ).rejects.toThrow('EADDRINUSE')
    // Closing a store removes its write-ahead log.
    expect([existsSync(store), existsSync(`${store}-wal`)]).toEqual([true, false])
  })
})
