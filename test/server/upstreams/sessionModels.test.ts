import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { SessionModels } from '../../../src/server/upstreams/sessionModels.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { type RecordedRequest, startUpstream } from '../../providers/upstream.ts'
import { collectAll } from '../start.ts'

const ann = parseKey('acme:ann')
const bearer = { authorization: 'Bearer sk-client' }
const anthropicVersion = { 'anthropic-version': '2023-06-01' }

/** Calls the upkeep model of a session; returns the path, model and key of the request, or undefined without a model. */
async function callUpkeepModel(
  models: SessionModels,
  requests: readonly RecordedRequest[],
  key = ann,
): Promise<unknown> {
  const model = models.get(key)
  if (model === undefined) return undefined
  await collectAll(model.reply({ messages: [{ role: 'user', content: 'Sum this up.' }] }))
  const { path, headers, body } = requests.at(-1) as RecordedRequest
  return [path, body.model, headers['x-api-key'] ?? headers.authorization ?? 'no key']
}

/** Starts two upstreams, one for each protocol, with different paths. */
async function startUpstreams(
  more: { readonly openai?: Partial<UpstreamOptions>; readonly anthropic?: Partial<UpstreamOptions> } = {},
) {
  const [gpt, claude] = [await startUpstream(), await startUpstream()]
  const upstreams: readonly UpstreamOptions[] = [
    { name: 'gpt', base: `${gpt.origin}/gpt`, protocol: 'openai', ...more.openai },
    { name: 'claude', base: `${claude.origin}/claude`, protocol: 'anthropic', ...more.anthropic },
  ]
  const close = async (): Promise<void> => void (await Promise.all([gpt.close(), claude.close()]))
  return { upstreams, gpt, claude, [Symbol.asyncDispose]: close }
}

