import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { Credentials } from '../../../src/server/auth/credentials.ts'
import { replies, sends, startUpstream } from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { freshFiles } from '../../stores/tempPaths.ts'
import { stage } from './stage.ts'

const fresh = freshFiles()
const config = (): string => fresh('.json')
const support = (lifetime: object) => ({ profile: 'support', profiles: { support: { extends: 'support', lifetime } } })
const quote = 'From what you told me: "My cat is called Miso."'

describe('a server opened by its configuration', () => {
  it('keeps tenants and templates in one file and sessions of RAM in none', async () => {
    const store = fresh()
    const templates = { kept: { profile: 'thread' } }
    await using staged = await stage(config(), { profile: 'support', store: `sqlite:${store}`, templates })
    const told = async (key: string, pet: string, headers = {}) =>
      (await staged.ask(key, `My pet is called ${pet}.`, headers)).headers.get('x-threadkeep-profile')
    expect([
      await told('acme', 'Tenantpet'),
      await told('acme:a', 'Rampet'),
      await told('acme:b', 'Keptpet', { 'x-threadkeep-template': 'kept' }),
    ]).toEqual(['thread', 'support', 'thread'])
    await staged.server.close(0)
    const bytes = readFileSync(store)
    expect(['Tenantpet', 'Keptpet', 'Rampet'].map((name) => bytes.includes(name))).toEqual([true, true, false])
  })

  verifies('T-16', 'answers sessions without memory where it is turned off, and tenants with it', async () => {
    await using staged = await stage(config(), { store: 'ram:', sessions: false })
    await staged.ask('acme:ann', 'My cat is called Miso.')
    expect((await staged.ask('acme:ann', 'What is my cat called?')).text).not.toContain('Miso')
    await staged.ask('acme', 'My cat is called Miso.')
    expect((await staged.ask('acme', 'What is my cat called?')).text).toBe(quote)
  })

  verifies('T-17', 'begins sessions by templates, with their first words and lifetimes', async () => {
    await using upstream = await startUpstream(replies('Fine.'))
    const templates = { sales: { profile: 'summary', idle: '2h', age: '1d', preamble: 'You sell lamps.', budget: 900 } }
    await using staged = await stage(config(), {
      store: 'ram:',
      templates,
      upkeep: 'off',
      upstreams: [{ base: upstream.url }],
    })
    const { headers } = await staged.ask('acme:ann', 'Hello', { 'x-threadkeep-template': 'sales' })
    expect(decodeURIComponent(headers.get('x-threadkeep-profile') ?? '')).toBe('summary+sales')
    expect(headers.get('x-threadkeep-tokens')).toMatch(/^\d+\/900$/)
    expect(upstream.requests[0]?.body.messages[0]).toEqual({ role: 'system', content: 'You sell lamps.' })
    const { memory } = await staged.server.memories.of(parseKey('acme:ann'))
    expect(await memory.about('acme:ann')).toMatchObject({ template: 'sales', idle: 7_200_000, age: 86_400_000 })
    expect((await staged.ask('acme:bob', 'Hello', { 'x-threadkeep-template': 'nope' })).error).toMatchObject({
      message: 'Unknown template "nope". Use one of: sales.',
      code: 'bad-option',
    })
  })

  verifies(
    'T-12',
    "tells a client in OpenAI's shape that a tenant has no room for another session, or makes room",
    async () => {
      await using refusing = await stage(config(), {
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
      await using evicting = await stage(config(), { store: 'ram:', ...support({ sessionsPerScope: 1 }) })
      await evicting.ask('acme:ann', 'My cat is called Miso.')
      expect((await evicting.ask('acme:bob', 'Hello')).status).toBe(200)
      expect((await evicting.ask('acme:ann', 'What is my cat called?')).text).not.toContain('Miso')
    },
  )

  verifies('T-12', 'refuses more messages and more bytes than a session may have, when it is to refuse', async () => {
    for (const [lifetime, param] of [
      [{ messages: 2 }, 'lifetime.messages'],
      [{ bytes: 200 }, 'lifetime.bytes'],
    ] as const) {
      await using staged = await stage(config(), { store: 'ram:', ...support({ ...lifetime, whenFull: 'refuse' }) })
      await staged.ask('acme:ann', 'My cat is called Miso.')
      expect(await staged.ask('acme:ann', 'x'.repeat(300))).toMatchObject({
        status: 429,
        error: { type: 'rate_limit_error', param, code: 'full' },
      })
    }
  })

  verifies('T-08', 'bounds what all sessions in RAM take: those used longest ago end', async () => {
    await using staged = await stage(config(), { store: 'ram:', profile: 'support', limits: { ram: 20_000 } })
    await staged.ask('acme:ann', 'My cat is called Miso.')
    for (const other of ['b', 'c', 'd']) await staged.ask(`acme:${other}`, 'word '.repeat(2_000))
    expect((await staged.ask('acme:ann', 'What is my cat called?')).text).not.toContain('Miso')
  })

  verifies(['T-07', 'T-08'], 'tells a webhook of sessions that end, signed, once for all memories', async () => {
    await using hook = await startUpstream(sends('application/json', '{}'))
    const webhook = { url: `${hook.origin}/ended`, secretEnv: 'HOOK' }
    const templates = { other: { profile: 'support' }, kept: { profile: 'thread' } }
    await using staged = await stage(
      config(),
      { store: 'ram:', profile: 'support', templates, webhook },
      { environment: { HOOK: 'sesame' } },
    )
    await staged.ask('acme:ann', 'My cat is called Miso.')
    expect((await fetch(`${staged.server.url}/api/sessions/acme:ann`, { method: 'DELETE' })).status).toBe(204)
    await Promise.all(staged.server.memories.all().map((memory) => memory.sweep()))
    await Promise.all(staged.server.memories.all().map((memory) => memory.lifecycle.settled()))
    expect(
      hook.requests.map(({ path, body }) => [path, body.type, body.key, body.reason, body.data.messageCount]),
    ).toEqual([['/ended', 'session.ended', 'acme:ann', 'ended', 2]])
    const { headers, text } = hook.requests[0] as (typeof hook.requests)[number]
    const signed = createHmac('sha256', 'sesame')
      .update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`)
      .digest('base64')
    expect(headers['webhook-signature']).toBe(`v1,${signed}`)
  })

  it('is not opened for everybody by mistake', async () => {
    const listen = { host: '0.0.0.0', port: 0 }
    const refused = stage(config(), { store: `sqlite:${fresh()}`, listen })
    await expect(refused).rejects.toThrow(
      'host is "0.0.0.0", which other machines can reach, but no keys are required: anyone could read and write all memory. Create a key with threadkeep keys create --scope NAME, or pass --open to allow everyone.',
    )
    await (await stage(config(), { store: 'ram:', listen }, { isOpen: true })).server.close()
    const keys = fresh('.json')
    await new Credentials(keys).create({ scopes: ['acme'] }, Date.now())
    await (await stage(config(), { store: 'ram:', listen, keys: { file: keys } })).server.close()
    await expect(stage(config(), { store: 'ram:', keys: { file: '/nowhere/keys.json' } })).rejects.toThrow(
      'The key file /nowhere/keys.json cannot be read (ENOENT)',
    )
  })

  it('asks for keys from the first one on, and lets each see its own tenants', async () => {
    const file = config()
    let now = Date.now()
    await using staged = await stage(
      file,
      { store: 'ram:', keys: { file: 'keys.json', required: false } },
      { clock: () => now },
    )
    expect((await staged.ask('acme:ann', 'Hello')).status).toBe(200)
    const { key } = await new Credentials(join(dirname(file), 'keys.json')).create({ scopes: ['acme'] }, now)
    now += 1_000
    expect((await staged.ask('acme:ann', 'Hello')).status).toBe(401)
    const authorization = `Bearer ${key}`
    expect((await staged.ask('acme:ann', 'Hello', { authorization })).status).toBe(200)
    expect((await staged.ask('zeta:ann', 'Hello', { authorization })).status).toBe(404)
  })

  it('leaves nothing open when it cannot be opened', async () => {
    const store = fresh()
    await using first = await stage(config(), { store: 'ram:' })
    const { port } = new URL(first.server.url)
    await expect(stage(config(), { store: `sqlite:${store}`, listen: { port: Number(port) } })).rejects.toThrow(
      'EADDRINUSE',
    )
    // A store that was closed has taken its log with it.
    expect([existsSync(store), existsSync(`${store}-wal`)]).toEqual([true, false])
  })
})
