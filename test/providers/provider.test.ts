import { describe, expect, it } from 'vitest'
import { modelFrom, providerNames } from '../../src/providers/provider.ts'
import { verifies } from '../requirements/verifies.ts'
import { everythingIn, failureOf, piecesOf } from './gather.ts'
import { closedPort, startUpstream } from './upstream.ts'

const known = 'openai, anthropic, gemini, xai, local, offline'

function refusal(settings: Parameters<typeof modelFrom>[0]): unknown {
  try {
    return modelFrom(settings)
  } catch (error) {
    return error
  }
}

describe('modelFrom', () => {
  verifies('E-15', 'every provider is chosen by its name and answers', async () => {
    expect(providerNames.join(', ')).toBe(known)
    await using upstream = await startUpstream()
    for (const provider of ['openai', 'anthropic', 'gemini', 'xai', 'local']) {
      const pieces = await piecesOf(modelFrom({ provider, apiKey: 'k', baseUrl: upstream.url, model: 'mine' }))
      expect(pieces).toEqual(['Hello', ' from upstream.'])
    }
    expect(upstream.requests.map((request) => request.path)).toEqual([
      '/v1/chat/completions',
      '/v1/messages',
      '/v1/v1beta/models/mine:streamGenerateContent?alt=sse',
      '/v1/chat/completions',
      '/v1/chat/completions',
    ])
    expect((await piecesOf(modelFrom({ provider: 'offline' }))).join('')).toMatch(/^No language model is configured/)
  })

  it.each([
    ['openai', 'gpt-5.4-mini'],
    ['anthropic', 'claude-sonnet-5'],
    ['gemini', 'gemini-3.5-flash'],
    ['xai', 'grok-4.3'],
    ['local', 'llama3.2'],
    ['offline', 'threadkeep-offline'],
  ])('takes a model for %s when none is named', (provider, name) => {
    expect(modelFrom({ provider, apiKey: 'k' }).name).toBe(name)
    expect(modelFrom({ provider, apiKey: 'k', model: '' }).name).toBe(name)
  })

  it.each(['opneai', 'OpenAI', '', 'constructor', '__proto__'])(
    'does not know %j and names those it knows',
    (provider) => {
      expect(refusal({ provider })).toMatchObject({
        name: 'MemoryError',
        code: 'bad-option',
        param: 'provider',
        message: `provider ${JSON.stringify(provider)} is unknown. Known ones: ${known}.`,
      })
    },
  )

  it.each([
    ['openai', 'OPENAI_API_KEY'],
    ['anthropic', 'ANTHROPIC_API_KEY'],
    ['gemini', 'GEMINI_API_KEY'],
    ['xai', 'XAI_API_KEY'],
  ])('says where the key of %s would come from', (provider, variable) => {
    for (const apiKey of [undefined, '', ' \n']) {
      expect(refusal({ provider, apiKey })).toMatchObject({
        code: 'bad-option',
        param: 'apiKey',
        message: `apiKey is missing: provider ${provider} needs a key. Pass apiKey or set ${variable}.`,
      })
    }
  })

  it('needs no key for a local server, nor for an address of one’s own', async () => {
    expect(modelFrom({ provider: 'local' }).name).toBe('llama3.2')
    await using upstream = await startUpstream()
    expect(await piecesOf(modelFrom({ provider: 'openai', baseUrl: upstream.url }))).toEqual([
      'Hello',
      ' from upstream.',
    ])
    expect(upstream.requests[0]?.headers.authorization).toBeUndefined()
  })

  it('refuses an address that is none, without quoting it', () => {
    for (const provider of ['openai', 'anthropic', 'gemini', 'xai', 'local']) {
      const error = refusal({ provider, apiKey: 'k', baseUrl: 'https://me:SECRET@example.com' })
      expect(error).toMatchObject({ code: 'bad-option', param: 'baseUrl' })
      expect(everythingIn(error)).not.toMatch(/SECRET@/)
    }
  })

  it('passes time-outs on', async () => {
    await using upstream = await startUpstream({ does: 'hang' })
    const { error } = await failureOf(modelFrom({ provider: 'local', baseUrl: upstream.url, timeouts: { first: 30 } }))
    expect(error.code).toBe('timeout')
  })

  it('says what to check when the local server is down', async () => {
    const baseUrl = await closedPort()
    const { error } = await failureOf(modelFrom({ provider: 'local', baseUrl }))
    expect(error.message).toBe(
      `No answer from ${baseUrl}/chat/completions (ECONNREFUSED). Is the server running? Check --upstream or OPENAI_BASE_URL.`,
    )
  })
})