describe('SessionModels', () => {
  it('before a recorded response or with an unknown upstream returns no model', () => {
    const models = new SessionModels({ upstreams: 'http://localhost/v1' })
    models.record(ann, 'm', 'unknown', bearer, false)
    models.record(ann, undefined, 'upstream', bearer, false)
    models.record(ann, '', 'upstream', bearer, false)
    expect(models.get(ann)).toBeUndefined()
  })

  it('uses the upstream, protocol, model name and client key of the newest request', async () => {
    await using fixture = await startUpstreams({ openai: { rename: { 'gpt-5': 'gpt-5-2026' } } })
    const models = new SessionModels({ upstreams: fixture.upstreams })
    models.record(ann, 'gpt-5', 'gpt', bearer, false)
    expect(await callUpkeepModel(models, fixture.gpt.requests)).toEqual([
      '/gpt/chat/completions',
      'gpt-5-2026',
      'Bearer sk-client',
    ])
    models.record(ann, 'constructor', 'gpt', { 'api-key': 'azure' }, false)
    expect(await callUpkeepModel(models, fixture.gpt.requests)).toEqual([
      '/gpt/chat/completions',
      'constructor',
      'no key',
    ])
    expect(fixture.gpt.requests.at(-1)?.headers['api-key']).toBe('azure')
    models.record(ann, 'claude-x', 'claude', { 'x-api-key': 'sk-ant', ...anthropicVersion }, false)
    expect(await callUpkeepModel(models, fixture.claude.requests)).toEqual([
      '/claude/v1/messages',
      'claude-x',
      'sk-ant',
    ])
    models.record(ann, 'claude-x', 'claude', { authorization: 'Bearer oauth', ...anthropicVersion }, false)
    expect(await callUpkeepModel(models, fixture.claude.requests)).toEqual([
      '/claude/v1/messages',
      'claude-x',
      'Bearer oauth',
    ])
    expect([fixture.gpt.requests.length, fixture.claude.requests.length]).toEqual([2, 2])
  })

  it('uses the configured key if the client brings none or a Threadkeep key', async () => {
    await using fixture = await startUpstreams({ openai: { key: 'sk-server' }, anthropic: { key: 'sk-ant-server' } })
    const models = new SessionModels({ upstreams: fixture.upstreams })
    const threadkeepKey = { authorization: `Bearer tk_7fK2mQ9x_${'s'.repeat(32)}` }
    for (const [headers, withholdClientKey] of [
      [{}, false],
      [threadkeepKey, false],
      [threadkeepKey, true],
      [bearer, true],
    ] as const) {
      models.record(ann, 'gpt-5', 'gpt', headers, withholdClientKey)
      expect(await callUpkeepModel(models, fixture.gpt.requests)).toEqual([
        '/gpt/chat/completions',
        'gpt-5',
        'Bearer sk-server',
      ])
      models.record(ann, 'claude-x', 'claude', headers, withholdClientKey)
      expect(await callUpkeepModel(models, fixture.claude.requests)).toEqual([
        '/claude/v1/messages',
        'claude-x',
        'sk-ant-server',
      ])
    }
  })

  it('never sends a client key to a fallback upstream', async () => {
    await using fixture = await startUpstreams({ openai: { models: ['claude-*', 'gpt-*'] } })
    const [gpt, claude] = fixture.upstreams as [UpstreamOptions, UpstreamOptions]
    const second: UpstreamOptions = { ...gpt, name: 'second' }
    const models = new SessionModels({ upstreams: [gpt, second, claude] })
    models.record(ann, 'gpt-5', 'second', bearer, false)
    expect(await callUpkeepModel(models, fixture.gpt.requests)).toEqual(['/gpt/chat/completions', 'gpt-5', 'no key'])
    for (const headers of [
      { ...bearer, ...anthropicVersion },
      { 'x-api-key': 'sk-ant', ...anthropicVersion },
    ]) {
      models.record(ann, 'claude-x', 'gpt', headers, false)
      expect(await callUpkeepModel(models, fixture.gpt.requests)).toEqual([
        '/gpt/chat/completions',
        'claude-x',
        'no key',
      ])
    }
    expect(fixture.claude.requests).toEqual([])
  })

  it('uses the x-api-key header with an OpenAI upstream only for requests in the Anthropic protocol', async () => {
    await using upstream = await startUpstream()
    const models = new SessionModels({ upstreams: upstream.url })
    models.record(ann, 'm', 'upstream', { 'x-api-key': 'sk-client', ...anthropicVersion }, false)
    expect(await callUpkeepModel(models, upstream.requests)).toEqual(['/v1/chat/completions', 'm', 'Bearer sk-client'])
    models.record(ann, 'm', 'upstream', { 'x-api-key': 'sk-client' }, false)
    expect(await callUpkeepModel(models, upstream.requests)).toEqual(['/v1/chat/completions', 'm', 'no key'])
  })

  it('with a fixed model uses its upstream, and the client key only if the client uses the same upstream', async () => {
    await using fixture = await startUpstreams({
      openai: { key: 'sk-server' },
      anthropic: { models: ['claude-*'], key: 'sk-ant-server' },
    })
    const models = new SessionModels({ upstreams: fixture.upstreams, model: 'claude-small' })
    expect(await callUpkeepModel(models, fixture.claude.requests)).toEqual([
      '/claude/v1/messages',
      'claude-small',
      'sk-ant-server',
    ])
    models.record(ann, 'gpt-5', 'gpt', bearer, false)
    expect(await callUpkeepModel(models, fixture.claude.requests)).toEqual([
      '/claude/v1/messages',
      'claude-small',
      'sk-ant-server',
    ])
    models.record(ann, 'claude-x', 'claude', { 'x-api-key': 'sk-ant', ...anthropicVersion }, false)
    expect(await callUpkeepModel(models, fixture.claude.requests)).toEqual([
      '/claude/v1/messages',
      'claude-small',
      'sk-ant',
    ])
    expect(fixture.gpt.requests).toEqual([])
    expect(() => new SessionModels({ upstreams: fixture.upstreams.slice(1), model: 'gpt-5' })).toThrow(
      'upkeep is "gpt-5", a model that no upstream is configured for. Name one that is, builtin, or off.',
    )
  })

  it('forgets a session, a tenant, or a tenant with all its sessions', () => {
    const models = new SessionModels({ upstreams: 'http://localhost/v1' })
    const names = ['acme', 'acme:ann', 'acme:bob', 'acme2:ann']
    const recorded = () => names.filter((name) => models.get(parseKey(name)) !== undefined)
    for (const name of names) models.record(parseKey(name), 'm', 'upstream', bearer, false)
    models.forget('acme', 'ann')
    expect(recorded()).toEqual(['acme', 'acme:bob', 'acme2:ann'])
    models.forget('acme', '')
    expect(recorded()).toEqual(['acme:bob', 'acme2:ann'])
    models.forget('acme')
    expect(recorded()).toEqual(['acme2:ann'])
  })

  it('keeps the ten thousand most recent sessions', () => {
    const models = new SessionModels({ upstreams: 'http://localhost/v1' })
    for (let index = 0; index <= 10_000; index++)
      models.record(parseKey(`acme:s${index}`), 'm', 'upstream', bearer, false)
    expect([0, 1, 10_000].map((index) => models.get(parseKey(`acme:s${index}`)) !== undefined)).toEqual([
      false,
      true,
      true,
    ])
  })
})
