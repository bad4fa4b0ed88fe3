import { describe, expect, it } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import { SessionModels } from '../../../src/server/upstreams/sessionModels.ts'
import type { UpstreamOptions } from '../../../src/server/upstreams/upstream.ts'
import { type Received, startUpstream } from '../../providers/upstream.ts'
import { all } from '../start.ts'

const ann = parseKey('acme:ann')
const bearer = { authorization: 'Bearer sk-client' }
const versioned = { 'anthropic-version': '2023-06-01' }

/** Where a session's upkeep asks, for which model and with which key; undefined if it has no model to ask. */
async function upkeepOf(models: SessionModels, requests: readonly Received[], key = ann): Promise<unknown> {
  const model = models.for(key)
  if (model === undefined) return undefined
  await all(model.reply({ messages: [{ role: 'user', content: 'Sum this up.' }] }))
  const { path, headers, body } = requests.at(-1) as Received
  return [path, body.model, headers['x-api-key'] ?? headers.authorization ?? 'no key']
}

/** Two model servers, one for each protocol, that are told apart by their addresses. */
async function startBoth(
  more: { readonly openai?: Partial<UpstreamOptions>; readonly anthropic?: Partial<UpstreamOptions> } = {},
) {
  const [one, other] = [await startUpstream(), await startUpstream()]
  const upstreams: readonly UpstreamOptions[] = [
    { name: 'gpt', base: `${one.origin}/gpt`, protocol: 'openai', ...more.openai },
    { name: 'claude', base: `${other.origin}/claude`, protocol: 'anthropic', ...more.anthropic },
  ]
  const close = async (): Promise<void> => void (await Promise.all([one.close(), other.close()]))
  return { upstreams, one, other, [Symbol.asyncDispose]: close }
}

describe('the model of a session', () => {
  it('is not known before its client has been answered, nor for a server that nobody configured', () => {
    const models = new SessionModels({ upstream: 'http://localhost/v1' })
    models.heard(ann, 'm', 'somebody else', bearer, false)
    models.heard(ann, undefined, 'upstream', bearer, false)
    models.heard(ann, '', 'upstream', bearer, false)
    expect(models.for(ann)).toBeUndefined()
  })

  it('is the one that answered, in its own protocol, by the name it has there and with the key it was asked with', async () => {
    await using both = await startBoth({ openai: { rename: { 'gpt-5': 'gpt-5-2026' } } })
    const models = new SessionModels({ upstream: both.upstreams })
    models.heard(ann, 'gpt-5', 'gpt', bearer, false)
    expect(await upkeepOf(models, both.one.requests)).toEqual([
      '/gpt/chat/completions',
      'gpt-5-2026',
      'Bearer sk-client',
    ])
    models.heard(ann, 'constructor', 'gpt', { 'api-key': 'azure' }, false)
    expect(await upkeepOf(models, both.one.requests)).toEqual(['/gpt/chat/completions', 'constructor', 'no key'])
    expect(both.one.requests.at(-1)?.headers['api-key']).toBe('azure')
    models.heard(ann, 'claude-x', 'claude', { 'x-api-key': 'sk-ant', ...versioned }, false)
    expect(await upkeepOf(models, both.other.requests)).toEqual(['/claude/v1/messages', 'claude-x', 'sk-ant'])
    models.heard(ann, 'claude-x', 'claude', { authorization: 'Bearer oauth', ...versioned }, false)
    expect(await upkeepOf(models, both.other.requests)).toEqual(['/claude/v1/messages', 'claude-x', 'Bearer oauth'])
    expect([both.one.requests.length, both.other.requests.length]).toEqual([2, 2])
  })

  it('is asked with the key of the house where the client brings none, or one of this server', async () => {
    await using both = await startBoth({ openai: { key: 'sk-house' }, anthropic: { key: 'sk-ant-house' } })
    const models = new SessionModels({ upstream: both.upstreams })
    const own = { authorization: `Bearer tk_7fK2mQ9x_${'s'.repeat(32)}` }
    for (const [headers, isGuarded] of [
      [{}, false],
      [own, false],
      [own, true],
      [bearer, true],
    ] as const) {
      models.heard(ann, 'gpt-5', 'gpt', headers, isGuarded)
      expect(await upkeepOf(models, both.one.requests)).toEqual(['/gpt/chat/completions', 'gpt-5', 'Bearer sk-house'])
      models.heard(ann, 'claude-x', 'claude', headers, isGuarded)
      expect(await upkeepOf(models, both.other.requests)).toEqual(['/claude/v1/messages', 'claude-x', 'sk-ant-house'])
    }
  })

  it('is not asked with the key of a client that was meant for another one, which it only stood in for', async () => {
    await using both = await startBoth({ openai: { models: ['claude-*', 'gpt-*'] } })
    const [gpt, claude] = both.upstreams as [UpstreamOptions, UpstreamOptions]
    const second: UpstreamOptions = { ...gpt, name: 'second' }
    const models = new SessionModels({ upstream: [gpt, second, claude] })
    models.heard(ann, 'gpt-5', 'second', bearer, false)
    expect(await upkeepOf(models, both.one.requests)).toEqual(['/gpt/chat/completions', 'gpt-5', 'no key'])
    for (const headers of [
      { ...bearer, ...versioned },
      { 'x-api-key': 'sk-ant', ...versioned },
    ]) {
      models.heard(ann, 'claude-x', 'gpt', headers, false)
      expect(await upkeepOf(models, both.one.requests)).toEqual(['/gpt/chat/completions', 'claude-x', 'no key'])
    }
    expect(both.other.requests).toEqual([])
  })

  it("is asked with a key from Anthropic's header only if it was asked for messages", async () => {
    await using upstream = await startUpstream()
    const models = new SessionModels({ upstream: upstream.url })
    models.heard(ann, 'm', 'upstream', { 'x-api-key': 'sk-client', ...versioned }, false)
    expect(await upkeepOf(models, upstream.requests)).toEqual(['/v1/chat/completions', 'm', 'Bearer sk-client'])
    models.heard(ann, 'm', 'upstream', { 'x-api-key': 'sk-client' }, false)
    expect(await upkeepOf(models, upstream.requests)).toEqual(['/v1/chat/completions', 'm', 'no key'])
  })

  it('may be the same for all: whoever has it is asked, with the key of a client only if that client asks there too', async () => {
    await using both = await startBoth({
      openai: { key: 'sk-house' },
      anthropic: { models: ['claude-*'], key: 'sk-ant-house' },
    })
    const models = new SessionModels({ upstream: both.upstreams, model: 'claude-small' })
    expect(await upkeepOf(models, both.other.requests)).toEqual(['/claude/v1/messages', 'claude-small', 'sk-ant-house'])
    models.heard(ann, 'gpt-5', 'gpt', bearer, false)
    expect(await upkeepOf(models, both.other.requests)).toEqual(['/claude/v1/messages', 'claude-small', 'sk-ant-house'])
    models.heard(ann, 'claude-x', 'claude', { 'x-api-key': 'sk-ant', ...versioned }, false)
    expect(await upkeepOf(models, both.other.requests)).toEqual(['/claude/v1/messages', 'claude-small', 'sk-ant'])
    expect(both.one.requests).toEqual([])
    expect(() => new SessionModels({ upstream: both.upstreams.slice(1), model: 'gpt-5' })).toThrow(
      'upkeep is "gpt-5", a model that no upstream is configured for. Name one that is, builtin, or off.',
    )
  })

  it('is forgotten with the session, or with its tenant', () => {
    const models = new SessionModels({ upstream: 'http://localhost/v1' })
    const names = ['acme', 'acme:ann', 'acme:bob', 'acme2:ann']
    const known = () => names.filter((name) => models.for(parseKey(name)) !== undefined)
    for (const name of names) models.heard(parseKey(name), 'm', 'upstream', bearer, false)
    models.forget('acme', 'ann')
    expect(known()).toEqual(['acme', 'acme:bob', 'acme2:ann'])
    models.forget('acme', '')
    expect(known()).toEqual(['acme:bob', 'acme2:ann'])
    models.forget('acme')
    expect(known()).toEqual(['acme2:ann'])
  })

  it('is known of ten thousand sessions, those that were heard last', () => {
    const models = new SessionModels({ upstream: 'http://localhost/v1' })
    for (let at = 0; at <= 10_000; at++) models.heard(parseKey(`acme:s${at}`), 'm', 'upstream', bearer, false)
    expect([0, 1, 10_000].map((at) => models.for(parseKey(`acme:s${at}`)) !== undefined)).toEqual([false, true, true])
  })
})
